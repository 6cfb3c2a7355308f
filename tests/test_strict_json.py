"""The strict reader of JSON, which looks at the values only where the whole may have a bad one."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from climate.strict_json import DIGITS, BadJson, parse

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\0\\u{[\ud800\udfff"), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def outcome(data: bytes | str, deepest: int) -> Any:
    try:
        return parse(data, deepest)
    except BadJson as error:
        return str(error)


@given(VALUES, st.booleans(), st.integers(0, 6))
@example(["\0"], True, 6)
@example({"\ud800": 1}, True, 6)
@example([[[1]]], True, 2)
@example([[[1]]], True, 3)
@example([[], [], [], []], True, 2)
def test_bytes_are_read_as_texts_are(value: Any, is_ascii: bool, deepest: int) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return
    assert outcome(data, deepest) == outcome(text, deepest)


def depth(value: Any) -> int:
    """Levels below a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max((1 + depth(one) for one in inner), default=0)


def is_usable(value: Any) -> bool:
    """Whether each text, key and number in a value can be stored."""
    if isinstance(value, dict):
        return all(map(is_usable, (*value, *value.values())))
    if isinstance(value, list):
        return all(map(is_usable, value))
    if isinstance(value, str):
        return not any(one == "\0" or "\ud800" <= one <= "\udfff" for one in value)
    return not isinstance(value, int) or len(str(abs(value))) <= DIGITS


@given(VALUES, st.booleans(), st.integers(0, 6))
@example(["\0"], True, 6)
@example({"\ud800": 1}, False, 6)
@example([[[1]]], True, 2)
@example([[[]]], True, 2)
def test_texts_are_read_if_all_in_them_is_usable(value: Any, is_ascii: bool, deepest: int) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii)
    meant = json.loads(text)
    is_fine = is_usable(meant) and depth(meant) <= deepest
    try:
        assert (parse(text, deepest), is_fine) == (meant, True)
    except BadJson:
        assert not is_fine


@pytest.mark.parametrize(
    "data", [b'"\\u0000"', b'["\\ud800"]', b'{"a\\u0000": 1}', b"\xed\xa0\x80", b'"\0"', b"[" * 40]
)
def test_values_that_cannot_be_stored_are_refused(data: bytes) -> None:
    with pytest.raises(BadJson):
        parse(data)
