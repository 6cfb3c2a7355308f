"""Windows in time zones: both changes of daylight saving time, midnight, weeks and merged windows."""

from datetime import UTC, datetime, time

import pytest

from climate.domain.availability.daily_windows import Window, openings, zone
from climate.domain.errors import InvalidInput

BERLIN = zone("Europe/Berlin")
DAILY = frozenset(range(7))


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def window(begin: str, end: str, days: frozenset[int] = DAILY) -> Window:
    return Window(days, time.fromisoformat(begin), time.fromisoformat(end), BERLIN)


def spelled(windows: list[Window], begin: str, end: str) -> list[tuple[str, str]]:
    found = openings(windows, (at(begin), at(end)))
    return [tuple(f"{datetime.fromtimestamp(one, UTC):%d %H:%M}" for one in span) for span in found]  # type: ignore[misc]


def test_office_hours_follow_the_change_to_summer_time() -> None:
    found = spelled([window("08:00", "18:00")], "2030-03-30 00:00", "2030-04-01 00:00")
    assert found == [("30 07:00", "30 17:00"), ("31 06:00", "31 16:00")]


def test_an_hour_that_does_not_exist_is_the_moment_of_the_change() -> None:
    assert spelled([window("02:30", "04:00")], "2030-03-31 00:00", "2030-03-31 12:00") == [("31 01:00", "31 02:00")]
    assert spelled([window("01:00", "02:30")], "2030-03-31 00:00", "2030-03-31 12:00") == [("31 00:00", "31 01:00")]
    assert spelled([window("02:10", "02:50")], "2030-03-31 00:00", "2030-03-31 12:00") == []


def test_an_hour_that_comes_twice_counts_twice() -> None:
    assert spelled([window("02:30", "03:00")], "2030-10-27 00:00", "2030-10-27 12:00") == [("27 00:30", "27 02:00")]
    assert spelled([window("01:00", "02:30")], "2030-10-27 00:00", "2030-10-27 12:00") == [("27 00:00", "27 01:30")]


def test_a_window_over_midnight_and_whole_days_that_touch() -> None:
    found = spelled([window("20:00", "06:00", frozenset({4}))], "2030-01-04 00:00", "2030-01-07 00:00")
    assert found == [("04 19:00", "05 05:00")]
    weekend = window("00:00", "00:00", frozenset({5, 6}))
    assert spelled([weekend], "2030-01-04 00:00", "2030-01-09 00:00") == [("04 23:00", "06 23:00")]


def test_windows_are_cut_and_merged() -> None:
    both = [window("08:00", "12:00"), window("11:00", "15:00")]
    assert spelled(both, "2030-01-04 08:00", "2030-01-04 20:00") == [("04 08:00", "04 14:00")]
    assert openings([], (3, 9)) == [(3, 9)]


@pytest.mark.parametrize(
    "name", ["Mars/Olympus", "", "../etc/passwd", "/etc/localtime", "a\x00b", "Europe", "CET " * 99]
)
def test_zones_that_do_not_exist(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a time zone"):
        zone(name)
