"""Strict parser of JSON from clients: whatever it returns can be stored, computed with and encoded again."""

import json
from collections.abc import Iterator
from typing import NoReturn

DEEPEST = 32
"""Maximum nesting of objects and lists."""

DIGITS = 18
"""Maximum digits of an integer: such a number fits into 64 bits whatever its digits are."""


class BadJson(ValueError):
    """The text is not JSON, or has an unusable value; the message says which."""


def parse(data: bytes | str, deepest: int = DEEPEST) -> object:
    """Return the one JSON value in `data` (bytes: UTF-8). Raise BadJson that gives the error and its position.

    Refuses NaN, infinities, integers with more than DIGITS digits, U+0000, surrogate halves, repeated keys, and more
    than `deepest` levels.
    """
    try:
        value = _DECODER.decode(data.decode("utf-8") if isinstance(data, bytes) else data)
    except UnicodeDecodeError as error:
        raise BadJson(f"is not UTF-8 (at byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise BadJson(f"is not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise _too_deep(deepest) from None
    for text in _texts(value, deepest) if _may_be_refused(data, deepest) else ():
        _check_text(text)
    return value


def _may_be_refused(data: bytes | str, deepest: int) -> bool:
    """Return whether JSON may contain a bad text or too many levels; False for most, without a check of each value.

    Bytes are valid UTF-8 here, and control characters are not JSON, so a bad character can only be an escape. A text
    that is not ASCII may also contain half a surrogate pair as it is.
    """
    if isinstance(data, str):
        if not data.isascii():
            return True
        data = data.encode("ascii")
    return b"\\u" in data or data.count(b"{") + data.count(b"[") > deepest


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise BadJson(f"is not usable: the key {_short(twice)} stands twice in one object")
    return result


def _constant(text: str) -> NoReturn:
    raise BadJson(f"has {text}, which is not a number that can be used")


def _float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise BadJson(f"has {_short(text)}, which is not a number that can be used")
    return number


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > DIGITS:
        raise BadJson(f"has the number {_short(text)}, which is too long; at most {DIGITS} digits")
    return int(text)


def _texts(value: object, deepest: int) -> Iterator[str]:
    """Yield every text and key in `value`, level by level. Raise BadJson when there are too many levels."""
    level = [value]
    for _ in range(deepest + 1):
        inner: list[object] = []
        for item in level:
            if isinstance(item, str):
                yield item
            elif isinstance(item, dict):
                yield from item
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        level = inner
    if level:
        raise _too_deep(deepest)


def _check_text(text: str) -> None:
    if "\0" in text:
        raise BadJson(f"has the character U+0000 in the text {_short(text)}")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise BadJson(f"has half a surrogate pair in the text {_short(text)}")


def _too_deep(deepest: int) -> BadJson:
    return BadJson(f"is nested too deeply; at most {deepest} levels")


def _short(text: str) -> str:
    return ascii(text if len(text) <= 40 else f"{text[:40]}…")


# json.loads would make a decoder for each text.
_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_integer)
