"""Interface of the engine to child zones: their leases and hosts, over their public API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from climate.cloud import CloudError
from climate.cloud.children import Child


@dataclass(frozen=True, slots=True)
class ZoneRequest:
    """A request to a child zone.  `path` is below the root of the service and begins with a slash."""

    zone_id: int
    method: str
    path: str
    body: Mapping[str, object] | None = field(default=None, repr=False)
    query: Mapping[str, str] | None = None
    key: str = ""
    """Idempotency-Key: the request is carried out once, however often it is sent."""
    service: Literal["reservation", "compute", "image"] = "reservation"
    role: str = "admin"
    """Role of the user on whose behalf the child is asked. The child grants no more than that."""


@dataclass(frozen=True, slots=True)
class ZoneAnswer:
    """The answer of a child zone, whatever its status."""

    status: int
    body: object = field(default=None, repr=False)

    @property
    def is_good(self) -> bool:
        """Return whether the child carried out the request."""
        return 200 <= self.status < 300


class ChildZones(Protocol):
    """Sends requests to child zones."""

    def through(self, chain: tuple[str, ...], seconds: float | None) -> "ChildZones":
        """Return the same children, for a request that came through these zones.

        `seconds` is how long the last of them waits; None for a user.
        """

    def active(self) -> Sequence[Child]:
        """Return the children that can be asked, oldest first."""

    def silent(self) -> Sequence[Child]:
        """Return the children that are not asked now because they do not answer, oldest first."""

    def send_all(self, requests: Sequence[ZoneRequest]) -> list[ZoneAnswer | CloudError]:
        """Send all at once, each with its own deadline; return the outcomes in the order of the requests.

        A CloudError stands for a missing answer; the child may have carried out the request.
        """


class NoZones:
    """A deployment without children."""

    def through(self, chain: tuple[str, ...], seconds: float | None) -> "NoZones":
        return self

    def active(self) -> Sequence[Child]:
        return ()

    def silent(self) -> Sequence[Child]:
        return ()

    def send_all(self, requests: Sequence[ZoneRequest]) -> list[ZoneAnswer | CloudError]:
        return [CloudError(f"zone {request.zone_id} is not registered here") for request in requests]
