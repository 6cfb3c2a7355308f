"""Recurrence rules against a slow model that looks at every quarter of an hour, and the bounds of their computation."""

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climate.domain.availability.daily_windows import zone
from climate.domain.errors import InvalidInput
from climate.domain.period import Period
from climate.service.series import recurrence
from climate.service.series.recurrence import DAYS, LONGEST_SERIES, moved, occurrences, read

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Santiago",  # changes at midnight
    "Australia/Lord_Howe",  # changes by half an hour
    "Africa/Casablanca",
    "Asia/Kathmandu",
)
QUARTER = timedelta(minutes=15)
LENGTH = timedelta(minutes=90)
BERLIN = zone("Europe/Berlin")

Matches = Callable[[date, date], bool]
"""Whether a date belongs to a rule that begins on the second one."""


@dataclass(frozen=True)
class Pattern:
    """A rule without its end, and what it means."""

    text: str
    matches: Matches
    last_time: bool = False
    """Whether only the last time of a day counts."""


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _months(day: date, first: date) -> int:
    return (day.year - first.year) * 12 + day.month - first.month


def _from_end(day: date) -> int:
    return day.day - calendar.monthrange(day.year, day.month)[1] - 1


intervals = st.integers(1, 3)
weekdays = st.sets(st.integers(0, 6), min_size=1)


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    n, days = draw(intervals), draw(weekdays)
    spelled = ",".join(DAYS[day] for day in sorted(days))
    kind = draw(st.sampled_from(["daily", "weekly", "dates", "nth", "last", "yearly"]))
    if kind == "daily":
        return Pattern(
            f"FREQ=DAILY;INTERVAL={n};BYDAY={spelled}",
            lambda day, first: (day - first).days % n == 0 and day.weekday() in days,
        )
    if kind == "weekly":
        return Pattern(
            f"FREQ=WEEKLY;INTERVAL={n};BYDAY={spelled}",
            lambda day, first: (_monday(day) - _monday(first)).days // 7 % n == 0 and day.weekday() in days,
        )
    if kind == "dates":
        number = draw(st.integers(1, 31)) * draw(st.sampled_from([1, -1]))
        return Pattern(
            f"FREQ=MONTHLY;INTERVAL={n};BYMONTHDAY={number}",
            lambda day, first: _months(day, first) % n == 0 and number in (day.day, _from_end(day)),
        )
    if kind == "nth":
        place, weekday = draw(st.integers(1, 5)), draw(st.integers(0, 6))
        return Pattern(
            f"FREQ=MONTHLY;INTERVAL={n};BYDAY={place}{DAYS[weekday]}",
            lambda day, first: (
                _months(day, first) % n == 0 and day.weekday() == weekday and (day.day - 1) // 7 + 1 == place
            ),
        )
    if kind == "last":
        return Pattern(
            f"FREQ=MONTHLY;INTERVAL={n};BYDAY={spelled};BYSETPOS=-1",
            lambda day, first: (
                _months(day, first) % n == 0
                and day.weekday() in days
                and not any((day + timedelta(later)).weekday() in days for later in range(1, -_from_end(day)))
            ),
            last_time=True,
        )
    return Pattern(
        f"FREQ=YEARLY;INTERVAL={n}",
        lambda day, first: (day.year - first.year) % n == 0 and (day.month, day.day) == (first.month, first.day),
    )


def slow_moment(local: datetime, where: ZoneInfo) -> datetime:
    """The first quarter of an hour with that local time, or else the first one after a change has skipped it."""
    begin = local.replace(tzinfo=UTC) - timedelta(hours=16)
    there = [(begin + QUARTER * step) for step in range(4 * 32)]
    shown = [(one, one.astimezone(where).replace(tzinfo=None)) for one in there]
    same = [one for one, wall in shown if wall == local]
    return same[0] if same else next(one for one, wall in shown if wall > local)


def slow(pattern: Pattern, where: ZoneInfo, start: datetime, hours: list[int], count: int) -> list[datetime]:
    wall = start.astimezone(where).replace(tzinfo=None)
    times = [wall.time()] if not hours else [time(hour, wall.minute) for hour in hours]
    times = times[-1:] if pattern.last_time else times
    found: list[datetime] = []
    for later in range(LONGEST_SERIES.days + 1):
        day = wall.date() + timedelta(days=later)
        if not pattern.matches(day, wall.date()):
            continue
        for local in (datetime.combine(day, at) for at in times):
            if local < wall:
                continue
            if len(found) == count:
                return found
            moment = start if local == wall else slow_moment(local, where)
            if (not found or moment > found[-1]) and moment <= start + LONGEST_SERIES:
                found.append(moment)
    return found


@given(
    patterns(),
    st.sampled_from(ZONES),
    st.integers(0, 2 * 365 * 96),
    st.sets(st.integers(0, 5), max_size=3),
    st.integers(1, 6),
)
def test_as_the_slow_model(pattern: Pattern, name: str, quarters: int, hours: set[int], count: int) -> None:
    where, start = zone(name), datetime(2030, 1, 1, tzinfo=UTC) + QUARTER * quarters
    text = f"{pattern.text};COUNT={count}" + (f";BYHOUR={','.join(map(str, sorted(hours)))}" if hours else "")
    expected = slow(pattern, where, start, sorted(hours), count)
    try:
        found = occurrences(read(text, 52), where, Period(start, start + LENGTH), 52)
    except InvalidInput:
        assert len(expected) < count
        return
    assert [one.start for one in found] == expected
    assert {one.end - one.start for one in found} == {LENGTH}


@given(st.sampled_from(ZONES), st.integers(0, 365 * 96), st.integers(-400, 400))
def test_a_moved_moment_has_the_moved_local_time(name: str, quarters: int, by: int) -> None:
    where, start = zone(name), datetime(2030, 1, 1, tzinfo=UTC) + QUARTER * quarters
    local = start.astimezone(where).replace(tzinfo=None) + by * QUARTER
    assert moved(start, by * QUARTER, where) == (slow_moment(local, where) if by else start)


def starts(text: str, begin: str, most: int = 52) -> list[str]:
    start = datetime.fromisoformat(begin).replace(tzinfo=UTC)
    found = occurrences(read(text, most), BERLIN, Period(start, start + LENGTH), most)
    return [f"{one.start:%m-%d %H:%M}" for one in found]


def test_both_changes_of_daylight_saving_time() -> None:
    assert starts("FREQ=DAILY;COUNT=3", "2030-03-30 01:30") == ["03-30 01:30", "03-31 01:00", "04-01 00:30"]
    assert starts("FREQ=DAILY;COUNT=3", "2030-10-26 00:30") == ["10-26 00:30", "10-27 00:30", "10-28 01:30"]


def test_two_local_times_of_one_moment_are_one_occurrence() -> None:
    found = starts("FREQ=DAILY;BYHOUR=2,3;COUNT=4", "2030-03-30 12:00")
    assert found == ["03-31 01:00", "04-01 00:00", "04-01 01:00", "04-02 00:00"]


def test_a_start_in_the_second_of_two_hours_stays() -> None:
    assert starts("FREQ=DAILY;COUNT=2", "2030-10-27 01:30") == ["10-27 01:30", "10-28 01:30"]


def test_fractions_of_a_second_stay() -> None:
    start = datetime(2030, 2, 5, 10, 0, 0, 250, UTC)
    found = occurrences(read("FREQ=DAILY;COUNT=2", 52), BERLIN, Period(start, start + LENGTH), 52)
    assert [one.start.microsecond for one in found] == [250, 250]
    assert moved(start, QUARTER, BERLIN) == start + QUARTER


def test_until_is_a_moment_and_belongs_to_the_series() -> None:
    assert starts("FREQ=DAILY;UNTIL=20300207T100000Z", "2030-02-05 10:00")[-1] == "02-07 10:00"
    assert starts("FREQ=DAILY;UNTIL=20300207T095959Z", "2030-02-05 10:00")[-1] == "02-06 10:00"


def test_a_rule_is_read_as_people_write_it() -> None:
    assert read(" rrule:freq=weekly;byday=tu,we;count=2; ", 52).text == "FREQ=WEEKLY;BYDAY=TU,WE;COUNT=2"


def test_a_series_has_as_many_occurrences_as_are_allowed() -> None:
    assert len(starts("FREQ=DAILY;COUNT=5", "2030-02-05 10:00", most=5)) == 5
    assert len(starts("FREQ=DAILY;UNTIL=20300209T100000Z", "2030-02-05 10:00", most=5)) == 5
    with pytest.raises(InvalidInput, match="more than 5 occurrences"):
        starts("FREQ=DAILY;UNTIL=20300210T100000Z", "2030-02-05 10:00", most=5)


NEVER = (
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=DAILY;INTERVAL=7;BYDAY=MO",
    "FREQ=WEEKLY;BYDAY=TU;BYSETPOS=2",
    "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6",
    "FREQ=YEARLY;BYWEEKNO=53;BYMONTH=6",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
)


@pytest.mark.parametrize("text", NEVER)
@pytest.mark.parametrize("end", ["COUNT=2", "UNTIL=20320101T000000Z"])
def test_a_rule_that_never_matches_ends_after_the_steps_of_ten_years(text: str, end: str) -> None:
    start = datetime(2030, 2, 5, 10, tzinfo=UTC)
    steps = recurrence.steps_of(read(f"{text};{end}", 52))
    assert steps <= LONGEST_SERIES.days + 1
    with pytest.raises(InvalidInput, match="none of its occurrences"):
        occurrences(read(f"{text};{end}", 52), BERLIN, Period(start, start + LENGTH), 52)


@pytest.mark.parametrize("frequency", recurrence.FREQUENCIES)
def test_the_steps_reach_the_end_of_the_longest_series(frequency: str) -> None:
    rule = read(f"FREQ={frequency};COUNT=1000", 1000)
    start = datetime(2030, 2, 5, 10, tzinfo=UTC)
    counted = list(recurrence.moments(rule, BERLIN, start))
    assert counted[-1] >= start + LONGEST_SERIES - timedelta(days=366)
    assert len(counted) <= recurrence.steps_of(rule) + 1
    assert all(one < other for one, other in pairwise(counted))
