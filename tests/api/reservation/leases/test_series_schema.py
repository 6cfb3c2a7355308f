"""Bodies of series: differences of times with a sign, and changes that change something."""

from datetime import timedelta
from typing import Any

import pytest
from marshmallow import ValidationError

from api.reservation.leases.series_schema import SeriesOrder, SeriesPatch


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(1, 1), (-3600, -3600), ("PT1H", 3600), ("-PT30M", -1800), ("P1DT1S", 86401), ("-P1W", -604800)],
)
def test_differences_of_times(given: Any, seconds: int) -> None:
    assert SeriesPatch().load({"move_by": given}) == {"move_by": timedelta(seconds=seconds)}


@pytest.mark.parametrize("given", [0, "PT0S", True, None, 1.0, "", "-", "PT", "--PT1H", "PT1H\n", "P9999W", 10**20])
def test_other_values_are_refused(given: Any) -> None:
    with pytest.raises(ValidationError) as refused:
        SeriesPatch().load({"extend_by": given})
    assert "extend_by" in refused.value.messages


def test_a_change_changes_something() -> None:
    with pytest.raises(ValidationError, match="nothing to change"):
        SeriesPatch().load({"from": "00000000-0000-4000-8000-000000000000"})


def test_the_rule_of_a_series_is_short_and_needed() -> None:
    body = {"name": "n", "start_date": "now", "end_date": "2030-01-02 10:00"}
    with pytest.raises(ValidationError) as refused:
        SeriesOrder().load(body)
    assert "repeat" in refused.value.messages
    with pytest.raises(ValidationError) as refused:
        SeriesOrder().load({**body, "repeat": {"rule": "F" * 501}})
    assert "rule" in refused.value.messages["repeat"]
    repeat = SeriesOrder().load({**body, "repeat": {"rule": "FREQ=DAILY;COUNT=2"}})["repeat"]
    assert (repeat["zone"], repeat["make"]) == ("UTC", "all")
