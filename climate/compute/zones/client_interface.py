"""Interface of the bundled cloud to child zones: requests to their public API, one or many in parallel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from climate.compute.errors import ComputeError
from climate.compute.zones.models import FROM_USER, ChildZone, ZoneChain

Service = Literal["compute", "reservation", "image"]

CHAIN_HEADER = "X-Zone-Chain"
"""Header: comma-separated ids of the zones that a forwarded request passed."""

SECONDS_HEADER = "X-Zone-Seconds"
"""Header: seconds for which the forwarding zone waits for the answer."""

ROLE_HEADER = "X-Zone-Role"
"""Header: role of the user in the parent zone, which limits the role in the child."""

ID_HEADER = "X-Zone-Id"
"""Header: random id of the zone that answers /zones/info."""


class ChildError(ComputeError):
    """Request to the child zone failed."""


class ChildTimeout(ChildError):
    """Timeout of the child zone."""


class ChildUnreachable(ChildError):
    """Connection to the child zone failed: the request was not sent."""


class ChildRefused(ChildError):
    """Child zone rejected the user name and the password."""


class ChildLoop(ChildError):
    """Child zone is above this zone, or is this zone: requests form a loop."""


@dataclass(frozen=True, slots=True)
class ChildRequest:
    """Request to a child zone. `path` is relative to the root of the service and begins with a slash."""

    method: str
    path: str
    body: Mapping[str, object] | None = field(default=None, repr=False)
    query: Mapping[str, str] | None = None
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    service: Service = "compute"
    chain: ZoneChain = FROM_USER
    """Chain of the original request; the client appends this zone."""


@dataclass(frozen=True, slots=True)
class ChildAnswer:
    """Answer of a child zone with any status."""

    status: int
    body: Any = None
    """Parsed JSON; None if the answer is empty."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_good(self) -> bool:
        """Return whether the status is a success."""
        return 200 <= self.status < 300


class ChildClient(Protocol):
    """Client of child zones. Error messages contain no secrets and no text from a child."""

    def send(self, zone: ChildZone, request: ChildRequest, seconds: float | None = None) -> ChildAnswer:
        """Send one request. Raise ChildError if it is not answered within `seconds` (None: the setting)."""
        ...

    def send_all(
        self, requests: Sequence[tuple[ChildZone, ChildRequest]], seconds: float | None = None
    ) -> list[ChildAnswer | ChildError]:
        """Send all in parallel, each with its own deadline; outcomes are in the order of the requests."""
        ...
