"""Repetitions of the form: each choice is a rule that the service understands."""

import pytest
from werkzeug.datastructures import MultiDict

from api.web import repetitions
from climate.domain.errors import InvalidInput
from climate.service.series import recurrence


@pytest.mark.parametrize("every", repetitions.CHOICES)
def test_each_choice_is_a_rule(every: str) -> None:
    found = repetitions.read(MultiDict({"every": every, "times": "7"}))
    assert found
    assert "COUNT=7" in recurrence.read(found.rule, 100).text
    assert repetitions.read(MultiDict(found.fields)) == found


def test_rule_of_ones_own_goes_before_the_choice() -> None:
    found = repetitions.read(MultiDict({"every": "day", "rule": "FREQ=YEARLY;COUNT=2"}))
    assert found
    assert found.rule == "FREQ=YEARLY;COUNT=2"


def test_without_a_choice_nothing_repeats() -> None:
    assert repetitions.read(MultiDict({"every": "", "times": "4"})) is None


@pytest.mark.parametrize("wrong", [{"every": "noon"}, {"every": "day", "times": "0"}, {"rule": "x" * 501}])
def test_wrong_repetitions_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        repetitions.read(MultiDict(wrong))
