"""Offers: the answer to a search, sealed into an id, so that nothing is stored for them.

The id holds all that the lease needs, and says for which project and until when. An offer promises nothing: it can be
taken as long as nobody else takes the resources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from climate.context import Climate
from climate.domain.errors import Conflict, NotFound
from climate.domain.period import Period
from climate.domain.policy import Caller
from climate.sealed_secrets import Unreadable
from climate.time_ordered_ids import time_ordered_id

LIFETIME = timedelta(minutes=10)
"""Longest time for which an offer can be taken."""

LATE = timedelta(seconds=50)
"""Time after its start for which an offer can be taken, within what a new lease allows."""

LONGEST_ID = 100_000


@dataclass(frozen=True, slots=True)
class Offered:
    """Number that one reservation would get, and how many are free for the whole time, these included."""

    resource_type: str
    count: int | None
    """None for a reservation that takes nothing of the pools."""
    free: int | None


@dataclass(frozen=True, slots=True)
class Offer:
    """A time at which everything fits."""

    id: str
    start: datetime
    end: datetime
    expires_at: datetime
    reservations: tuple[Offered, ...]
    cost: float
    """Greatest share of a limit of the project that would be in use."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The lease that an offer stands for."""

    number: UUID
    start: datetime
    end: datetime
    reservations: Sequence[Mapping[str, object]]


def expiry(start: datetime, now: datetime) -> datetime:
    """Return the expiry of an offer of that start, in whole seconds as people read it."""
    return min(now + LIFETIME, start + LATE).replace(microsecond=0)


def seal(climate: Climate, caller: Caller, period: Period, specs: Sequence[Mapping[str, object]], now: datetime) -> str:
    """Return the id of an offer for the caller's project."""
    start, end = period.start, period.end
    content = {
        "offer": str(time_ordered_id()),
        "project": caller.project_id,
        "start": start.isoformat(),
        "end": end.isoformat(),
        "until": expiry(start, now).isoformat(),
        "reservations": [dict(spec) for spec in specs],
    }
    return climate.vault.seal(content)


def opened(climate: Climate, caller: Caller, offer_id: str, now: datetime) -> Terms:
    """Return the lease of an offer.

    Raise NotFound for an id that is not an offer to the caller's project, and Conflict for one that has expired.
    """
    try:
        content = climate.vault.open(offer_id)
    except (Unreadable, ValueError):
        content = {}
    if "offer" not in content or content.get("project") != caller.project_id:
        raise NotFound(f"Object with {{'offer_id': '{offer_id[:40]}'}} not found")
    until = datetime.fromisoformat(content["until"])
    if until <= now:
        raise Conflict(f"The offer expired at {until:%Y-%m-%d %H:%M:%S} UTC: search again")
    start, end = (datetime.fromisoformat(content[name]) for name in ("start", "end"))
    return Terms(UUID(content["offer"]), start, end, content["reservations"])
