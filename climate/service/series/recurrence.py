"""Recurrence rules (RRULE of RFC 5545): their limits, and their occurrences in a time zone.

A rule is checked before anything is computed from it, and only as much of it is computed as is needed. Occurrences
keep their local time. A local time that a change of daylight saving skips is the moment of the change; of a local
time that comes twice, the first one counts. The length is elapsed time, the same for all.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from dateutil import rrule

from climate.domain.availability.daily_windows import local_moment
from climate.domain.errors import InvalidInput
from climate.domain.period import Period
from climate.service.leases.dates import LATEST

LONGEST_SERIES = timedelta(days=3653)
"""Maximum time from the start of the request to the last occurrence."""

MOST_INTERVAL = 1000

FREQUENCIES: Mapping[str, tuple[int, int]] = {
    "DAILY": (rrule.DAILY, 1),
    "WEEKLY": (rrule.WEEKLY, 7),
    "MONTHLY": (rrule.MONTHLY, 28),
    "YEARLY": (rrule.YEARLY, 365),
}
"""Constant of each frequency, and the least number of days of its period."""

NUMBERS: Mapping[str, tuple[str, int, int, bool]] = {
    "BYMONTH": ("bymonth", 1, 12, False),
    "BYMONTHDAY": ("bymonthday", 1, 31, True),
    "BYYEARDAY": ("byyearday", 1, 366, True),
    "BYWEEKNO": ("byweekno", 1, 53, True),
    "BYHOUR": ("byhour", 0, 23, False),
    "BYMINUTE": ("byminute", 0, 59, False),
    "BYSETPOS": ("bysetpos", 1, 366, True),
}
"""Parts with lists of numbers: the argument of dateutil, the bounds, and whether negative ones count from the end."""

EXCLUDED: Mapping[str, tuple[str, ...]] = {
    "BYWEEKNO": ("DAILY", "WEEKLY", "MONTHLY"),
    "BYYEARDAY": ("DAILY", "WEEKLY", "MONTHLY"),
    "BYMONTHDAY": ("WEEKLY",),
}
"""Frequencies with which a part has no meaning."""

PARTS = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *NUMBERS)
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
DAY = re.compile(rf"([+-]?[0-9]{{1,2}})?({'|'.join(DAYS)})", re.ASCII)
NUMBER = re.compile(r"[+-]?[0-9]{1,4}", re.ASCII)
UNTIL = re.compile(r"[0-9]{8}T[0-9]{6}Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rule:
    """A checked rule; it ends by `count` or `until`."""

    text: str
    frequency: str
    interval: int
    count: int | None
    until: datetime | None
    arguments: Mapping[str, object]
    """Remaining arguments of dateutil."""


def read(text: str, most: int) -> Rule:
    """Return the rule; raise InvalidInput for one that is wrong, has no end, or more than `most` occurrences."""
    given = _parts(text)
    frequency = given.get("FREQ", "")
    if frequency not in FREQUENCIES:
        hint = "; for several times of a day use FREQ=DAILY with BYHOUR" if frequency in ("HOURLY", "MINUTELY") else ""
        raise _wrong(f"FREQ must be one of {', '.join(FREQUENCIES)}, not {frequency[:20]!r}{hint}")
    count, until = _end(given, most)
    _refuse_combinations(frequency, given)
    arguments: dict[str, object] = {"wkst": DAYS.index(_weekday(given.get("WKST", "MO")))}
    for name, (argument, least, greatest, signed) in NUMBERS.items():
        if name in given:
            arguments[argument] = [_number(name, one, least, greatest, signed) for one in given[name].split(",")]
    if "BYDAY" in given:
        arguments["byweekday"] = [_day(one, frequency) for one in given["BYDAY"].split(",")]
    interval = _number("INTERVAL", given.get("INTERVAL", "1"), 1, MOST_INTERVAL, False)
    return Rule(
        ";".join(f"{name}={value}" for name, value in given.items()), frequency, interval, count, until, arguments
    )


def _parts(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in text.strip().upper().removeprefix("RRULE:").rstrip(";").split(";"):
        name, equals, value = part.partition("=")
        if not equals or name not in PARTS:
            raise _wrong(f"{part[:40]!r} is not one of its parts: {', '.join(PARTS)}, each with = and a value")
        if name in parts:
            raise _wrong(f"{name} is given twice")
        parts[name] = value
    return parts


def _end(given: Mapping[str, str], most: int) -> tuple[int | None, datetime | None]:
    """Return the number of occurrences or the last moment, one of which a rule must have."""
    if ("COUNT" in given) == ("UNTIL" in given):
        raise _wrong("it must end, by either COUNT or UNTIL, such as COUNT=10")
    if "COUNT" in given:
        text = given["COUNT"]
        if not re.fullmatch(r"[0-9]{1,12}", text, re.ASCII) or not 1 <= int(text) <= most:
            raise _wrong(f"COUNT must be 1 to {most} (CLIMATE_SERIES_OCCURRENCES), not {text[:20]!r}")
        return int(text), None
    text = given["UNTIL"]
    try:
        if UNTIL.fullmatch(text):
            return None, datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        pass
    raise _wrong(f"UNTIL must be a time in UTC such as 20300331T220000Z, not {text[:20]!r}")


def _refuse_combinations(frequency: str, given: Mapping[str, str]) -> None:
    for name, frequencies in EXCLUDED.items():
        if name in given and frequency in frequencies:
            raise _wrong(f"{name} cannot be used with FREQ={frequency}")
    if "BYSETPOS" in given and not any(name.startswith("BY") and name != "BYSETPOS" for name in given):
        raise _wrong("BYSETPOS chooses among the dates of another part, such as BYDAY, and none is given")


def _number(name: str, text: str, least: int, most: int, signed: bool) -> int:
    value = int(text) if NUMBER.fullmatch(text) else None
    if value is None or not least <= (abs(value) if signed else value) <= most:
        range_ = f"{least} to {most}" + f", or -{most} to -{least}" * signed
        raise _wrong(f"{name} must have numbers of {range_}, not {text[:20]!r}")
    return value


def _day(text: str, frequency: str) -> object:
    found = DAY.fullmatch(text)
    if found is None:
        raise _wrong(f"BYDAY must have days such as MO, or 1MO for the first Monday, not {text[:20]!r}")
    day, place = rrule.weekday(DAYS.index(found[2])), found[1]
    if place is None:
        return day
    if frequency not in ("MONTHLY", "YEARLY"):
        raise _wrong(f"BYDAY has a number, {text!r}, which needs FREQ=MONTHLY or YEARLY")
    return day(_number("BYDAY", place, 1, 53, True))


def _weekday(text: str) -> str:
    if text not in DAYS:
        raise _wrong(f"WKST must be one of {', '.join(DAYS)}, not {text[:20]!r}")
    return text


def _wrong(message: str) -> InvalidInput:
    return InvalidInput(f"rule: {message}")


def occurrences(rule: Rule, zone: ZoneInfo, first: Period, most: int) -> list[Period]:
    """Return the periods of the rule, from its first date at or after the start of `first`, all as long as that.

    Raise InvalidInput if there are none, more than `most`, or some after LONGEST_SERIES.
    """
    horizon = first.start + LONGEST_SERIES
    if rule.until is not None and rule.until > horizon:
        raise _wrong(f"UNTIL may be {LONGEST_SERIES.days} days after the start at most")
    starts = _starts(moments(rule, zone, first.start), rule.until or horizon, rule.count or most + 1)
    if len(starts) > most:
        raise _wrong(f"it has more than {most} occurrences (CLIMATE_SERIES_OCCURRENCES) until UNTIL")
    if not starts or len(starts) < (rule.count or 0):
        found = f"only {len(starts)}" if starts else "none"
        raise _wrong(f"{found} of its occurrences lie within {LONGEST_SERIES.days} days of the start")
    length = first.end - first.start
    if starts[-1] + length > LATEST:
        raise _wrong(f"its last occurrence ends after {LATEST:%Y-%m-%d}, the last possible date")
    return [Period(start, start + length) for start in starts]


def _starts(found: Iterator[datetime], last: datetime, wanted: int) -> list[datetime]:
    """Return the first different moments, `wanted` at most, up to the last one."""
    starts: list[datetime] = []
    for start in takewhile(lambda moment: moment <= last, found):
        if not starts or start > starts[-1]:  # around a skipped hour, two local times are one moment
            starts.append(start)
        if len(starts) == wanted:
            break
    return starts


class _Exhausted(Exception):
    """The rule was computed up to the horizon."""


class _Interval(int):
    """Interval of a rule that ends its computation after some steps.

    dateutil adds the interval once for each period, and looks at its own end only at a date that matches. Without
    this, a rule that never matches would be computed up to the year 9999.
    """

    steps: int

    def _step(self) -> int:
        self.steps -= 1
        if self.steps < 0:
            raise _Exhausted
        return int(self)

    def __radd__(self, other: int) -> int:
        return other + self._step()

    def __mul__(self, other: int) -> int:
        return self._step() * other


def steps_of(rule: Rule) -> int:
    """Return the number of periods of a rule that reach the horizon."""
    return LONGEST_SERIES.days // (FREQUENCIES[rule.frequency][1] * rule.interval) + 1


def moments(rule: Rule, zone: ZoneInfo, begin: datetime) -> Iterator[datetime]:
    """Yield the starts of the rule, up to the horizon."""
    exact = begin.astimezone(zone).replace(tzinfo=None, fold=0)
    local = exact.replace(microsecond=0)
    interval = _Interval(rule.interval)
    interval.steps = steps_of(rule)
    dates = rrule.rrule(FREQUENCIES[rule.frequency][0], dtstart=local, interval=interval, **rule.arguments)
    with suppress(_Exhausted):
        for found in dates:
            yield begin if found == local else moment_of(found, zone) + (exact - local)


def moment_of(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment of a local time: that of the change if it is skipped, the first if it comes twice."""
    return datetime.fromtimestamp(local_moment(local.date(), local.time(), zone, fold=0), UTC)


def moved(moment: datetime, by: timedelta, zone: ZoneInfo) -> datetime:
    """Return the moment whose local time is later by a difference of local times, which may be negative."""
    if not by:
        return moment
    local = moment.astimezone(zone).replace(tzinfo=None, fold=0) + by
    whole = local.replace(microsecond=0)
    return moment_of(whole, zone) + (local - whole)
