"""Shortening of preemptible leases for an ordinary one, in the transaction that allocates it.

The hold on a host that the ordinary lease needs ends when that lease begins, so the two never overlap. A lease that
runs keeps the host until the round of `climate.service.preemption.round` has warned its owner and takes the host.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.events import event_transitions
from climate.domain.events.event_transitions import Times, started
from climate.domain.facts import Fact, Hold, ReservationChanged
from climate.domain.lease import Lease, Reservation, fold
from climate.domain.notifications import Notice
from climate.domain.period import Period
from climate.domain.planning import preemption
from climate.domain.planning.preemption import Preemption
from climate.domain.planning.preemption_facts import HostPreempted, LeasePreempted, PreemptionPlanned
from climate.domain.status import IN_PROGRESS, EventKind
from climate.service.events import host_power_on
from climate.service.hosts.lease_transitions import lead
from climate.service.notifications import delivery, lease_events
from climate.service.preemption import notices, replacements
from climate.service.preemption.replacements import AUTHOR
from climate.store.leases import event_claims, leases
from climate.time_ordered_ids import time_ordered_id

TOO_FEW = "too few of its hosts are left: others are needed for an ordinary lease"
MOVED = "its host is needed for an ordinary lease"


@dataclass(frozen=True, slots=True)
class HostNeed:
    """Hosts that an ordinary lease has been given, and the times for which it needs them."""

    lease_id: UUID
    during: Mapping[int, Period]
    now: datetime


def reservations(locked: Iterable[Lease]) -> frozenset[UUID]:
    """Return the ids of the reservations of preemptible leases."""
    return frozenset(r.id for lease in locked for r in lease.reservations)


def shorten(
    conn: Connection, climate: Climate, locked: Iterable[Lease], lease_id: UUID, holds: Iterable[Hold], now: datetime
) -> None:
    """Shorten these preemptible leases wherever they hold a host that the ordinary lease was given.

    They must be locked, and the rows of the hosts too. Call it before the ordinary lease is written.
    """
    need = HostNeed(lease_id, {hold.host: hold.during for hold in holds}, now)
    for lease in locked:
        if any(_is_needed(hold, need) for r in lease.reservations for hold in r.holds):
            _shorten(conn, climate, lease, need)


def _is_needed(hold: Hold, need: HostNeed) -> bool:
    during = need.during.get(hold.host)
    return during is not None and hold.during.overlaps(during)


def _shorten(conn: Connection, climate: Climate, lease: Lease, need: HostNeed) -> None:
    facts: list[Fact] = []
    for r in lease.reservations:
        facts += _facts(conn, climate, fold(facts, lease), r, need)
    after = fold(facts, lease)
    if lacks(after) and not started(lease):
        facts = [*facts, LeasePreempted(need.now, TOO_FEW, need.lease_id)]
    else:
        facts = [*power_events(conn, climate, lease, after, need.now), *facts]
    after = leases.record(conn, AUTHOR, lease, *facts)
    delivery.notify(conn, need.now, *_notices(lease, after, facts), *lease_events.of(climate.settings, lease, after))
    if any(isinstance(fact, PreemptionPlanned) and fact.warn_at <= need.now for fact in facts):
        event_claims.wake_rounds(conn)


def _facts(conn: Connection, climate: Climate, lease: Lease, r: Reservation, need: HostNeed) -> list[Fact]:
    """Return the facts about one reservation: plans to take hosts, or other hosts where it cannot begin on its own."""
    notice, before = timedelta(seconds=climate.settings.preemption_notice), lead(climate.settings)
    facts: list[Fact] = []
    displaced: list[Hold] = []
    for hold in r.holds:
        if _is_needed(hold, need):
            needed = need.during[hold.host].start, need.lease_id
            plan = preemption.plan(r.id, hold, needed, need.now, notice, before)
            if started(lease) or max(hold.during.start, lease.period.start) < min(plan.take_at, needed[0]):
                facts.append(plan)
            else:
                displaced.append(hold)
    return [*facts, *_elsewhere(conn, climate, fold(facts, lease), r.id, displaced, need)]


def _elsewhere(
    conn: Connection, climate: Climate, lease: Lease, reservation_id: UUID, displaced: Sequence[Hold], need: HostNeed
) -> list[Fact]:
    """Return the facts that give a lease other hosts before its start, or fewer."""
    r = lease.reservation(reservation_id)
    lost = {hold.host for hold in displaced}
    holds = [hold for hold in r.holds if hold.host not in lost]
    facts: list[Fact] = []
    is_idle = not any(event.status is IN_PROGRESS for event in lease.events)
    for hold in displaced:
        without = {*lost, *need.during, *_hosts(lease), *(one.host for one in holds)}
        other = replacements.another(conn, climate, lease, r, without) if is_idle else None
        if other is None:
            facts.append(HostPreempted(r.id, need.now, hold.host, need.lease_id))
        else:
            holds.append(other)
    if len(holds) + len(lost) > len(r.holds):
        kept = tuple(sorted(holds, key=lambda one: one.host))
        facts.append(ReservationChanged(need.now, r.id, r.spec, kept, missing=r.missing, reason=MOVED))
    return facts


def lacks(lease: Lease) -> bool:
    """Return whether a reservation of the lease has fewer hosts than its minimum."""
    return any(len(r.holds) < int(r.spec["min"]) for r in lease.reservations if preemption.is_preemptible(r.spec))


def _hosts(lease: Lease) -> set[int]:
    return {host for r in lease.reservations for host in r.hosts}


def power_events(conn: Connection, climate: Climate, lease: Lease, after: Lease, now: datetime) -> Sequence[Fact]:
    """Return the change of the time at which other hosts are switched on, before the start and while no event runs."""
    runs = started(lease) or any(event.status is IN_PROGRESS for event in lease.events)
    if runs or _hosts(after) == _hosts(lease) or not _hosts(after):
        return []
    due_at = host_power_on.due_at(conn, climate.settings, lease.period, _hosts(after), now)
    times = Times(lease.period, prepare=due_at, grace=event_transitions.grace(r.spec for r in lease.reservations))
    return event_transitions.reschedule(lease, times, now, time_ordered_id)


def _notices(before: Lease, after: Lease, facts: Sequence[Fact]) -> list[Notice]:
    """Return what the owner has to know now. What is to be warned of at once is left to the warning."""
    taken, now = sum(isinstance(fact, HostPreempted) for fact in facts), facts[0].at
    if any(isinstance(fact, LeasePreempted) for fact in facts):
        return [notices.preempted(before, taken, (), now, ends=True)]
    later, other = _later(before, after, facts), len(_hosts(after) - _hosts(before))
    possible = (
        notices.planned(before, later) if later else None,
        notices.preempted(before, taken, (), now, ends=False) if taken else None,
        notices.moved(before, other, now) if other else None,
    )
    return [one for one in possible if one]


def _later(before: Lease, after: Lease, facts: Sequence[Fact]) -> list[Preemption]:
    """Return the new plans of which a warning will follow, without those that come after the lease's end."""
    ends = before.event(EventKind.END).due_at
    planned = {fact.host for fact in facts if isinstance(fact, PreemptionPlanned) and fact.warn_at > fact.at}
    return [plan for r in after.reservations for plan in r.preemptions if plan.host in planned and plan.take_at < ends]
