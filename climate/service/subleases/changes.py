"""Changes of leases that have sub-leases, and of sub-leases themselves."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import Busy, Conflict, Forbidden
from climate.domain.events import event_transitions
from climate.domain.facts import Hold
from climate.domain.hosts.requirements import ANYTHING
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.policy import Caller
from climate.domain.sharing import sublease
from climate.domain.sharing.sublease_facts import SubleaseProlonged
from climate.store import locks
from climate.store.allocation import hosts
from climate.store.allocation.hosts import HostRequest
from climate.store.leases import leases

if TYPE_CHECKING:
    from climate.service.leases.update import Changes

ONLY = "only its name, end_date, before_end_date and sharing can be changed"


def check(climate: Climate, author: Caller, lease: Lease, changes: "Changes", period: Period) -> None:
    """Raise Conflict or Forbidden for changes that a sub-lease, or a lease with sub-leases, does not allow."""
    if lease.parent:
        _check_sublease(climate, author, lease, changes, period)
    elif changes.reservations or period.start != lease.period.start or period.end < lease.period.end:
        sublease.refuse_change(sublease.ids(lease.reservations), "can only be prolonged, renamed or shared")


def _check_sublease(climate: Climate, author: Caller, lease: Lease, changes: "Changes", period: Period) -> None:
    assert lease.parent is not None
    if changes.reservations or period.start != lease.period.start:
        raise Conflict(f"The lease {lease.id} is a sub-lease: {ONLY}; for other hosts or dates create another")
    if period.end <= lease.period.end:
        return
    if not author.is_admin and author.project_id != lease.parent.project_id:
        raise Forbidden(
            f"This sub-lease ends at {lease.period.end:%Y-%m-%d %H:%M:%S} UTC: "
            "only the project that gave it can prolong it"
        )
    latest = lease.parent.until - _margin(climate, lease)
    if period.end > latest:
        raise Conflict(
            f"The sub-lease ends with its parent at the latest, at {latest:%Y-%m-%d %H:%M:%S} UTC: prolong that first"
        )


def _margin(climate: Climate, lease: Lease) -> timedelta:
    """Return the grace and cleaning time for which hosts are held after the period of a lease."""
    grace = event_transitions.grace(r.spec for r in lease.reservations)
    return grace + timedelta(seconds=climate.settings.cleaning_time)


def lock(conn: Connection, lease: Lease) -> tuple[Lease, ...]:
    """Lock the sub-leases of a lease that is locked, before any host is. Raise Busy while one returns its hosts.

    Those of a lease that is over are over too, and are not changed any more.
    """
    ids = tuple(event_transitions.open_subleases(lease))
    own = tuple(leases.lock(conn, ids)) if ids else ()
    if len(own) < len(ids) or any(event_transitions.is_over(one) for one in own):
        raise Busy("A sub-lease of the lease is over and returns its hosts: try again shortly")
    return own


def check_deletion(conn: Connection, lease: Lease) -> None:
    """Raise Conflict if a sub-lease of a lease is not over; one that is over returns its hosts to nobody then."""
    known = leases.get_many(conn, sublease.ids(lease.reservations)) if sublease.ids(lease.reservations) else {}
    sublease.refuse_change(
        [one.id for one in known.values() if not event_transitions.is_over(one)], "cannot be deleted"
    )


@dataclass(frozen=True, slots=True)
class Prolonged:
    """Locked sub-lease that is to hold its hosts up to a later time."""

    lease: Lease
    since: datetime
    until: datetime

    @property
    def holds(self) -> list[Hold]:
        """Return the additional holds."""
        window = Period(self.since, self.until)
        return [Hold(hold.host, window) for r in self.lease.reservations for hold in r.holds]


def prolonged(
    conn: Connection, climate: Climate, lease: Lease, own: Sequence[Lease], giving_way: Set[UUID]
) -> list[Prolonged]:
    """Return the sub-leases that are to hold their hosts as long as the parent is to.

    `own` are the sub-leases of the changed parent, which are locked. Sub-leases that are over hold their hosts until
    they are returned. Hosts of the reservations `giving_way` count as free. Raise Conflict if others have one.
    """
    until = lease.period.end + _margin(climate, lease)
    result = []
    for one in own:
        if one.parent is None or not one.owes_hosts or until <= one.parent.until:
            continue
        longer = Prolonged(one, one.parent.until, until)
        same = {r.id for r in (*lease.reservations, *one.reservations)}
        _check_free(conn, longer, same | giving_way)
        result.append(longer)
    return result


def prolong(conn: Connection, author: Caller, longer: Sequence[Prolonged], now: datetime) -> None:
    """Record the later end of the holds of sub-leases."""
    for one in longer:
        leases.record(conn, author, one.lease, SubleaseProlonged(now, one.until))


def _check_free(conn: Connection, longer: Prolonged, own: Set[UUID]) -> None:
    numbers = {hold.host for hold in longer.holds}
    locks.lock_host_allocation(conn)
    locks.lock_hosts(conn, numbers)
    wanted = HostRequest(ANYTHING, Period(longer.since, longer.until), 1, 1, own=frozenset(own))
    conflict = hosts.first_conflict(conn, tuple(numbers), wanted)
    if conflict:
        raise Conflict(
            "Not enough hosts available: a host of this lease, which is in a sub-lease, is promised to another lease "
            f"from {conflict:%Y-%m-%d %H:%M:%S} UTC on"
        )
