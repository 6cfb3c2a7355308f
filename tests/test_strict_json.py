"""The strict reader of JSON: bytes, which are looked at as a whole first, against texts, of which each value is."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from climate.strict_json import BadJson, parse

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


@pytest.mark.parametrize(
    "data", [b'"\\u0000"', b'["\\ud800"]', b'{"a\\u0000": 1}', b"\xed\xa0\x80", b'"\0"', b"[" * 40]
)
def test_values_that_cannot_be_stored_are_refused(data: bytes) -> None:
    with pytest.raises(BadJson):
        parse(data)
