"""The operators of extra specs, by the whole table of the specification."""

import pytest

from climate.compute.scheduler.filters.extra_specs_ops import match

FLAGS = ["aes", "mmx", "aux"]


@pytest.mark.parametrize(
    ("value", "wanted", "fits"),
    [
        ("1", "1", True),
        ("", "1", False),
        ("3", "1", False),
        ("222", "2", False),
        ("4", "> 2", False),
        ("123", "= 123", True),
        ("124", "= 123", True),
        ("34", "= 234", False),
        ("34", "=", False),
        ("123", "s== 123", True),
        ("1234", "s== 123", False),
        ("1234", "s!= 123", True),
        ("123", "s!= 123", False),
        ("1000", "s>= 234", False),
        ("1234", "s<= 1000", False),
        ("2", "s< 12", False),
        ("12", "s> 2", False),
        ("12311321", "<in> 11", True),
        ("12311321", "<in> 12311321 <in>", True),
        ("12310321", "<in> 11", False),
        ("12310321", "<in> 11 <in>", False),
        ("12", "<or> 11 <or> 12", True),
        ("12", "<or> 11 <or> 12 <or>", True),
        ("13", "<or> 11 <or> 12", False),
        ("13", "<or> 11 <or> 12 <or>", False),
        ("2", "<= 10", True),
        ("3", "<= 2", False),
        ("3", ">= 1", True),
        ("2", ">= 3", False),
        (FLAGS, "<all-in> aes mmx", True),
        (FLAGS, "<all-in> mmx", True),
        (FLAGS, "<all-in> txt", False),
        (FLAGS, "<all-in> txt 3dnow", False),
        (FLAGS, "<all-in> txt aes", False),
        ("2", "== 2.0", True),
        ("2", "!= 2.0", False),
        ("2 3", "2 3", True),
    ],
)
def test_a_value_fits_by_the_operator_in_front(value: str | list[str], wanted: str, fits: bool) -> None:
    assert match(value, wanted) is fits


@pytest.mark.parametrize("wanted", ["= 1", "== 1", "!= 1", ">= 1", "<= 1"])
def test_what_is_no_number_fits_no_operator_of_numbers(wanted: str) -> None:
    assert match("many", wanted) is False
    assert match("1", wanted.replace("1", "many")) is False


@pytest.mark.parametrize("wanted", ["= 1", "s!= 1", "<in> 1", "<or> 1", "<all-in> 1", "<or>", "<all-in>", ""])
def test_no_value_fits_nothing(wanted: str) -> None:
    assert match(None, wanted) is False
