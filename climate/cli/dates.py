"""Times and durations on the command line; internally and in requests all times are UTC."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from climate.cli.response_types.leases import Decision

UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
SPAN = re.compile(r"(?:\d{1,6}[wdhms])+")
RELATIVE = re.compile(r"(?:now)?\s*([+-])\s*(.+)")
DAY = re.compile(r"(today|tomorrow)(?:\s+(\d{1,2}):(\d{2}))?")
ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
MOMENT_FORMS = "now, +30m, 'tomorrow 08:00', '2026-11-20 17:45' (UTC) or 2026-11-20T17:45:00+01:00"
NEAR, WEEK = timedelta(hours=20), timedelta(days=6)
"""Distances from now up to which a time is shown as a distance, and as a day of the week."""
SPAN_FORMS = "90s, 45m, 6h, 1d12h or 2w"


def span(text: str) -> timedelta:
    """Return a duration like `1d12h`; ValueError lists the valid forms."""
    if not SPAN.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration; write {SPAN_FORMS}")
    parts = re.findall(r"(\d+)([wdhms])", text)
    return sum((timedelta(**{UNITS[unit]: int(number)}) for number, unit in parts), timedelta())


@dataclass(frozen=True, slots=True)
class Moment:
    """A time that may be relative to the present."""

    absolute: datetime | None = None
    offset: timedelta = timedelta()
    days: int | None = None
    at: time = time()

    @property
    def is_now(self) -> bool:
        return self.absolute is None and self.days is None and not self.offset

    def when(self, now: datetime) -> datetime:
        """Return the time in UTC for this present time."""
        if self.absolute is not None:
            return self.absolute
        if self.days is not None:
            return datetime.combine(now.astimezone(UTC).date() + timedelta(days=self.days), self.at, UTC)
        return now + self.offset


def moment(text: str) -> Moment:
    """Return a time; without a zone it is UTC.  ValueError lists the valid forms."""
    text = text.strip()
    if text == "now":
        return Moment()
    if relative := RELATIVE.fullmatch(text):
        distance = span(relative[2])
        return Moment(offset=distance if relative[1] == "+" else -distance)
    if day := DAY.fullmatch(text):
        return Moment(days=int(day[1] == "tomorrow"), at=_clock(text, int(day[2] or 0), int(day[3] or 0)))
    return Moment(absolute=_absolute(text))


def _clock(text: str, hour: int, minute: int) -> time:
    try:
        return time(hour, minute)
    except ValueError:
        raise ValueError(f"{text!r} is not a time of the day") from None


def _absolute(text: str) -> datetime:
    try:
        if not ISO.fullmatch(text):
            raise ValueError(text)
        read = datetime.fromisoformat(text)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a time; write {MOMENT_FORMS}") from None


def wire(when: datetime) -> str:
    """Return a time as it is sent and shown: UTC, ISO 8601, with fractions of a second only if it has some."""
    return when.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def read(text: str) -> datetime:
    """Return a time in an answer of the server, which may omit the zone (UTC)."""
    when = datetime.fromisoformat(text)
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def with_zone(value: object) -> object:
    """Return a time in an answer with its zone; any other value unchanged."""
    if not isinstance(value, str) or not ISO.fullmatch(value) or len(value) < len("2026-01-01T00:00"):
        return value
    try:
        return wire(read(value))
    except ValueError:
        return value


def instant(value: object) -> datetime | None:
    """Return the time that a value of an answer is; None for any other value."""
    if not isinstance(value, str) or not ISO.fullmatch(value) or len(value) < len("2026-01-01T00:00"):
        return None
    try:
        return read(value)
    except ValueError:
        return None


def end_of(begins: datetime, end: Moment | None, length: timedelta | None, now: datetime) -> datetime:
    """Return the end of a period from --end, or else from --for; the command has required one of them."""
    return end.when(now) if end else begins + (length or timedelta())


def spoken(when: datetime, now: datetime, utc: bool = False) -> str:
    """Return a time as people say it: `in 2 h`, `Tue 09:00`, or the date; in the local zone unless `utc`."""
    ahead = when - now
    if abs(ahead) < NEAR:
        if abs(ahead) < timedelta(seconds=1.5):
            return "now"
        return f"in {duration(ahead)}" if ahead > timedelta() else f"{duration(-ahead)} ago"
    local = when.astimezone(UTC if utc else None)
    zone = " UTC" if utc else ""
    return f"{local:%a %H:%M}{zone}" if abs(ahead) < WEEK else f"{local:%Y-%m-%d %H:%M}{zone}"


def duration(span: timedelta) -> str:
    """Return a length of time in its two largest units: `1 h 30 min`; without seconds from two minutes on."""
    unit = 60 if span >= timedelta(minutes=2) else 1
    seconds = max(round(span.total_seconds() / unit) * unit, 0)
    parts: list[str] = []
    for name, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        number, seconds = divmod(seconds, size)
        if number or parts:
            parts.append(f"{number} {name}" if number else "")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if part) or "0 s"


class MomentType(click.ParamType[Moment]):
    """A click parameter for a time."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Moment:
        if isinstance(value, Moment):
            return value
        try:
            return moment(str(value))
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)


class SpanType(click.ParamType[timedelta]):
    """A click parameter for a duration."""

    name = "span"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        try:
            return span(str(value))
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)


DECISIONS = ("version", "at", "author", "decided", "request_id")
"""Columns of a history of decisions."""


def decisions(history: "Iterable[Decision]", key: str) -> list[dict[str, object]]:
    """Return the rows of a history with author and decision, which is below `key` in the entries."""
    return [
        {
            **line,
            "author": line["actor"].get("user_id"),
            "decided": " ".join(f"{name}={_value(value)}" for name, value in sorted(line["body"][key].items())),
        }
        for line in history
    ]


def _value(value: object) -> str:
    return "unset" if value is None else str(value)
