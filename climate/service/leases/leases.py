"""Create, change, delete and read leases."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import ClimateError, InvalidPeriod, NotFound
from climate.domain.events import event_transitions
from climate.domain.events.event_transitions import AdditionalEvent, Times
from climate.domain.facts import LeaseCreated, PlannedReservation
from climate.domain.lease import Lease, fold
from climate.domain.limits import Limit
from climate.domain.period import Period
from climate.domain.planning import holds
from climate.domain.planning.preemption import is_preemptible
from climate.domain.policy import Caller, require
from climate.domain.reservation_spec import Spec
from climate.domain.sharing.sharing import NOT_SHARED, Sharing
from climate.plugin import ResourceRequest
from climate.service.admission import admission as granting
from climate.service.admission import enforcement
from climate.service.admission.admission import Grant
from climate.service.admission.enforcement import Approval
from climate.service.events import host_power_on, unbegun_claims
from climate.service.journal import archives
from climate.service.leases import reservation_aggregates, reservations, shortages
from climate.service.leases.dates import LATEST
from climate.service.leases.reservations import Split
from climate.service.notifications import delivery, lease_events
from climate.service.preemption import lease_shortening, second_try
from climate.service.preemption.second_try import Turn
from climate.service.sharing import access, accounts
from climate.service.sharing import changes as sharing_changes
from climate.service.subleases import changes as sublease_changes
from climate.service.transaction import run
from climate.store import admission, idempotency
from climate.store.allocation import preemptible
from climate.store.hosts import pool_settings
from climate.store.idempotency import Key
from climate.store.journal import journal
from climate.store.leases import event_claims, leases
from climate.store.leases.leases import Listing, ReadLease
from climate.time_ordered_ids import time_ordered_id

T = TypeVar("T")

GRACE = timedelta(minutes=1)
"""Maximum time in the past at which a lease may start, for clients without seconds."""


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """Request for a lease. No `start` means now; each reservation has its `resource_type`."""

    name: str
    start: datetime | None
    end: datetime
    before_end: datetime | None = None
    reservations: Sequence[Spec] = ()
    events: Sequence[AdditionalEvent] = ()
    """Additional events from the client; they must lie within the lease."""
    splits: Mapping[int, Split] = field(default_factory=dict)
    """Splits of reservations with parts in child zones or cells, by index."""
    hold: timedelta | None = None
    """Length of the hold: the lease is gone then unless it was confirmed, and nothing of it starts before."""
    series_id: UUID | None = None
    """Series of which the lease is an occurrence."""
    sharing: Sharing = NOT_SHARED


def create(
    climate: Climate, caller: Caller, order: LeaseRequest, key: Key | None = None, *, dry_run: bool = False
) -> Lease:
    """Record the lease and allocate its resources, or do neither.

    With a key that was used before, returns the lease as it was created. NotEnoughHosts says how many match, how
    many are free and when it would fit. LimitExceeded names the limit of the project.
    """
    require(caller, "leases:post")
    holds.check_length(order.hold, timedelta(seconds=climate.settings.hold_seconds))
    accounts.check(climate, order.sharing)
    requested = reservations.requested(climate, order.reservations, order.splits)
    try:
        requested = reservations.checked(climate, caller, requested, order.end)
    except ClimateError:
        if key is None or (made := created_earlier(climate, caller, key)) is None:
            raise
        return made

    request = _Request(caller, order, requested, key)
    with shortages.explained(climate):
        lease, is_new = _twice(
            climate,
            request,
            lambda wish: enforcement.run_approved(climate, caller, _create, climate, wish, dry_run=dry_run),
        )
    return reservation_aggregates.announce(climate, lease, new=True) if is_new and not dry_run else lease


def dry_run_create(
    climate: Climate, caller: Caller, order: LeaseRequest, requested: Sequence[reservations.Requested]
) -> Lease:
    """Return the lease that `create` would record now, with the approval of the external service; keep nothing.

    `requested`: its reservations, checked by the cloud. Raise the refusals of `create`, shortages without explanation.
    """
    request = _Request(caller, order, requested, None)
    planned = _twice(climate, request, lambda wish: enforcement.rehearse(climate, caller, _create, climate, wish))
    return planned if isinstance(planned, Lease) else planned[0]


@dataclass(frozen=True, slots=True)
class _Request:
    """A request to create a lease, with the idempotency key of the client."""

    caller: Caller
    order: LeaseRequest
    requested: Sequence[reservations.Requested]
    key: Key | None
    turn: Turn = Turn.ONLY


def _twice(climate: Climate, request: _Request, attempt: Callable[[_Request], T]) -> T:
    """Return the result of the request; an ordinary one that lacks hosts may take those of preemptible leases."""
    order = request.order
    if second_try.gives_way(item.spec for item in request.requested):
        return attempt(request)
    during = second_try.reach(climate.settings, order.start, order.end)
    return second_try.if_short(climate, during, lambda turn: attempt(replace(request, turn=turn)))


def _create(conn: Connection, patient: bool, gate: Approval, climate: Climate, request: _Request) -> tuple[Lease, bool]:
    """Record the lease; return it, and false if an earlier request with the same key has created it."""
    caller, key = request.caller, request.key
    if key and (known := idempotency.earlier(conn, caller, key)):
        return at_version(conn, climate, caller, UUID(known), 1), False
    lease = _create_lease(conn, patient, gate, climate, request)
    if key:
        idempotency.remember(conn, caller, key, str(lease.id), lease.created_at)
    return lease, True


def _create_lease(conn: Connection, patient: bool, gate: Approval, climate: Climate, request: _Request) -> Lease:
    order = request.order
    terms = lock_limits(conn, climate, request.caller, gate, hold=order.hold is not None)
    patient = patient or request.turn is Turn.SECOND
    return allocate_and_record(conn, climate, replace(terms, turn=request.turn), order, request.requested, patient)


@dataclass(frozen=True, slots=True)
class AdmissionTerms:
    """Admission under which a transaction creates leases, its time, and the terms of the pool."""

    grant: Grant
    now: datetime
    agreed: Mapping[str, object]
    turn: Turn = Turn.ONLY
    losers: frozenset[UUID] | None = None
    """Preemptible leases that are locked already, of which hosts may be taken; None: lock those of its time."""


def lock_limits(
    conn: Connection, climate: Climate, caller: Caller, gate: Approval, *, hold: bool = False
) -> AdmissionTerms:
    """Read and lock the limits of the project, before any lease or host is locked."""
    rules = admission.read(conn, caller.project_id)
    grant = granting.begin(conn, climate, caller, gate, rules, usual=Limit.HELD_LEASES if hold else None)
    now = climate.now(conn) if grant.has_waited else climate.other_time(conn) or rules.time
    return AdmissionTerms(grant, now, pool_settings.of(conn, climate.settings, rules.terms).of_a_lease)


def allocate_and_record(
    conn: Connection,
    climate: Climate,
    terms: AdmissionTerms,
    order: LeaseRequest,
    requested: Sequence[reservations.Requested],
    patient: bool,
) -> Lease:
    """Allocate and record one lease. A refusal is raised before anything of it is written."""
    grant, now = terms.grant, terms.now
    period = period_of(order, now, climate)
    soon = host_power_on.is_soon(climate.settings, period, now)
    grace = reservations.longest_grace(terms.agreed, requested)
    ask = ResourceRequest(
        {}, period, grant.caller, climate.settings, patient=patient, terms=terms.agreed, grace_of_lease=grace, soon=soon
    )
    losers = _losers(conn, terms, ask.window)
    if losers:
        ask = replace(ask, giving_way=lease_shortening.reservations(losers))
    planned = reservations.reserve(conn, requested, ask, grant.gate.preferred_hosts)
    if terms.turn is Turn.FIRST:
        second_try.refuse_fewer(conn, ask.window, ((r.spec, r.holds) for r in planned if _is_ordinary_here(r)))
    fact = created(grant.caller, order, _times(conn, climate, order, period, now, planned), now, planned)
    lease_shortening.shorten(conn, climate, losers, fact.lease_id, (hold for r in planned for hold in r.holds), now)
    sharing_changes.check(climate.settings, fold([fact]), order.sharing)
    lease = grant.record(conn, now, None, fact)
    sharing_changes.notify(conn, now, None, lease)
    wake_if_soon(conn, climate, lease, now)
    return lease


def _losers(conn: Connection, terms: AdmissionTerms, window: Period) -> tuple[Lease, ...]:
    """Return the preemptible leases of which hosts may be taken, locked."""
    if terms.turn is not Turn.SECOND:
        return ()
    return preemptible.lock(conn, window) if terms.losers is None else preemptible.read(conn, terms.losers)


def _is_ordinary_here(planned: PlannedReservation) -> bool:
    return not planned.parts and not is_preemptible(planned.spec)


def _times(
    conn: Connection,
    climate: Climate,
    order: LeaseRequest,
    period: Period,
    now: datetime,
    reservations: Sequence[PlannedReservation],
) -> Times:
    settings = climate.settings
    hosts = {hold.host for reservation in reservations for hold in reservation.holds}
    return Times(
        period,
        event_transitions.before_end_time(period, order.before_end, usual_before_end(climate)),
        prepare=host_power_on.due_at(conn, settings, period, hosts, now),
        grace=event_transitions.grace(reservation.spec for reservation in reservations),
        hold_until=holds.hold_until(order.hold, period, now),
        additional=event_transitions.additional(order.events, period, order.before_end),
    )


def usual_before_end(climate: Climate) -> timedelta:
    """Return the time before the end at which before_end_lease is due by default."""
    return timedelta(minutes=climate.settings.minutes_before_end)


def created(
    caller: Caller, order: LeaseRequest, times: Times, now: datetime, reservations: tuple[PlannedReservation, ...]
) -> LeaseCreated:
    """Return the fact of a new lease with these events and reservations."""
    return LeaseCreated(
        lease_id=time_ordered_id(),
        at=now,
        name=order.name,
        project_id=caller.project_id,
        user_id=caller.user_id,
        period=times.period,
        reservations=reservations,
        events=event_transitions.plan(times, time_ordered_id),
        series_id=order.series_id,
        sharing=order.sharing or None,
    )


def created_earlier(climate: Climate, caller: Caller, key: Key) -> Lease | None:
    """Return the lease of an earlier request with this key, whatever has become of its resources since."""
    return run(climate, _read_earlier, climate, caller, key)


def _read_earlier(conn: Connection, climate: Climate, caller: Caller, key: Key) -> Lease | None:
    known = idempotency.earlier(conn, caller, key)
    return at_version(conn, climate, caller, UUID(known), 1) if known else None


def delete(
    climate: Climate, caller: Caller, lease_id: UUID, version: int | None = None, *, dry_run: bool = False
) -> Lease:
    """Delete the lease: at once if the cloud has nothing of it yet, otherwise after its end has run.

    Raises Busy while a worker runs one of its events.
    """
    require(caller, "leases:delete")
    lease = access.for_owners(
        climate,
        caller,
        lease_id,
        lambda owner: run(climate, _delete, climate, owner, caller, lease_id, version, keep=not dry_run),
    )
    if not dry_run:
        reservation_aggregates.withdraw(climate, lease)
    return lease


def _delete(
    conn: Connection, climate: Climate, owner: Caller, author: Caller, lease_id: UUID, version: int | None
) -> Lease:
    lease = leases.get(conn, lease_id, project_id=scope(owner), lock=True)
    shortages.check_version(lease, version)
    sublease_changes.check_deletion(conn, lease)
    now = climate.now(conn)
    lease = unbegun_claims.take_back(conn, author, lease, now)
    before, lease = lease, leases.record(conn, author, lease, *event_transitions.delete(lease, now))
    delivery.notify(conn, now, *lease_events.of(climate.settings, before, lease))
    wake_if_soon(conn, climate, lease, now)
    return lease


def get(climate: Climate, caller: Caller, lease_id: UUID, at: datetime | None = None) -> Lease:
    """Return a lease as it is, or as it was `at` a time; one of another project is not found unless it is shared."""
    require(caller, "leases:get")
    return run(climate, _read, climate, caller, lease_id, at)


def _read(conn: Connection, climate: Climate, caller: Caller, lease_id: UUID, at: datetime | None) -> Lease:
    if at is None:
        return access.get(conn, caller, lease_id)
    known = journal.of_lease(journal.until(story(conn, climate, caller, lease_id), at))
    if not known or (lease := fold(known)).gone:
        raise shortages.lease_not_found(lease_id)
    return reservation_aggregates.with_aggregate_ids(conn, lease)


def listed(climate: Climate, caller: Caller, listing: Listing) -> list[Lease]:
    """Return the leases of `rows` without the unreadable ones, for callers that show no list."""
    return [one for one in rows(climate, caller, listing) if isinstance(one, Lease)]


def rows(climate: Climate, caller: Caller, listing: Listing) -> list[ReadLease]:
    """Return the project's leases, or all for an admin; oldest first. Without a project also those that are shared.

    The error of a lease that this release cannot read stands in its place, so that a page has its length and its end.
    """
    require(caller, "leases:get")
    if not caller.is_admin:
        own = {"reader": caller} if listing.project_id is None else {"project_id": caller.project_id}
        listing = replace(listing, **own)
    found = run(climate, leases.listed, listing)
    known = leases.readable(found)
    return [access.visible(caller, known[one.id]) if isinstance(one, Lease) else one for one in found]


def history(climate: Climate, caller: Caller, lease_id: UUID) -> list[journal.Entry]:
    """Return the facts of a lease, also of a deleted one."""
    require(caller, "leases:get")
    return run(climate, story, climate, caller, lease_id)


def story(conn: Connection, climate: Climate, caller: Caller, lease_id: UUID) -> list[journal.Entry]:
    """Return the facts of a lease, also of an archived one; one of another project is not found unless it is shared."""
    entries = access.entries(caller, archives.facts_of(conn, climate, lease_id))
    if entries is None:
        raise shortages.lease_not_found(lease_id)
    return entries


def at_version(conn: Connection, climate: Climate, caller: Caller, lease_id: UUID, version: int) -> Lease:
    known = journal.of_lease(entry for entry in story(conn, climate, caller, lease_id) if entry.version <= version)
    return reservation_aggregates.with_aggregate_ids(conn, fold(known))


def as_created(conn: Connection, ids: Sequence[UUID]) -> list[Lease]:
    """Return leases that are not archived as they were created, also deleted ones."""
    first = [entry for entry in journal.read_many(conn, ids) if entry.version == 1]
    return [reservation_aggregates.with_aggregate_ids(conn, fold(journal.of_lease([entry]))) for entry in first]


def scope(caller: Caller) -> str | None:
    """Return the project that the caller is confined to; None for an admin."""
    return None if caller.is_admin else caller.project_id


def wake_if_soon(conn: Connection, climate: Climate, lease: Lease, now: datetime) -> None:
    """Wake the pollers if something of the lease is due before their next regular look.

    NOTIFY takes a lock of the whole server at commit, so it is used only if needed.
    """
    if is_soon(climate, lease, now):
        event_claims.wake_poller(conn)


def is_soon(climate: Climate, lease: Lease, now: datetime) -> bool:
    """Return whether something of the lease is due before the next regular look of the pollers."""
    soon = now + timedelta(seconds=climate.settings.poll_seconds)
    return not lease.gone and any(event.status == "UNDONE" and event.run_at <= soon for event in lease.events)


def check_dates(climate: Climate, order: LeaseRequest) -> None:
    """Refuse an order with invalid dates, before anything is created for it."""
    with reading(climate.engine) as conn:
        now = climate.now(conn)
    event_transitions.before_end_time(period_of(order, now, climate), order.before_end, timedelta(0))


def period_of(order: LeaseRequest, now: datetime, climate: Climate) -> Period:
    """Return the period of a new lease; raise InvalidPeriod or InvalidInput for dates that no lease has."""
    start = order.start or now.replace(microsecond=0)
    if start < now - GRACE:
        raise InvalidPeriod("Start date must be later than current date")
    if order.end <= now:
        raise InvalidPeriod("End date must be later than current and start date")
    period = limited(Period(start, order.end), climate)
    event_transitions.additional(order.events, period, order.before_end)
    return period


def limited(period: Period, climate: Climate) -> Period:
    """Return the period; raise InvalidPeriod if it is longer than the longest lease, or ends after the last date."""
    if period.end > LATEST:
        raise InvalidPeriod(f"A lease ends at {LATEST:%Y-%m-%d}, the last possible date, at the latest")
    days = climate.settings.max_lease_days
    if period.end - period.start > timedelta(days=days):
        raise InvalidPeriod(f"A lease lasts {days} days at most")
    return period


def of_reservation(climate: Climate, caller: Caller, reservation_id: UUID) -> Lease:
    """Return the lease of a reservation on which the caller's project may boot; others are not found, even for admins.

    Raise Forbidden if the lease is shared with the caller only.
    """
    return run(climate, _read_of_reservation, caller, reservation_id)


def _read_of_reservation(conn: Connection, caller: Caller, reservation_id: UUID) -> Lease:
    lease = leases.of_reservation(conn, reservation_id)
    missing = NotFound(f"Object with {{'reservation_id': '{reservation_id}'}} not found")
    if lease is None:
        raise missing
    access.check_boot(caller, lease, missing)
    return lease


def of_resource(climate: Climate, resource_id: str) -> Lease | None:
    """Return the lease in force with a reservation for a resource; the caller has checked the permission."""
    return run(climate, leases.of_resource, resource_id)
