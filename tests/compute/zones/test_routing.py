"""Answers of children, before they are passed on."""

from typing import Any

import pytest

from climate.compute.zones.answer_rewriting import cooked
from climate.compute.zones.models import ZoneChain


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        ({"server": {"a": 1, "b": 2}}, {"server": {"a": 1, "b": 2}}),
        ({"server": {"a": 1, "_b": 2}}, {"server": {"a": 1}}),
        ({"server": {"a": 1, "manager": 2}}, {"server": {"a": 1}}),
        ({"server": {"_a": 1, "manager": 2}}, {"server": {}}),
        ({"metadata": {"_a": 1}}, {"metadata": {"_a": 1}}),
        (None, None),
        ([], []),
    ],
)
def test_zn_14_private_keys_of_a_server_are_left_out(given: Any, passed_on: Any) -> None:
    assert cooked(given) == passed_on


def test_deadlines_shrink_on_the_way_down() -> None:
    assert ZoneChain().limit(5) == 5
    assert ZoneChain(("a",), 5.0).limit(5) == pytest.approx(3.5)
    assert ZoneChain(("a",), 100.0).limit(5) == 5
