"""Values of zones: a child as the parent knows it, and the chain of zones that a request has come through."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Self

MOST_HOPS = 8
"""Zones that a forwarded request may come through: no tree of deployments is as deep."""

SHARE = 0.7
"""Part of the time left that a zone grants its own children, so that its parent still hears its answer."""


Parts = Mapping[int, tuple[str, ...]]
"""Child zone -> ids of reservations there, which are parts of the reservations that a request names here."""

NO_PARTS: Parts = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ChildZone:
    """A child zone as its parent registered it, with the state that the last polls found."""

    id: int
    api_url: str
    username: str
    password: str = field(repr=False)
    """In plain text.  The database has it sealed."""
    weight_offset: float = 0.0
    weight_scale: float = 1.0
    name: str | None = None
    """The name that the child reports; None until its first answer."""
    capabilities: str | None = None
    """`key=value, key=value` as the child reports; None until its first answer."""
    is_active: bool = True
    attempts: int = 0
    """Polls in a row that failed."""
    last_seen: datetime | None = None
    last_error: str | None = None
    last_error_at: datetime | None = None
    skipped_until: datetime | None = None
    """Requests do not wait for a child that has just let a deadline pass; None: it is asked."""
    deployment_id: str | None = None
    """The random id by which the child recognises its own requests; None until its first answer."""
    loop_at: datetime | None = None
    """The time at which a request to the child was seen to come back to this zone."""

    def is_asked(self, now: datetime) -> bool:
        """Return whether requests are sent to the child at `now` (UTC)."""
        return self.is_active and (self.skipped_until is None or self.skipped_until <= now)


@dataclass(frozen=True, slots=True)
class ZoneChain:
    """Random ids of the zones that a request has come through, and the time that the last of them waits."""

    ids: tuple[str, ...] = ()
    seconds: float | None = None
    """None: the request comes from a user, and no zone waits for its answer."""

    def grown(self, own_id: str) -> Self:
        """The chain as a child gets it from the zone `own_id`."""
        return replace(self, ids=(*self.ids, own_id))

    def limit(self, seconds: float) -> float:
        """The seconds that children may take: at most `seconds`, and less than the parent waits."""
        return seconds if self.seconds is None else min(seconds, self.seconds * SHARE)

    def header(self) -> str:
        """The ids as text for a header."""
        return ",".join(self.ids)


FROM_USER = ZoneChain()
"""The chain of a request that no zone has forwarded."""
