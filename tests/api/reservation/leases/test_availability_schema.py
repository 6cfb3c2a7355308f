"""Durations and local times of a search."""

from datetime import time, timedelta
from typing import Any

import pytest
from marshmallow import ValidationError

from api.reservation.leases.availability_schema import Length, local_time


@pytest.mark.parametrize(
    ("given", "seconds"),
    [(1, 1), (21600, 21600), ("PT6H", 21600), ("P1DT12H", 129600), ("P2W", 1209600), ("PT90M", 5400), ("PT1H1S", 3601)],
)
def test_durations(given: Any, seconds: int) -> None:
    assert Length().deserialize(given) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "given", [0, -1, True, 1.0, "", "P", "PT", "P1Y", "PT1.5H", "6h", "pt6h", "PT6H ", "PT0S", 10**15, {}]
)
def test_what_is_no_duration(given: Any) -> None:
    with pytest.raises(ValidationError):
        Length().deserialize(given)


def test_midnight_has_two_names() -> None:
    assert local_time("24:00") == local_time("00:00") == time(0)
    assert local_time("08:30") == time(8, 30)
