"""The port to child zones: requests to the public API of the deployments below this one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from climate.cloud import CloudError
from climate.cloud.children import Child


@dataclass(frozen=True, slots=True)
class ZoneRequest:
    """A request to a child zone.  `path` is below the root of the service and begins with a slash."""

    zone_id: int
    method: str
    path: str
    body: Mapping[str, Any] | None = field(default=None, repr=False)
    query: Mapping[str, str] | None = None
    key: str = ""
    """An Idempotency-Key: the request is carried out once, however often it is sent."""
    service: Literal["reservation", "compute", "image"] = "reservation"
    role: str = "admin"
    """Role of the user for whom the child is asked.  The child grants no more than that."""


@dataclass(frozen=True, slots=True)
class ZoneAnswer:
    """The answer of a child zone, whatever its status."""

    status: int
    body: Any = field(default=None, repr=False)

    @property
    def is_good(self) -> bool:
        """Return whether the child did what it was asked for."""
        return 200 <= self.status < 300


class ChildZones(Protocol):
    """Talks to child zones."""

    def through(self, chain: tuple[str, ...], seconds: float | None) -> "ChildZones":
        """The same children, asked on behalf of a request that came through these zones.

        `seconds`: for how long the last of them waits; None for a user.
        """

    def active(self) -> Sequence[Child]:
        """The children that can be asked, oldest first."""

    def silent(self) -> Sequence[Child]:
        """The children that are not asked now because they do not answer, oldest first."""

    def ask_all(self, requests: Sequence[ZoneRequest]) -> list[ZoneAnswer | CloudError]:
        """Send all at once, each with a deadline of its own; the outcomes are in the order of the requests.

        A CloudError stands for an answer that did not come: the child may have done what it was asked for.
        """


class NoZones:
    """A deployment without children."""

    def through(self, chain: tuple[str, ...], seconds: float | None) -> "NoZones":
        return self

    def active(self) -> Sequence[Child]:
        return ()

    def silent(self) -> Sequence[Child]:
        return ()

    def ask_all(self, requests: Sequence[ZoneRequest]) -> list[ZoneAnswer | CloudError]:
        return [CloudError(f"zone {request.zone_id} is not registered here") for request in requests]
