"""Interface to child deployments: requests of the engine to zones and cells below this one for a lease.

A child holds a part of a lease as a lease of its own. Each action may be sent twice and may arrive late: it is carried
out once, or refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal, Protocol
from uuid import UUID

from climate.cloud import CloudError

Kind = Literal["zone", "cell"]

ZONE: Kind = "zone"
CELL: Kind = "cell"


@dataclass(frozen=True, slots=True)
class Child:
    """A zone or cell below this deployment."""

    kind: Kind
    id: int
    """Number of a zone in this deployment's registry; 0 for a cell."""
    name: str
    """The name of a zone, or the path of a cell."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Asker:
    """User on whose behalf a child is asked; the child grants no more than the role allows."""

    project_id: str
    role: str


@dataclass(frozen=True, slots=True)
class PartOrder:
    """A lease with one reservation of hosts, as requested from a child. No `start` means now."""

    name: str
    start: datetime | None
    end: datetime
    spec: Mapping[str, object] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Offer:
    """Report the number of hosts that are available, and allocate nothing."""

    order: PartOrder


@dataclass(frozen=True, slots=True)
class Hold:
    """Hold a part. `key` is that of the part; the child holds it once however often the request arrives."""

    order: PartOrder
    key: str
    seconds: int
    """Length of the hold."""
    until: datetime
    """End of the parent's own hold; a later answer is useless."""


@dataclass(frozen=True, slots=True)
class Confirm:
    """Confirm a held part as an ordinary lease."""

    lease_id: UUID
    key: str


@dataclass(frozen=True, slots=True)
class Look:
    """Show the child's lease. `number` fences off earlier prolongations that are still under way."""

    lease_id: UUID
    number: int


@dataclass(frozen=True, slots=True)
class Prolong:
    """Change the end of the child's lease. `number` grows with each version of the parent's lease."""

    lease_id: UUID
    end: datetime
    number: int
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """Release a part."""

    lease_id: UUID


Action = Offer | Hold | Confirm | Look | Prolong | Release


@dataclass(frozen=True, slots=True)
class PartRequest:
    """An action for a child."""

    child: Child
    asker: Asker
    action: Action


class Verdict(StrEnum):
    """The outcome of an action in a child."""

    DONE = "done"
    GONE = "gone"
    """The child no longer has such a lease."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class PartLease:
    """The lease of a child, as far as its parent may see it."""

    id: UUID
    reservation_id: UUID | None
    hosts: int | None
    """Number of hosts that are held; None once the lease is confirmed."""
    end: datetime | None
    is_over: bool
    """Return whether it has ended or is ending."""


@dataclass(frozen=True, slots=True)
class PartAnswer:
    """The answer of a child, whatever its verdict."""

    verdict: Verdict
    lease: PartLease | None = None
    reason: str = ""
    """Status or class of a refusal; contains no text of the child."""

    @property
    def is_done(self) -> bool:
        """Return whether the child did what it was asked for."""
        return self.verdict is Verdict.DONE


Outcome = PartAnswer | CloudError
"""A CloudError stands for a missing answer; the child may have carried out the request."""


class ChildDeployments(Protocol):
    """Sends requests for parts of leases to child deployments."""

    def active(self) -> Sequence[Child]:
        """Return the children that can be asked, in a stable order."""

    def silent(self) -> Sequence[Child]:
        """Return the children that are not asked now because they do not answer, in a stable order."""

    def send_all(self, requests: Sequence[PartRequest]) -> list[Outcome]:
        """Send all at once, each with a deadline; return the outcomes in the order of the requests."""


class NoChildren:
    """A deployment without children."""

    def active(self) -> Sequence[Child]:
        return ()

    def silent(self) -> Sequence[Child]:
        return ()

    def send_all(self, requests: Sequence[PartRequest]) -> list[Outcome]:
        return [CloudError(f"{request.child} is not known here") for request in requests]


@dataclass(frozen=True, slots=True)
class ChildrenOfKinds:
    """All children of a deployment, each asked over its own transport."""

    kinds: Mapping[Kind, ChildDeployments]

    def active(self) -> Sequence[Child]:
        return [child for children in self.kinds.values() for child in children.active()]

    def silent(self) -> Sequence[Child]:
        return [child for children in self.kinds.values() for child in children.silent()]

    def send_all(self, requests: Sequence[PartRequest]) -> list[Outcome]:
        result: dict[int, Outcome] = {}
        for kind, children in self.kinds.items():
            indexes = [index for index, request in enumerate(requests) if request.child.kind == kind]
            if indexes:
                result |= zip(indexes, children.send_all([requests[index] for index in indexes]), strict=True)
        return [result[index] for index in range(len(requests))]
