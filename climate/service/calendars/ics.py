"""Leases as iCalendar (RFC 5545).

The same lease has the same UID everywhere, and each change of it a higher SEQUENCE. A calendar therefore replaces its
entry instead of adding another.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from icalendar import Calendar, vDuration, vText
from icalendar.parser import Contentline

from climate.domain.status import LeaseStatus
from climate.store.notices.calendar_feeds import Entry

PRODUCT = "-//climate//leases//EN"
MEDIA_TYPE = "text/calendar"

REFRESH = timedelta(minutes=15)
"""Time after which clients are asked to read a feed again."""

LONGEST_LINE = 75
"""Bytes of a content line, after which it is folded."""

UNREADABLE = {number: None for number in (*range(32), *range(0x7F, 0xA0)) if number not in (9, 10)}
"""Control characters, which iCalendar does not admit, except tabs and line feeds."""

TENTATIVE, CONFIRMED, CANCELLED = "TENTATIVE", "CONFIRMED", "CANCELLED"


def calendar(name: str, entries: Iterable[Entry], method: str = "PUBLISH") -> bytes:
    """Return a calendar of this name with an event for each lease."""
    made = Calendar()
    made.add("prodid", PRODUCT)
    made.add("version", "2.0")
    made.add("calscale", "GREGORIAN")
    made.add("method", method)
    made.add("name", vText(_readable(name)))
    made.add("x-wr-calname", vText(_readable(name)))
    made.add("refresh-interval", vDuration(REFRESH, {"VALUE": "DURATION"}))
    made.add("x-published-ttl", vDuration(REFRESH))
    head, end, rest = made.to_ical().partition(b"END:VCALENDAR\r\n")
    return b"".join((head, *(event(entry) for entry in entries), end, rest))


def event(entry: Entry) -> bytes:
    """Return the event of a lease, as lines.

    The library writes the same from objects of its own, in seven times the time.
    """
    changed = _date(entry.updated_at or entry.created_at)
    lines = (
        "BEGIN:VEVENT",
        f"UID:{entry.lease_id}@climate",
        f"SEQUENCE:{entry.version - 1}",
        f"DTSTAMP:{changed}",
        f"CREATED:{_date(entry.created_at)}",
        f"LAST-MODIFIED:{changed}",
        f"DTSTART:{_date(entry.period.start)}",
        f"DTEND:{_date(entry.period.end)}",
        f"SUMMARY:{_escaped(entry.name)}",
        f"STATUS:{status(entry)}",
        f"DESCRIPTION:{_escaped(_description(entry))}",
        "END:VEVENT",
    )
    return b"".join(_line(line) for line in lines)


def _line(text: str) -> bytes:
    """Return a content line, folded if it is long."""
    plain = text.encode()
    if len(plain) > LONGEST_LINE:
        plain = bytes(Contentline(text).to_ical())  # type: ignore[no-untyped-call]
    return plain + b"\r\n"


def status(entry: Entry) -> str:
    """Return the status of a lease in a calendar: one that was deleted before its end is cancelled."""
    if entry.removed and (entry.updated_at or entry.created_at) < entry.period.end:
        return CANCELLED
    return TENTATIVE if entry.waits or entry.status == LeaseStatus.HELD else CONFIRMED


def _description(entry: Entry) -> str:
    return "\n".join((*entry.resources, f"Status: {entry.status}"))


def _date(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _escaped(text: str) -> str:
    return vText(_readable(text)).to_ical().decode()


def _readable(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(UNREADABLE)
