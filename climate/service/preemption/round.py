"""Round over preemptible leases that are to lose hosts: warn their owners, and take the hosts.

Before a warning, and before a host is taken, the lease may keep the host if nobody needs it any more. Otherwise it gets
another one, if one is free. A running lease has both from the warning on, so that its servers can move.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import NotFound
from climate.domain.events import event_transitions
from climate.domain.events.event_transitions import Times, started
from climate.domain.facts import Fact, Hold, LeaseRescheduled, ReservationChanged
from climate.domain.hosts.pools import HostPlace, Transition
from climate.domain.lease import Lease, Reservation, fold
from climate.domain.notifications import Notice
from climate.domain.period import Period
from climate.domain.planning import preemption
from climate.domain.planning.preemption import Preemption
from climate.domain.planning.preemption_facts import HostPreempted, LeasePreempted, PreemptionPlanned, PreemptionWarned
from climate.domain.status import EventKind
from climate.service.events import unbegun_claims
from climate.service.hosts import lease_transitions, reconcile
from climate.service.hosts.lease_transitions import lead
from climate.service.leases.leases import wake_if_soon
from climate.service.notifications import delivery, lease_events
from climate.service.preemption import notices, replacements
from climate.service.preemption.lease_shortening import MOVED, TOO_FEW, lacks, power_events
from climate.service.preemption.replacements import AUTHOR
from climate.service.round_steps import RoundSteps
from climate.service.transaction import run
from climate.store.hosts import pool_membership
from climate.store.leases import event_claims, leases, preemptions
from climate.time_ordered_ids import time_ordered_id

PORTION = 100
"""Maximum number of leases in one round."""


def run_round(climate: Climate) -> int:
    """Carry out what is due; return the number of leases that were changed. An error does not stop the next lease."""
    steps = RoundSteps("preemption postponed")
    return sum(_processed(climate, steps, lease_id) for lease_id in run(climate, _due, climate))


def _due(conn: Connection, climate: Climate) -> list[UUID]:
    return preemptions.due(conn, climate.now(conn), PORTION)


def _processed(climate: Climate, steps: RoundSteps, lease_id: UUID) -> bool:
    with steps.item(lease_id=str(lease_id)):
        moved = run(climate, _process, climate, lease_id)
        reconcile.send_moves(climate, moved or ())
        return moved is not None
    return False


@dataclass
class _Case:
    """Locked lease, and what happens to it in this transaction."""

    lease: Lease
    now: datetime
    facts: list[Fact] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)

    @property
    def after(self) -> Lease:
        return fold(self.facts, self.lease)

    def is_due(self, plan: Preemption) -> bool:
        return plan.take_at <= self.now or (plan.warn_at <= self.now and not plan.warned)


def _process(conn: Connection, climate: Climate, lease_id: UUID) -> Sequence[HostPlace] | None:
    """Change the lease; return the hosts that were taken from it while it ran, or None if nothing could be done."""
    try:
        lease = leases.get(conn, lease_id, lock=True)
    except NotFound:
        return None
    now = climate.now(conn)
    lease = unbegun_claims.take_back(conn, AUTHOR, lease, now)
    if event_transitions.is_ending(lease, now) or event_transitions.is_running(lease):
        return None
    case = _Case(lease, now)
    for r in lease.reservations:
        for plan in r.preemptions:
            if case.is_due(plan):
                _prolong_or_replace(conn, climate, case, r.id, plan)
    names = _names(conn, climate, lease)
    _warn(climate, case, names)
    _take(case, names)
    return _record(conn, climate, case) if case.facts else None


def _prolong_or_replace(
    conn: Connection, climate: Climate, case: _Case, reservation_id: UUID, plan: Preemption
) -> None:
    """Let the lease keep a host that nobody needs any more, or give it another one, unless it has one already."""
    if plan.replaced:
        return
    lease = case.after
    r = lease.reservation(reservation_id)
    hold = next(one for one in r.holds if one.host == plan.host)
    if kept := replacements.for_longer(conn, climate, lease, r, hold, case.now):
        _prolong_hold(climate, case, r, kept, plan)
        return
    without = {host for reservation in lease.reservations for host in reservation.hosts}
    other = None if r.missing else replacements.another(conn, climate, lease, r, without)
    if other is not None:
        case.facts += _replaced(case, r, plan, other)
        if not started(lease):
            case.notices.append(notices.moved(lease, 1, case.now))


def _prolong_hold(climate: Climate, case: _Case, r: Reservation, kept: Hold, plan: Preemption) -> None:
    """Record that the lease holds the host for longer; if not to its end, plan to take it later."""
    holds = tuple(kept if hold.host == kept.host else hold for hold in r.holds)
    case.facts.append(
        ReservationChanged(case.now, r.id, r.spec, holds, missing=r.missing, reason="not needed any more")
    )
    if kept.during.end < _window_end(climate, case.lease):
        needed = kept.during.end, plan.needed_by
        case.facts.append(preemption.plan(r.id, kept, needed, case.now, _notice(climate), lead(climate.settings)))
    if plan.warned:
        case.notices.append(notices.withdrawn(case.lease, [plan], case.now))


def _notice(climate: Climate) -> timedelta:
    return timedelta(seconds=climate.settings.preemption_notice)


def _window_end(climate: Climate, lease: Lease) -> datetime:
    cleaning = timedelta(seconds=climate.settings.cleaning_time)
    return lease.event(EventKind.END).due_at + cleaning


def _replaced(case: _Case, r: Reservation, plan: Preemption, other: Hold) -> list[Fact]:
    """Return the facts that give a reservation another host: beside the one to be taken if the lease runs."""
    runs = started(case.lease)
    kept = [hold for hold in r.holds if runs or hold.host != plan.host]
    holds = tuple(sorted((*kept, other), key=lambda one: one.host))
    changed = True if runs else None
    facts: list[Fact] = [
        ReservationChanged(case.now, r.id, r.spec, holds, missing=r.missing, changed=changed, reason=MOVED)
    ]
    if runs:
        adjustment = event_transitions.adjustment(case.lease, case.now, time_ordered_id)
        handover = LeaseRescheduled(case.now, case.lease.period, (adjustment,))
        facts += [handover, PreemptionWarned(r.id, case.now, (plan.host,), (plan.host,))]
    return facts


def _warn(climate: Climate, case: _Case, names: dict[int, str]) -> None:
    """Warn of all hosts that are about to be taken, in one notification. A late warning delays the taking."""
    before = {plan.host for r in case.lease.reservations for plan in r.preemptions if plan.warned}
    take_at = case.now + _notice(climate)
    for r in case.after.reservations:
        case.facts += _warnings(case, r, before, take_at)
    after = case.after
    warned = [plan for r in after.reservations for plan in r.preemptions if plan.warned and plan.host not in before]
    if warned:
        called = _called(warned, names)
        case.notices.append(notices.warning(after, warned, called, ends=lacks(_without(after, warned))))


def _warnings(case: _Case, r: Reservation, before: Collection[int], take_at: datetime) -> list[Fact]:
    due = [plan for plan in r.preemptions if plan.host not in before and (plan.warned or case.is_due(plan))]
    if not due:
        return []
    replaced = tuple(plan.host for plan in due if plan.replaced)
    said = PreemptionWarned(r.id, case.now, tuple(plan.host for plan in due), replaced)
    return [*(_delayed(r, plan, case.now, take_at) for plan in due if plan.take_at < take_at), said]


def _called(plans: Sequence[Preemption], names: Mapping[int, str]) -> list[str]:
    return [names[plan.host] for plan in plans if plan.host in names]


def _delayed(r: Reservation, plan: Preemption, now: datetime, take_at: datetime) -> PreemptionPlanned:
    during = next(hold.during for hold in r.holds if hold.host == plan.host)
    return PreemptionPlanned(r.id, now, plan.host, during, now, take_at, plan.needed_by)


def _without(lease: Lease, plans: Sequence[Preemption]) -> Lease:
    lost = {plan.host for plan in plans}
    left = (replace(r, holds=tuple(hold for hold in r.holds if hold.host not in lost)) for r in lease.reservations)
    return replace(lease, reservations=tuple(left))


def _take(case: _Case, names: dict[int, str]) -> None:
    """Take the hosts that are due, or end the lease if too few remain."""
    lease = case.after
    due = [(r.id, plan) for r in lease.reservations for plan in r.preemptions if plan.take_at <= case.now]
    if not due:
        return
    plans = [plan for _, plan in due]
    ends = lacks(_without(lease, plans))
    if ends:
        case.facts.append(LeasePreempted(case.now, TOO_FEW, plans[0].needed_by))
        case.facts += _ended(lease, case.now) if started(lease) else []
    else:
        case.facts += [HostPreempted(number, case.now, plan.host, plan.needed_by) for number, plan in due]
    case.notices.append(notices.preempted(lease, len(plans), _called(plans, names), case.now, ends=ends))


def _ended(lease: Lease, now: datetime) -> list[Fact]:
    """Return the facts that end a running lease now; its end event releases the hosts."""
    over = max(now, lease.period.start + preemption.INSTANT)
    period = Period(lease.period.start, over)
    return list(event_transitions.reschedule(lease, Times(period), now, time_ordered_id))


def _names(conn: Connection, climate: Climate, lease: Lease) -> dict[int, str]:
    """Return the names of the hosts, as far as owners may know them."""
    if climate.settings.lease_hosts == "nothing":
        return {}
    places = pool_membership.of(conn, {host for r in lease.reservations for host in r.hosts})
    return {number: place.name for number, place in places.items()}


def _record(conn: Connection, climate: Climate, case: _Case) -> Sequence[HostPlace]:
    token = event_claims.tokens(conn, 1)[0]
    powered = power_events(conn, climate, case.lease, case.after, case.now)
    after = leases.record(conn, AUTHOR, case.lease, *powered, *case.facts)
    moved = lease_transitions.follow(conn, climate, AUTHOR, Transition(case.lease, after, case.now, token))
    delivery.notify(conn, case.now, *case.notices, *lease_events.of(climate.settings, case.lease, after))
    wake_if_soon(conn, climate, after, case.now)
    if moved:
        event_claims.wake_rounds(conn)
    event_claims.wake_poller(conn)  # the lease that needs the hosts may be due already
    return tuple(pool_membership.of(conn, {place.host for place, _ in moved}).values())
