"""Search words: `4 hosts gpu_count>1 6h this week` read as a search for a lease, and written as one.

Every text can be read. The answer names the words that were not understood, so that a page can show them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta, tzinfo

LONGEST = 300
"""Characters that are read; the rest is not understood."""
MOST_HOSTS = 10_000
MOST_DAYS = 730
USUAL_LENGTH = timedelta(hours=1)

UNITS: Mapping[str, timedelta] = {
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "minute": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "hour": timedelta(hours=1),
    "d": timedelta(days=1),
    "day": timedelta(days=1),
    "w": timedelta(weeks=1),
    "week": timedelta(weeks=1),
}
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
OPERATORS = (">=", "<=", "!=", "==", ">", "<", "=")

_UNIT = r"(?:minutes?|mins?|m|hours?|h|days?|d|weeks?|w)"
_LENGTH = rf"\d{{1,6}} ?{_UNIT}(?:(?: ?and)? ?\d{{1,6}} ?{_UNIT})*"
_PIECES = re.compile(rf"(\d{{1,6}}) ?({_UNIT})")
_TOKENS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE | re.ASCII))
    for kind, pattern in (
        (
            "requirement",
            r"([A-Za-z_][\w.:-]{0,63}) ?(>=|<=|!=|==|>|<|=) ?(\"[^\"]{0,100}\"|[^\s\"<>=!]{1,100})(?=\s|$)",
        ),
        ("within", rf"(?:within|in the next)\s+({_LENGTH})(?=\s|$)"),
        ("span", r"(this week|next week|today|tomorrow|now)(?=\s|$)"),
        ("day", rf"(?:on )?({'|'.join(DAYS)})(?=\s|$)"),
        ("date", r"(?:on |from )?(\d{4}-\d{2}-\d{2})(?=\s|$)"),
        ("hosts", r"(\d{1,6}) ?(?:hosts?|machines?|nodes?|x)(?=\s|$)"),
        ("length", rf"(?:for )?({_LENGTH})(?=\s|$)"),
        ("filler", r"(?:hosts?|machines?|nodes?|and|with|for)(?=\s|$)"),
    )
)


@dataclass(frozen=True, slots=True)
class Requirement:
    """Condition on a property of each host."""

    name: str
    operator: str
    value: str

    def __str__(self) -> str:
        value = f'"{self.value}"' if re.search(r"[\s<>=!]", self.value) or not self.value else self.value
        return f"{self.name}{self.operator}{value}"


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """Search that was understood. Times are UTC; a field that was not given is None."""

    hosts: int | None = None
    length: timedelta | None = None
    earliest: datetime | None = None
    latest: datetime | None = None
    requirements: tuple[Requirement, ...] = ()
    unknown: tuple[str, ...] = field(default=())
    """Words that were not understood."""


def read(text: str, now: datetime, zone: tzinfo = UTC) -> SearchQuery:
    """Return the search in a text; days begin at midnight in `zone`."""
    wish, rest = (
        SearchQuery(unknown=(text[LONGEST:],) if text[LONGEST:].strip() else ()),
        text[:LONGEST].replace("×", " x "),
    )
    rest = re.sub(r"(\d)\s+x(?=\s|$)", r"\1x", rest)
    while rest := rest.lstrip():
        for kind, pattern in _TOKENS:
            match = pattern.match(rest)
            if match:
                changed = _READ[kind](wish, match, now.astimezone(zone))
                break
        else:
            match, changed = re.match(r"\S+", rest), None
        word = match.group() if match else rest
        wish = changed or replace(wish, unknown=(*wish.unknown, word))
        rest = rest[len(word) :]
    return wish


def words(length: timedelta) -> str:
    """Return a length as search words, such as `1d 2h`; it is rounded down to minutes."""
    minutes, parts = int(length.total_seconds()) // 60, []
    for unit, size in (("w", 10080), ("d", 1440), ("h", 60), ("m", 1)):
        number, minutes = divmod(minutes, size)
        if number:
            parts.append(f"{number}{unit}")
    return " ".join(parts) or "0m"


def length_of(text: str) -> timedelta | None:
    """Return the length that a text such as `1d 12h` names; None if it is none of 1 minute to MOST_DAYS days."""
    if not re.fullmatch(_LENGTH, text.strip(), re.IGNORECASE | re.ASCII):
        return None
    total = timedelta(0)
    for number, unit in _PIECES.findall(text.lower()):
        total += int(number) * UNITS[unit if len(unit) == 1 else unit.rstrip("s")]
    return total if timedelta(minutes=1) <= total <= timedelta(days=MOST_DAYS) else None


def _hosts(query: SearchQuery, match: re.Match[str], now: datetime) -> SearchQuery | None:
    count = int(match[1])
    return replace(query, hosts=count) if query.hosts is None and 1 <= count <= MOST_HOSTS else None


def _length(query: SearchQuery, match: re.Match[str], now: datetime) -> SearchQuery | None:
    length = length_of(match[1])
    return replace(query, length=length) if length is not None and query.length is None else None


def _requirement(query: SearchQuery, match: re.Match[str], now: datetime) -> SearchQuery | None:
    name, operator, value = match.groups()
    one = Requirement(name, "==" if operator == "=" else operator, value.strip('"'))
    return replace(query, requirements=(*query.requirements, one))


def _within(query: SearchQuery, match: re.Match[str], now: datetime) -> SearchQuery | None:
    length = length_of(match[1])
    return None if length is None else _between(query, now, now + length)


def _span(query: SearchQuery, match: re.Match[str], now: datetime) -> SearchQuery | None:
    today, monday = _midnight(now), _midnight(now - timedelta(days=now.weekday()))
    spans = {
        "now": (now, None),
        "today": (now, _later(today, 1)),
        "tomorrow": (_later(today, 1), _later(today, 2)),
        "this week": (now, _later(monday, 7)),
        "next week": (_later(monday, 7), _later(monday, 14)),
    }
    return _between(query, *spans[match[1].lower()])


def _day(query: SearchQuery, match: re.Match[str], now: datetime) -> SearchQuery | None:
    ahead = (DAYS.index(match[1].lower()) - now.weekday()) % 7
    begin = _later(_midnight(now), ahead)
    return _between(query, max(now, begin), _later(begin, 1))


def _date(query: SearchQuery, match: re.Match[str], now: datetime) -> SearchQuery | None:
    try:
        begin = datetime.fromisoformat(match[1]).replace(tzinfo=now.tzinfo)
        return _between(query, max(now, begin), _later(begin, 1)) if _later(begin, 1) > now else None
    except (ValueError, OverflowError):
        return None


def _filler(query: SearchQuery, match: re.Match[str], now: datetime) -> SearchQuery | None:
    return query


def _between(query: SearchQuery, begin: datetime, end: datetime | None) -> SearchQuery | None:
    if query.earliest is not None:
        return None
    return replace(query, earliest=begin.astimezone(UTC), latest=end and end.astimezone(UTC))


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.date(), time(), moment.tzinfo)


def _later(midnight: datetime, days: int) -> datetime:
    """Return a later midnight of the same zone, also where the clock is changed in between."""
    return datetime.combine(midnight.date() + timedelta(days=days), time(), midnight.tzinfo)


_READ: Mapping[str, Callable[[SearchQuery, re.Match[str], datetime], SearchQuery | None]] = {
    "requirement": _requirement,
    "within": _within,
    "span": _span,
    "day": _day,
    "date": _date,
    "hosts": _hosts,
    "length": _length,
    "filler": _filler,
}
