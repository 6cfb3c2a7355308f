"""Return of the hosts of a sub-lease to its parent: facts of the parent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from climate.domain import lease_health
from climate.domain.events import event_transitions
from climate.domain.facts import Fact, Hold, LeaseRescheduled, ReservationChanged
from climate.domain.lease import Lease, Reservation
from climate.domain.period import Period
from climate.domain.sharing.sublease_facts import ParentLease, SubletHostsReturned
from climate.domain.status import ERROR, EventKind

REASON = "a sub-lease is over"


@dataclass(frozen=True, slots=True)
class _Holds:
    """Holds of the parent after the return."""

    kept: tuple[Hold, ...]
    """Those that it has now, up to its end again."""
    back: tuple[Hold, ...]
    """Those that it gets from the sub-lease."""
    missing: int


def returned(
    parent: Lease, lease: Lease, story: Sequence[Fact], now: datetime, new_id: Callable[[], UUID]
) -> tuple[Fact, ...]:
    """Return the facts of a parent whose sub-lease is over; `story` are all facts of the parent so far.

    A parent that is over or ending gets nothing. Another one gets what the sub-lease has now, up to its promised
    number: other hosts if some were replaced. A host that cannot be returned is missing, and healing replaces it.
    """
    if lease.parent is None:
        raise ValueError(f"the lease {lease.id} is no sub-lease")
    r = parent.reservation(lease.parent.reservation_id)
    if event_transitions.is_ending(parent, now):
        return (SubletHostsReturned(r.id, now, lease.id, too_late=True),)
    over = SubletHostsReturned(r.id, now, lease.id)
    after = _after(parent, lease, lease.parent, (story, (*story, over)), now)
    holds = tuple(sorted((*after.kept, *after.back), key=lambda hold: hold.host))
    if (holds, after.missing) == (r.holds, r.missing):
        return (over,)
    known = {sublet.host for sublet in r.sublets}
    others = event_transitions.is_active(parent) and any(hold.host not in known for hold in after.back)
    changed = ReservationChanged(now, r.id, r.spec, holds, missing=after.missing, changed=others or None, reason=REASON)
    if not after.back or not event_transitions.started(parent) or parent.event(EventKind.START).status is ERROR:
        return over, changed
    return over, LeaseRescheduled(now, parent.period, (event_transitions.adjustment(parent, now, new_id),)), changed


def _after(
    parent: Lease, lease: Lease, of: ParentLease, stories: tuple[Sequence[Fact], Sequence[Fact]], now: datetime
) -> _Holds:
    r = parent.reservation(of.reservation_id)
    before, after = (lease_health.promised(r, story) for story in stories)
    own = {hold.host: hold for reservation in lease.reservations for hold in reservation.holds}
    kept = tuple(_kept(r, lease.id, of.until, own))
    begun = max(now, parent.period.start)
    held = {hold.host for hold in kept}
    known = {sublet.host for sublet in r.sublets}
    usable = [hold for hold in own.values() if hold.host not in held and hold.during.start <= begun]
    usable.sort(key=lambda hold: (hold.host not in known, hold.host))
    back = tuple(usable[: max(0, after - lease_health.weight(kept))])
    unusable = max(0, r.missing - max(0, before - lease_health.weight(r.holds)))
    lost = max(0, after - lease_health.weight(kept) - len(back))
    return _Holds(kept, back, unusable + lost)


def _kept(r: Reservation, sublease_id: UUID, until: datetime, own: dict[int, Hold]) -> list[Hold]:
    """Return the holds of the parent; one that was to be taken lasts to the end again, if nobody else has the host."""
    pending = {sublet.host for sublet in r.sublets if sublet.sublease_id == sublease_id and not sublet.taken}
    kept = [hold for hold in r.holds if hold.host not in pending]
    longer = (hold for hold in r.holds if hold.host in pending and hold.host in own)
    return [*kept, *(Hold(hold.host, Period(hold.during.start, until)) for hold in longer)]
