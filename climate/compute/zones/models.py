"""Values of zones: a registered child, and the chain of zones of a request."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Self

MOST_HOPS = 8
"""Maximum number of zones that a forwarded request may pass."""

SHARE = 0.7
"""Share of the remaining time that a zone gives its children, so that its parent still gets the answer."""


Parts = Mapping[int, tuple[str, ...]]
"""Child zone -> ids of reservations there that are parts of the request's reservations."""

NO_PARTS: Parts = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ChildZone:
    """Child zone as registered, with the state of the last polls."""

    id: int
    api_url: str
    username: str
    password: str = field(repr=False)
    """Password in plain text; encrypted in the database."""
    weight_offset: float = 0.0
    weight_scale: float = 1.0
    name: str | None = None
    """Name reported by the child; None until its first answer."""
    capabilities: str | None = None
    """`key=value, key=value` as reported by the child; None until its first answer."""
    is_active: bool = True
    attempts: int = 0
    """Number of consecutive failed polls."""
    last_seen: datetime | None = None
    last_error: str | None = None
    last_error_at: datetime | None = None
    skipped_until: datetime | None = None
    """Time until which requests skip the child after a timeout; None: it is asked."""
    deployment_id: str | None = None
    """Random id by which the child detects loops; None until its first answer."""
    loop_at: datetime | None = None
    """Time when a request to the child was seen to return to this zone."""

    def is_asked(self, now: datetime) -> bool:
        """Return whether requests are sent to the child at `now` (UTC)."""
        return self.is_active and (self.skipped_until is None or self.skipped_until <= now)


@dataclass(frozen=True, slots=True)
class ZoneChain:
    """Random ids of the zones that a request passed, and the time that the last of them waits."""

    ids: tuple[str, ...] = ()
    seconds: float | None = None
    """None: the request comes from a user, and no zone waits for its answer."""

    def grown(self, own_id: str) -> Self:
        """Return the chain for a child of the zone `own_id`."""
        return replace(self, ids=(*self.ids, own_id))

    def limit(self, seconds: float) -> float:
        """Return the time limit for children in seconds: at most `seconds`, and less than the parent waits."""
        return seconds if self.seconds is None else min(seconds, self.seconds * SHARE)

    def header(self) -> str:
        """Return the ids as a header value."""
        return ",".join(self.ids)


FROM_USER = ZoneChain()
"""Chain of a request that no zone has forwarded."""
