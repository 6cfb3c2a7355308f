"""The body of a request, read so strictly that nothing behind it need wonder what it got."""

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from flask import request
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from climate.domain.errors import InvalidInput

LONGEST = 1024 * 1024
"""Bytes of a body; more is 413."""

DEEPEST = 32
"""Objects and lists inside each other."""

DIGITS = 18
"""Digits of a whole number: what fits into 64 bits whatever the digits are."""

JSON = ("application/json",)


def read_object() -> dict[str, Any]:
    """The request's body, which must be one JSON object; InvalidInput, 413 or 415 when it is not."""
    value = read_json()
    if not isinstance(value, dict):
        raise InvalidInput(f"The body must be a JSON object, not {_kind(value)}")
    return value


def read_json(types: tuple[str, ...] = JSON) -> Any:
    """The request's body, which must be JSON of one of these content types."""
    data = request.get_data(cache=True)
    if request.content_length is None and len(data) >= LONGEST:  # sent in pieces, and cut off at the limit
        raise RequestEntityTooLarge()
    if request.mimetype not in types and (data or request.mimetype):
        raise UnsupportedMediaType(f"Content-Type must be {' or '.join(types)}")
    return parse(data)


def parse(data: bytes) -> Any:
    """One JSON value; InvalidInput says what is wrong and where."""
    if not data.strip():
        raise InvalidInput("The body is empty; a JSON object is wanted")
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_integer,
        )
    except UnicodeDecodeError as error:
        raise InvalidInput(f"The body is not UTF-8 (at byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"The body is not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise _too_deep() from None
    for text in _texts(value):
        _check_text(text)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise InvalidInput(f"The key {_short(twice)} stands twice in one object")
    return found


def _constant(text: str) -> NoReturn:
    raise InvalidInput(f"{text} is not a number that can be used")


def _float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise InvalidInput(f"{_short(text)} is not a number that can be used")
    return number


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > DIGITS:
        raise InvalidInput(f"The number {_short(text)} is too long; at most {DIGITS} digits")
    return int(text)


def _texts(value: Any) -> Iterator[str]:
    """Every text and key in `value`, level by level; InvalidInput when there are too many levels."""
    level = [value]
    for _ in range(DEEPEST + 1):
        inner: list[Any] = []
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
        raise _too_deep()


def _check_text(text: str) -> None:
    if "\0" in text:
        raise InvalidInput(f"The text {_short(text)} has the character U+0000 in it")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidInput(f"The text {_short(text)} has half a surrogate pair in it")


def _too_deep() -> InvalidInput:
    return InvalidInput(f"The body is nested too deeply; at most {DEEPEST} levels")


def _short(text: str) -> str:
    return ascii(text if len(text) <= 40 else f"{text[:40]}…")


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "a truth value", int: "a number", float: "a number"}
    return names.get(type(value), "null")
