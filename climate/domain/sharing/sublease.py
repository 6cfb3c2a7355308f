"""Sub-leases: leases that have hosts of another lease, the parent, for a part of its time.

A sub-lease holds its hosts from the time at which they are taken until the end of the parent's holds. The parent's
holds on these hosts end when that of the sub-lease begins. So each host is held by one lease at any time. When the
sub-lease is over, its holds stay in force until the parent has the hosts again, or is over too.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from climate.domain.errors import Conflict
from climate.domain.facts import Hold
from climate.domain.period import Period
from climate.domain.planning.preemption import shortened
from climate.domain.sharing.sublease_facts import (
    HostsSublet,
    ParentLease,
    SubleaseProlonged,
    SubleaseReturned,
    SubletFact,
    SubletHostsTaken,
    SubletWarned,
)

if TYPE_CHECKING:
    from climate.domain.lease import Reservation

MOST_SHOWN = 3
"""Ids of sub-leases that an error names."""


@dataclass(frozen=True, slots=True)
class Sublet:
    """Host of a reservation that was promised to a sub-lease."""

    host: int
    sublease_id: UUID
    start: datetime
    """End of the reservation's hold on it, and start of the sub-lease's."""
    warn_at: datetime
    take_at: datetime
    warned: bool = False
    taken: bool = False
    """Set once the reservation does not hold the host any more."""


Sublets = tuple[Sublet, ...]
Holds = tuple[Hold, ...]


def changed(holds: Holds, sublets: Sublets, fact: SubletFact) -> tuple[Holds, Sublets]:
    """Return the holds and the sublet hosts of a reservation after a fact."""
    if isinstance(fact, HostsSublet):
        return _promised(holds, sublets, fact)
    own = frozenset(sublet.host for sublet in sublets if sublet.sublease_id == fact.sublease_id)
    if isinstance(fact, SubletWarned):
        return holds, tuple(replace(sublet, warned=True) if sublet.host in own else sublet for sublet in sublets)
    if isinstance(fact, SubletHostsTaken):
        return _without(holds, own), mark_unheld_as_taken(sublets, _without(holds, own))
    # A parent that is over keeps what it gave: in the use of its project these hosts were its own up to its end.
    return holds, tuple(sublet for sublet in sublets if sublet.host not in own or (fact.too_late and sublet.taken))


def _promised(holds: Holds, sublets: Sublets, fact: HostsSublet) -> tuple[Holds, Sublets]:
    """Shorten the holds on hosts that a sub-lease is to get."""
    of, times = fact.sublease_id, (fact.start, fact.warn_at, fact.take_at)
    cut = tuple(replace(h, during=shortened(h, fact.start)) if h.host in fact.to_take else h for h in holds)
    return cut, (*sublets, *(Sublet(host, of, *times) for host in fact.to_take))


def _without(holds: Holds, hosts: frozenset[int]) -> Holds:
    return tuple(hold for hold in holds if hold.host not in hosts)


def mark_unheld_as_taken(sublets: Sublets, holds: Iterable[Hold]) -> Sublets:
    """Return the sublet hosts after a change of the holds: a host that is not held any more need not be taken."""
    held = {hold.host for hold in holds}
    return tuple(sublet if sublet.taken or sublet.host in held else replace(sublet, taken=True) for sublet in sublets)


def of_parent(parent: ParentLease | None, fact: SubleaseProlonged | SubleaseReturned) -> ParentLease:
    """Return what a sub-lease knows of its parent after a fact."""
    if parent is None:
        raise ValueError(f"{type(fact).__name__} of a lease that is no sub-lease")
    if isinstance(fact, SubleaseReturned):
        return replace(parent, returned=True)
    return replace(parent, until=fact.until)


def prolonged(holds: Holds, until: datetime) -> Holds:
    """Return the holds of a sub-lease up to the end of those of its parent."""
    return tuple(replace(hold, during=Period(hold.during.start, until)) for hold in holds)


def pending(sublets: Sublets) -> frozenset[int]:
    """Return the hosts that are still held by the reservation, and are to be taken."""
    return frozenset(sublet.host for sublet in sublets if not sublet.taken)


def count_taken(sublets: Sublets) -> int:
    """Return the number of hosts that are promised to the reservation, and are in sub-leases now."""
    return sum(sublet.taken for sublet in sublets)


def split_by_pending(holds: Holds, sublets: Sublets) -> tuple[Holds, Holds]:
    """Return the holds that no sub-lease shortens, and those that one does."""
    lent = pending(sublets)
    return tuple(h for h in holds if h.host not in lent), tuple(h for h in holds if h.host in lent)


def counts(reservations: "Iterable[Reservation]") -> dict[UUID, int]:
    """Return the sub-leases that have, or will have, hosts of these reservations, and the number, oldest first."""
    found = Counter(sublet.sublease_id for r in reservations for sublet in r.sublets)
    return dict(sorted(found.items()))


def ids(reservations: "Iterable[Reservation]") -> tuple[UUID, ...]:
    """Return the sub-leases that have, or will have, hosts of these reservations, oldest first."""
    return tuple(counts(reservations))


def refuse_change(open_ones: Sequence[UUID], what: str) -> None:
    """Raise Conflict with the ids of the open sub-leases of a lease, if there are any."""
    if open_ones:
        shown = ", ".join(str(one) for one in open_ones[:MOST_SHOWN])
        more = f" and {len(open_ones) - MOST_SHOWN} more" if len(open_ones) > MOST_SHOWN else ""
        raise Conflict(f"The lease {what} while hosts of it are in sub-leases: end or delete {shown}{more} first")
