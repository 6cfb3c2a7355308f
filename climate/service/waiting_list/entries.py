"""Creation of leases that may wait, and the grant of their resources."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import (
    ClimateError,
    InvalidInput,
    NotEnoughAddresses,
    NotEnoughHosts,
    NotEnoughStorage,
    TooComplex,
)
from climate.domain.events import event_transitions
from climate.domain.events.event_transitions import Times
from climate.domain.facts import Fact, PlannedReservation
from climate.domain.lease import Lease, fold
from climate.domain.limits import Limit
from climate.domain.period import Period
from climate.domain.planning import waiting_list as waiting
from climate.domain.planning.waiting_list import Wait
from climate.domain.policy import Caller, require
from climate.plugin import ResourceRequest
from climate.service.admission import admission as granting
from climate.service.admission import enforcement
from climate.service.admission.enforcement import Approval
from climate.service.availability.question import ELSEWHERE
from climate.service.events import host_power_on
from climate.service.events.event_dispatch import system
from climate.service.leases import leases, reservation_aggregates, reservations
from climate.service.leases.leases import LeaseRequest
from climate.service.notifications import delivery, notice_texts
from climate.service.preemption import lease_shortening, second_try
from climate.service.preemption.second_try import Turn
from climate.service.sharing import changes as sharing_changes
from climate.service.transaction import run
from climate.service.waiting_list import free_times
from climate.store import admission, idempotency
from climate.store.allocation import preemptible
from climate.store.hosts import pool_settings
from climate.store.idempotency import Key
from climate.store.leases import leases as stored
from climate.store.leases import waiting_list
from climate.time_ordered_ids import time_ordered_id

SHORTAGES = (NotEnoughHosts, NotEnoughAddresses, NotEnoughStorage)
AUTHOR = system("waiting list")


def create(
    climate: Climate, caller: Caller, order: LeaseRequest, wait: Wait, key: Key | None = None, *, dry_run: bool = False
) -> Lease:
    """Create the lease as `leases.create` does, or put it in the waiting list if it does not fit.

    Only hosts of this deployment are used. Raise InvalidInput for a wait that cannot be, and the refusal of
    `leases.create` for a lease that can never fit.
    """
    require(caller, "leases:post")
    requested = reservations.requested(climate, order.reservations)
    try:
        _refuse_useless(order, requested)
        run(climate, _checked_wait, climate, order, wait)
    except ClimateError:
        if key is None or (made := leases.created_earlier(climate, caller, key)) is None:
            raise
        return made
    try:
        return leases.create(climate, caller, order, key, dry_run=dry_run)
    except SHORTAGES:
        requested = reservations.checked(climate, caller, requested, order.end)
        if not free_times.is_ever_possible(climate, caller, order, requested):
            raise
        request = _Request(caller, order, wait, requested, key)
    return run(climate, _queue, climate, request, keep=not dry_run)


def _refuse_useless(order: LeaseRequest, requested: Sequence[reservations.Requested]) -> None:
    if order.hold is not None:
        raise InvalidInput("wait and hold_seconds exclude each other: a lease that waits has nothing to hold")
    if not requested:
        raise InvalidInput("wait needs reservations: a lease without any waits for nothing")
    for item in requested:
        named = [name for name in ELSEWHERE if item.spec.get(name)]
        if named:
            raise InvalidInput(
                f"{named[0]} and wait exclude each other: the waiting list is for hosts of this deployment"
            )
        if not free_times.can_wait(item):
            raise InvalidInput(f"Reservations of this form of {item.plugin.resource_type} cannot wait")


def _checked_wait(conn: Connection, climate: Climate, order: LeaseRequest, wait: Wait) -> None:
    now = climate.now(conn)
    leases.period_of(order, now, climate)
    waiting.until(wait, order.start, now)


@dataclass(frozen=True, slots=True)
class _Request:
    caller: Caller
    order: LeaseRequest
    wait: Wait
    requested: Sequence[reservations.Requested]
    key: Key | None


def _queue(conn: Connection, climate: Climate, request: _Request) -> Lease:
    """Record a lease without resources."""
    caller, order, key = request.caller, request.order, request.key
    if key and (known := idempotency.earlier(conn, caller, key)):
        return leases.at_version(conn, climate, caller, UUID(known), 1)
    rules = admission.read(conn, caller.project_id)
    grant = granting.begin(conn, climate, caller, Approval(needed=False), rules, usual=Limit.WAITING_LEASES)
    now = climate.now(conn)
    period = leases.period_of(order, now, climate)
    agreed = pool_settings.of(conn, climate.settings, rules.terms).of_a_lease
    common = reservations.with_terms(ResourceRequest({}, period, caller, climate.settings), agreed, request.requested)
    times = Times(
        period,
        event_transitions.before_end_time(period, order.before_end, leases.usual_before_end(climate)),
        grace=common.grace_of_lease,
        additional=event_transitions.additional(order.events, period, order.before_end),
        wait_until=waiting.until(request.wait, order.start, now),
    )
    asked = tuple(_planned_reservation(item) for item in request.requested)
    fact = leases.created(caller, order, times, now, asked)
    sharing_changes.check(climate.settings, fold([fact]), order.sharing)
    lease = grant.record(conn, now, None, fact)
    sharing_changes.notify(conn, now, None, lease)
    waiting_list.mark_lease(conn, lease.id)
    leases.wake_if_soon(conn, climate, lease, now)
    if key:
        idempotency.remember(conn, caller, key, str(lease.id), lease.created_at)
    return lease


def _planned_reservation(item: reservations.Requested) -> PlannedReservation:
    return PlannedReservation(time_ordered_id(), item.plugin.resource_type, dict(item.spec))


@dataclass(frozen=True, slots=True)
class Attempt:
    """Attempt to give a lease its resources for a period, without the hosts that are kept for others."""

    lease: Lease
    period: Period
    kept: Set[int]
    turn: Turn = Turn.ONLY

    @property
    def owner(self) -> Caller:
        """Return the owner as the requester."""
        return free_times.owner(self.lease.project_id, self.lease.user_id)


def attempt(climate: Climate, lease_id: UUID, period: Period, kept: Set[int]) -> bool:
    """Give the lease its resources for the period, under the limits and with approval; return whether it has them.

    Raise LimitExceeded or Forbidden if these refuse it, and NotFound for a lease that is gone.
    """
    lease = run(climate, stored.get, lease_id)
    if not lease.waits:
        return False
    tried = Attempt(lease, period, kept)
    try:
        result = _twice(climate, tried)
    except (*free_times.REFUSALS, TooComplex):
        return False
    if result is None:
        return False
    reservation_aggregates.announce(climate, result, new=True)
    return True


def _twice(climate: Climate, tried: Attempt) -> Lease | None:
    """Return the result of the attempt; an ordinary lease that lacks hosts may take those of preemptible leases."""

    def attempt(turn: Turn) -> Lease | None:
        return enforcement.run_approved(climate, tried.owner, _grant, climate, replace(tried, turn=turn), dry_run=False)

    if second_try.gives_way(r.spec for r in tried.lease.reservations):
        return attempt(Turn.ONLY)
    during = second_try.reach(climate.settings, tried.period.start, tried.period.end)
    return second_try.if_short(climate, during, attempt)


def _grant(conn: Connection, patient: bool, gate: Approval, climate: Climate, tried: Attempt) -> Lease | None:
    """Record the grant; None if the lease does not wait any more."""
    owner, period, settings = tried.owner, tried.period, climate.settings
    rules = admission.read(conn, owner.project_id)
    grant = granting.begin(conn, climate, owner, gate, rules)
    requested, barred = free_times.requested(climate, tried.lease), frozenset(tried.kept)
    patient = patient or tried.turn is Turn.SECOND
    ask = ResourceRequest({}, period, owner, settings, patient=patient, taken=tuple(barred), avoided=barred)
    ask = reservations.with_terms(ask, pool_settings.of(conn, settings, rules.terms).of_a_lease, requested)
    losers = preemptible.lock(conn, ask.window, [tried.lease.id]) if tried.turn is Turn.SECOND else ()
    lease = stored.get(conn, tried.lease.id, lock=True)
    now = climate.now(conn)
    over = waiting.running(lease, now)
    if over is None:
        return None
    soon = host_power_on.is_soon(settings, period, now)
    ask = replace(ask, soon=soon, giving_way=lease_shortening.reservations(losers))
    planned = reservations.reserve(conn, requested, ask, gate.preferred_hosts)
    if tried.turn is Turn.FIRST:
        second_try.refuse_fewer(conn, ask.window, ((r.spec, r.holds) for r in planned))
    lease_shortening.shorten(conn, climate, losers, lease.id, (hold for r in planned for hold in r.holds), now)
    facts: list[Fact] = [waiting.granted(over, planned, now)]
    facts += event_transitions.reschedule(
        fold(facts, lease), _times(conn, climate, period, planned, now), now, time_ordered_id
    )
    after = replace(grant, caller=AUTHOR).record(conn, now, lease, *facts)
    delivery.notify(conn, now, notice_texts.of_grant(after))
    if period.start > max(lease.period.start, now):
        waiting_list.mark_promise(conn, lease.id, period)
    leases.wake_if_soon(conn, climate, after, now)
    return after


def _times(
    conn: Connection, climate: Climate, period: Period, planned: Sequence[PlannedReservation], now: datetime
) -> Times:
    hosts = {hold.host for one in planned for hold in one.holds}
    prepare = host_power_on.due_at(conn, climate.settings, period, hosts, now)
    return Times(period, prepare=prepare, grace=event_transitions.grace(one.spec for one in planned))
