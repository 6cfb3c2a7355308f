"""Daily and weekly windows in a named time zone, as periods of UTC.

A window names days and local times. Its ends are converted one by one: on the day of a change of daylight saving time
it is an hour shorter or longer. A local time that does not exist counts as the moment of the change. If a local time
comes twice, a window begins at the first and ends at the second.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from climate.domain.errors import InvalidInput

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
ONE_DAY = timedelta(days=1)
LOCAL = re.compile(r"localtime\Z|posixrules\Z|right/|posix/")
"""Names of the tz database on a system that are not in the IANA list, such as that of the zone of this machine."""

Span = tuple[int, int]
"""Begin and end in seconds since 1970, half-open."""


@dataclass(frozen=True, slots=True)
class Window:
    """Local times on days of the week; 0 is Monday. A window whose end is not after its begin ends the next day."""

    days: frozenset[int]
    begin: time
    end: time
    zone: ZoneInfo


def zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name; raise InvalidInput for one that does not exist."""
    try:
        if not LOCAL.match(name):
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise InvalidInput(f"{name[:60]!r} is not a time zone: name one as in the IANA list, Europe/Berlin")


def openings(windows: Sequence[Window], horizon: Span) -> list[Span]:
    """Return the parts of the horizon in the windows, merged where they touch; all of it if there are no windows."""
    if not windows:
        return [horizon]
    spans = sorted(span for window in windows for span in _of(window, horizon))
    merged: list[Span] = []
    for begin, end in spans:
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _of(window: Window, horizon: Span) -> Iterator[Span]:
    first, last = (datetime.fromtimestamp(at, UTC).astimezone(window.zone).date() for at in horizon)
    day = first - ONE_DAY  # a window may reach over midnight
    while day <= last:
        if day.weekday() in window.days:
            until = day if window.begin < window.end else day + ONE_DAY
            begin = max(local_moment(day, window.begin, window.zone, fold=0), horizon[0])
            end = min(local_moment(until, window.end, window.zone, fold=1), horizon[1])
            if begin < end:
                yield begin, end
        day += ONE_DAY


def local_moment(day: date, at: time, zone: ZoneInfo, *, fold: int) -> int:
    """Return the moment of a local time; that of the change, if the change skips the local time."""
    local = datetime.combine(day, at, zone)
    early, late = (local.replace(fold=one).timestamp() for one in (0, 1))
    if early <= late:
        return int(late if fold else early)
    # Skipped: with fold=1 the later offset holds, with fold=0 the former one. The change lies between.
    return _change(int(late), int(early), zone)


def _change(low: int, high: int, zone: ZoneInfo) -> int:
    """Return the second in (low, high] from which the offset of the zone is another one."""
    before = datetime.fromtimestamp(low, zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        same = datetime.fromtimestamp(middle, zone).utcoffset() == before
        low, high = (middle, high) if same else (low, middle)
    return high
