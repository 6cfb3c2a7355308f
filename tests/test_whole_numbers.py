"""Whole numbers in texts of clients."""

import pytest

from climate.whole_numbers import whole_number


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("42", 42), ("9" * 18, 10**18 - 1)])
def test_decimal_digits_are_a_number(text: str, number: int) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1_0", "1.0", "²", "٣", "1e3", "x", "9" * 19, "9" * 5000])
def test_other_texts_are_none(text: str) -> None:
    assert whole_number(text) is None
