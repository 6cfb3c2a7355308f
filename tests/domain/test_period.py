"""Half-open stretches of time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climate.domain.errors import InvalidPeriod
from climate.domain.period import Period
from tests.domain.lease_factory import HOUR, NOON

MINUTES = st.integers(0, 300)


@given(st.lists(MINUTES, min_size=2, max_size=2, unique=True), st.lists(MINUTES, min_size=2, max_size=2, unique=True))
def test_two_periods_overlap_when_some_minute_is_in_both(one: list[int], other: list[int]) -> None:
    first, second = (Period(*(NOON + timedelta(minutes=m) for m in sorted(pair))) for pair in (one, other))
    minutes = [set(range(*sorted(pair))) for pair in (one, other)]
    assert first.overlaps(second) == second.overlaps(first) == bool(minutes[0] & minutes[1])


def test_back_to_back_is_no_overlap() -> None:
    assert not Period(NOON, NOON + HOUR).overlaps(Period(NOON + HOUR, NOON + 2 * HOUR))


def test_longer_at_the_end() -> None:
    assert Period(NOON, NOON + HOUR).longer(HOUR) == Period(NOON, NOON + 2 * HOUR)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (NOON, NOON),
        (NOON, NOON - HOUR),
        (NOON.replace(tzinfo=None), NOON + HOUR),
        (NOON, datetime(2031, 1, 1)),
        (datetime(2030, 1, 1), datetime(2031, 1, 1, tzinfo=UTC)),
    ],
)
def test_neither_empty_nor_turned_round_nor_without_zone(start: datetime, end: datetime) -> None:
    with pytest.raises(InvalidPeriod):
        Period(start, end)
