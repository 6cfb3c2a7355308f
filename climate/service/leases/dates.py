"""Parser of dates in Blazar's form and ISO 8601, to UTC."""

import re
from datetime import UTC, datetime

from climate.domain.errors import InvalidInput

PEER = "%Y-%m-%d %H:%M"
PEER_SHAPE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2}) ([0-9]{1,2}):([0-9]{1,2})", re.ASCII)
ISO_SHAPE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?", re.ASCII
)
EARLIEST, LATEST = datetime(2000, 1, 2, tzinfo=UTC), datetime(2199, 12, 31, tzinfo=UTC)


def read(given: object) -> datetime:
    """Parse a date to UTC; one without a zone is in UTC. Raise InvalidInput with the accepted forms."""
    if not isinstance(given, str):
        raise _invalid(given)
    text = given.strip() if given.isascii() else ""
    try:
        if peer := PEER_SHAPE.fullmatch(text):
            year, month, day, hour, minute = map(int, peer.groups())
            moment = datetime(year, month, day, hour, minute, tzinfo=UTC)
        elif ISO_SHAPE.fullmatch(text):
            moment = datetime.fromisoformat(text)
            moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
        else:
            raise _invalid(given)
    except (ValueError, OverflowError):
        raise _invalid(given) from None
    if not EARLIEST <= moment <= LATEST:
        raise InvalidInput(f"{text} is out of range: years 2000 to 2199")
    return moment


def _invalid(given: object) -> InvalidInput:
    shown = str(given)[:60]
    return InvalidInput(
        f"{shown} is an invalid date. Required format: {PEER} (UTC), or ISO 8601 such as 2030-01-31T09:00:00+01:00"
    )
