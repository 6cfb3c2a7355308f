"""Fields of forms: texts, numbers, lengths and times; errors name the field and what would be right."""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from werkzeug.datastructures import MultiDict

from api.web import preferences, search_query
from climate.domain.errors import InvalidInput
from climate.whole_numbers import whole_number

Form = MultiDict[str, str]
LONGEST = 255
FIRST_YEAR, LAST_YEAR = 1970, 9000


def text(form: Form, name: str, longest: int = LONGEST) -> str:
    """Return a text of one line without blanks around it. Raise InvalidInput for one that is too long."""
    given = form.get(name, "").strip()
    if len(given) > longest or not given.isprintable():
        raise InvalidInput(f"{name} must be one line of at most {longest} characters")
    return given


def number(form: Form, name: str, default: int, lowest: int, highest: int) -> int:
    """Return a whole number; the default for an empty field."""
    given = form.get(name, "").strip()
    if not given:
        return default
    result = whole_number(given)
    if result is None or not lowest <= result <= highest:
        raise InvalidInput(f"{name} is {given[:20]!r}: a whole number from {lowest} to {highest} is expected")
    return result


def marker(form: Form, name: str) -> int | None:
    """Return the number of the last row of the page before; None for the first page, and for another text."""
    return whole_number(form.get(name, ""))


def length(form: Form, name: str, default: timedelta) -> timedelta:
    """Return a length such as `1d 6h`; the default for an empty field."""
    given = form.get(name, "").strip()
    if not given:
        return default
    known = search_query.length_of(given)
    if known is None:
        raise InvalidInput(f"{name} is {given[:40]!r}: a time such as 6h, 2d or 1d 12h is expected")
    return known


def moment(form: Form, name: str) -> datetime | None:
    """Return a time of the user's zone, or UTC without one, as UTC; None for an empty field."""
    given = form.get(name, "").strip()
    if not given:
        return None
    try:
        read = datetime.fromisoformat(given)
    except ValueError:
        raise InvalidInput(f"{name} is {given[:40]!r}: a time such as 2030-01-31T09:00 is expected") from None
    if not FIRST_YEAR <= read.year <= LAST_YEAR:
        raise InvalidInput(f"{name} is {given[:40]!r}: a year from {FIRST_YEAR} to {LAST_YEAR} is expected")
    return (read if read.tzinfo else read.replace(tzinfo=zone())).astimezone(UTC)


def zone() -> tzinfo:
    """Return the time zone in which forms are filled in."""
    chosen = preferences.zone()
    return ZoneInfo(chosen) if chosen else UTC


def local(value: datetime | None) -> str:
    """Return a time as a field for date and time shows it."""
    return "" if value is None else value.astimezone(zone()).strftime("%Y-%m-%dT%H:%M")
