"""Share of a reservation in a child zone or cell."""

from dataclasses import dataclass, replace
from uuid import UUID

from climate.domain.facts import LeasePartConfirmed, LeasePartHeld, LeasePartReleased
from climate.domain.status import PartState


@dataclass(frozen=True, slots=True)
class Part:
    """Share of a reservation in a child zone or cell."""

    id: UUID
    zone_id: int
    zone: str
    least: int
    most: int
    state: PartState = PartState.PLANNED
    lease_id: UUID | None = None
    """Id of the child's lease; None until the child confirms that it holds the part."""
    reservation_id: UUID | None = None
    """Id of the child's reservation."""
    hosts: int = 0
    """Number of hosts that the child holds."""
    cell: str = ""
    """Path of the cell; empty for a zone."""

    @property
    def where(self) -> str:
        """Return the name of the child for messages."""
        return f"cell {self.cell}" if self.cell else f"zone {self.zone}"

    @property
    def counted(self) -> int:
        """Return the hosts that count in limits: those that the child holds, or as many as it is asked for."""
        return self.hosts if self.hosts or self.state is PartState.RELEASED else self.most

    @property
    def in_force(self) -> bool:
        """Return whether the child may keep it beyond the expiry of a hold: only held parts are confirmed."""
        return self.state in (PartState.HELD, PartState.CONFIRMED)


def moved(parts: tuple[Part, ...], fact: LeasePartHeld | LeasePartConfirmed | LeasePartReleased) -> tuple[Part, ...]:
    """Return the parts of a reservation after a fact about one of them."""

    def after(part: Part) -> Part:
        if isinstance(fact, LeasePartHeld):
            held = replace(part, state=PartState.HELD, hosts=fact.hosts, lease_id=fact.lease_id)
            return replace(held, reservation_id=fact.reservation_id)
        is_confirmed = isinstance(fact, LeasePartConfirmed)
        return replace(part, state=PartState.CONFIRMED if is_confirmed else PartState.RELEASED)

    return tuple(after(part) if part.id == fact.part_id else part for part in parts)
