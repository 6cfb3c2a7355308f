"""Round over sub-leases: take their hosts from the parent in time, and return them when the sub-lease is over.

The holds in the database keep each promise until this round has moved it on. A round that is late or dies costs time
only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.events import event_transitions
from climate.domain.facts import Fact
from climate.domain.hosts.pools import HostPlace, Transition
from climate.domain.lease import Lease, fold
from climate.domain.notifications import Notice
from climate.domain.policy import ADMIN, Caller
from climate.domain.sharing import sublease_return
from climate.domain.sharing.sublease import Sublet
from climate.domain.sharing.sublease_facts import SubleaseReturned, SubletHostsTaken, SubletWarned
from climate.service.events import unbegun_claims
from climate.service.hosts import lease_transitions, reconcile
from climate.service.leases.leases import wake_if_soon
from climate.service.notifications import delivery, lease_events
from climate.service.preemption.lease_shortening import power_events
from climate.service.round_steps import RoundSteps
from climate.service.subleases import notices
from climate.service.transaction import run
from climate.store import locks
from climate.store.allocation import due_subleases
from climate.store.hosts import pool_membership
from climate.store.journal import journal
from climate.store.leases import event_claims, leases
from climate.time_ordered_ids import time_ordered_id

AUTHOR = Caller("climate:sub-leases", "", frozenset({ADMIN}))

PORTION = 100
"""Maximum number of leases of each kind in one round."""

Places = Sequence[HostPlace]


def run_round(climate: Climate) -> int:
    """Carry out what is due; return the number of leases that were changed. An error does not stop the next lease.

    Hosts are returned first, because another sub-lease may wait for them.
    """
    with reading(climate.engine) as conn:
        over = due_subleases.to_return(conn, PORTION)
        due = due_subleases.due(conn, climate.now(conn), PORTION)
    steps = RoundSteps("sub-lease postponed")
    done = [_processed(climate, steps, _return, lease_id) for lease_id in over]
    done += [_processed(climate, steps, _take, lease_id) for lease_id in due]
    return sum(done)


def _processed(
    climate: Climate,
    steps: RoundSteps,
    act: Callable[[Connection, Climate, UUID], Places | None],
    lease_id: UUID,
) -> bool:
    with steps.item(lease_id=str(lease_id)):
        moved = run(climate, act, climate, lease_id)
        reconcile.send_moves(climate, moved or ())
        return moved is not None
    return False


def _take(conn: Connection, climate: Climate, lease_id: UUID) -> Places | None:
    """Take the hosts of sub-leases that are due, or warn of it; return those that were moved, or None for no change."""
    locked = leases.lock(conn, [lease_id])
    now = climate.now(conn)
    if not locked:
        return None
    lease = unbegun_claims.take_back(conn, AUTHOR, locked[0], now)
    if event_transitions.is_ending(lease, now) or event_transitions.is_running(lease):
        return None
    taken = _grouped(lease, lambda one: one.take_at <= now)
    warned = _grouped(lease, lambda one: one.warn_at <= now < one.take_at and not one.warned)
    facts: list[Fact] = [SubletHostsTaken(of, now, number) for of, number in taken]
    facts += [SubletWarned(of, now, number) for of, number in warned]
    if not facts:
        return None
    told = [notices.taken(lease, len(hosts), now) for hosts in taken.values()]
    told += [notices.warning(lease, hosts) for hosts in warned.values()]
    return _record(conn, climate, _Change(lease, facts, told, now))


Key = tuple[UUID, UUID]
"""Ids of a reservation and of a sub-lease."""


def _grouped(lease: Lease, is_meant: Callable[[Sublet], bool]) -> dict[Key, list[Sublet]]:
    """Return the hosts that are meant and not taken, by reservation and sub-lease."""
    found: dict[Key, list[Sublet]] = {}
    for r in lease.reservations:
        for sublet in r.sublets:
            if not sublet.taken and is_meant(sublet):
                found.setdefault((r.id, sublet.sublease_id), []).append(sublet)
    return found


def _return(conn: Connection, climate: Climate, sublease_id: UUID) -> Places | None:
    """Return the hosts of a sub-lease that is over to its parent; None if nothing can be done now."""
    known = leases.get_many(conn, [sublease_id])[sublease_id]
    if known.parent is None:
        return None
    locks.lock_leases(conn, [known.parent.lease_id, sublease_id])
    both = leases.get_many(conn, [known.parent.lease_id, sublease_id])
    lease, parent, now = both[sublease_id], both.get(known.parent.lease_id), climate.now(conn)
    if not event_transitions.is_over(lease) or not lease.owes_hosts:
        return None
    if parent is None or parent.gone:
        leases.record(conn, AUTHOR, lease, SubleaseReturned(now))
        return ()
    parent = unbegun_claims.take_back(conn, AUTHOR, parent, now)
    if event_transitions.is_running(parent):
        return None
    return _return_to_parent(conn, climate, parent, lease, now)


def _return_to_parent(conn: Connection, climate: Climate, parent: Lease, lease: Lease, now: datetime) -> Places:
    """Record that the parent has the hosts of its sub-lease again; both leases are locked."""
    locks.lock_host_allocation(conn)
    locks.lock_hosts(conn, {host for one in (lease, parent) for r in one.reservations for host in r.hosts})
    leases.record(conn, AUTHOR, lease, SubleaseReturned(now))
    story = journal.of_lease(journal.read(conn, parent.id))
    facts = sublease_return.returned(parent, lease, story, now, time_ordered_id)
    after = fold(facts, parent)
    count = sum(len(r.holds) - len(parent.reservation(r.id).holds) for r in after.reservations)
    told = [notices.returned(parent, count, now)] if count > 0 else []
    return _record(conn, climate, _Change(parent, facts, told, now))


@dataclass(frozen=True, slots=True)
class _Change:
    """Facts of a parent, which is locked, and the notifications of its owner."""

    parent: Lease
    facts: Sequence[Fact]
    notices: Sequence[Notice]
    now: datetime


def _record(conn: Connection, climate: Climate, change: _Change) -> Places:
    """Record the facts with the moves of hosts that follow; return the hosts that were moved."""
    before, now = change.parent, change.now
    token = event_claims.tokens(conn, 1)[0]
    powered = power_events(conn, climate, before, fold(change.facts, before), now)
    after = leases.record(conn, AUTHOR, before, *powered, *change.facts)
    moved = lease_transitions.follow(conn, climate, AUTHOR, Transition(before, after, now, token))
    delivery.notify(conn, now, *change.notices, *lease_events.of(climate.settings, before, after))
    wake_if_soon(conn, climate, after, now)
    if moved:
        event_claims.wake_rounds(conn)
    event_claims.wake_poller(conn)  # the lease that needs the hosts may be due already
    return tuple(pool_membership.of(conn, {place.host for place, _ in moved}).values())
