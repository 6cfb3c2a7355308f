"""The port to child zones: requests to their public API, one at a time or to all at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from climate.compute.errors import ComputeError
from climate.compute.zones.models import FROM_USER, ChildZone, ZoneChain

Service = Literal["compute", "reservation", "image"]

CHAIN_HEADER = "X-Zone-Chain"
"""Ids of the zones that a forwarded request came through, by commas."""

SECONDS_HEADER = "X-Zone-Seconds"
"""Seconds for which the zone that forwarded a request waits for the answer."""

ROLE_HEADER = "X-Zone-Role"
"""Role of the user in the parent zone: the child grants a forwarded request no more than that."""

ID_HEADER = "X-Zone-Id"
"""Random id of the zone that answers /zones/info."""


class ChildError(ComputeError):
    """The child zone could not be talked to."""


class ChildTimeout(ChildError):
    """The child zone did not answer in time."""


class ChildUnreachable(ChildError):
    """No connection to the child zone could be made: the request was not sent."""


class ChildRefused(ChildError):
    """The child zone does not accept the user name and the password."""


class ChildLoop(ChildError):
    """The child zone is above this zone, or is this zone: requests come back to it."""


@dataclass(frozen=True, slots=True)
class ChildRequest:
    """A request to a child zone.  `path` is below the root of the service and begins with a slash."""

    method: str
    path: str
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    query: Mapping[str, str] | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    service: Service = "compute"
    chain: ZoneChain = FROM_USER
    """The chain of the request that this one is a part of; the client adds this zone to it."""


@dataclass(frozen=True, slots=True)
class ChildAnswer:
    """The answer of a child zone, whatever its status."""

    status: int
    body: Any = None
    """Parsed JSON; None when the answer is empty."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_good(self) -> bool:
        """Return whether the child did what it was asked for."""
        return 200 <= self.status < 300


class ChildClient(Protocol):
    """Talks to child zones.  Texts of errors hold no secrets and nothing that a child wrote."""

    def ask(self, zone: ChildZone, request: ChildRequest, seconds: float | None = None) -> ChildAnswer:
        """Send one request; ChildError when it is not answered within `seconds` (None: the setting)."""
        ...

    def ask_all(
        self, requests: Sequence[tuple[ChildZone, ChildRequest]], seconds: float | None = None
    ) -> list[ChildAnswer | ChildError]:
        """Send all at once, with one deadline for each; the outcomes are in the order of the requests."""
        ...
