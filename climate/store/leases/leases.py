"""Leases as rows, and the single function that changes them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    Select,
    Table,
    Uuid,
    bindparam,
    func,
    or_,
    select,
    tuple_,
    union,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by

from climate.database.connections import Insert
from climate.database.sql_arrays import in_parameter
from climate.database.violated_constraints import translated
from climate.domain.errors import Conflict, InvalidInput, NotFound, UnreadableLease
from climate.domain.facts import AddressHold, AmountHold, Fact, Hold
from climate.domain.lease import Lease, Reservation, fold
from climate.domain.period import Period
from climate.domain.policy import Caller
from climate.domain.status import EventStatus, HoldState, LeaseStatus
from climate.store import locks
from climate.store.journal import journal
from climate.store.leases import healing_waits, row_consistency
from climate.store.leases import rows as lease_rows
from climate.store.leases.rows import lease_of
from climate.store.tables.floating_ips import floating_allocations, floating_ips
from climate.store.tables.inventories import inventory_allocations
from climate.store.tables.leases import allocations, events, has, lease_pools, leases, reservations, shared_with

LAST = datetime(9999, 1, 1, tzinfo=UTC)
AHEAD_OF_ITS_START = timedelta(days=1)
"""Time by which a start may precede the creation of its lease, since starts may lie some seconds in the past."""

ReadLease = Lease | UnreadableLease
"""A lease of a list, or in its place the error of one whose rows this release cannot read."""

MOST_LOGGED = 20
"""Maximum number of unreadable leases that one line of the log names."""

LONGEST_REASON = 200

log = structlog.get_logger(__name__)

Change = tuple[Lease | None, Sequence[Fact]]
"""The present lease, or None, and the facts that change it."""


def record(
    conn: Connection, author: Caller, lease: Lease | None, *happened: Fact, pools: Insert | None = None
) -> Lease:
    """Append facts to a lease's journal and update its rows.

    Raise Tampered if its rows are not the fold of its journal, because new facts would preserve the difference.
    """
    if lease is not None:
        row_consistency.refuse_lease(conn, lease)
    return record_many(conn, author, [(lease, happened)], pools)[0]


def record_many(
    conn: Connection, author: Caller, changes: Sequence[Change], pools: Insert | None = None
) -> list[Lease]:
    """Record changes of leases: facts and rows together, or neither.

    Takes a constant number of statements for any number of leases. Raise Conflict if another transaction has appended
    to one of them since it was read. `pools` creates the pools of their reservations in the cloud.
    """
    after = [fold(list(happened), before) for before, happened in changes]
    entries = _journal_entries(changes, after)
    if not entries:
        return after
    pairs = [(before, lease) for (before, _), lease in zip(changes, after, strict=True)]
    rowless = all(before is None for before, _ in pairs)
    with translated({"pk_journal": Conflict("Someone else changed the lease at the same moment")}):
        made = lease_rows.save(conn, pairs, journal.rows(entries, author), pools, rowless=rowless)
    if released := _released(pairs):
        healing_waits.wake(conn, released)
    return [_with_pools(lease, made) for lease in after] if made else after


def _journal_entries(changes: Sequence[Change], after: Sequence[Lease]) -> list[tuple[UUID, int, Fact]]:
    """Return each fact with its lease, and the version that the lease has since."""
    return [
        (lease.id, version, fact)
        for lease, (_, happened) in zip(after, changes, strict=True)
        for version, fact in enumerate(happened, start=lease.version - len(happened) + 1)
    ]


def _with_pools(lease: Lease, made: Mapping[UUID, int]) -> Lease:
    own = (
        replace(reservation, aggregate_id=made.get(reservation.id, reservation.aggregate_id))
        for reservation in lease.reservations
    )
    return replace(lease, reservations=tuple(own))


def _released(changed: lease_rows.Changed) -> set[Period]:
    """Return the periods for which leases held resources that others may have now."""
    return {hold.during for before, after in changed if before for _, hold in _in_force(before) - _in_force(after)}


def _in_force(lease: Lease) -> set[tuple[UUID, Hold | AddressHold | AmountHold]]:
    return {(r.id, hold) for r in lease.reservations if _is_held(lease, r) for hold in _all_of(r)}


def _all_of(reservation: Reservation) -> tuple[Hold | AddressHold | AmountHold, ...]:
    return (*reservation.holds, *reservation.addresses, *reservation.amounts)


def _is_held(lease: Lease, reservation: Reservation) -> bool:
    return lease.hold_state_of(reservation) is not HoldState.RELEASED


def get(
    conn: Connection, lease_id: UUID, *, project_id: str | None = None, reader: Caller | None = None, lock: bool = False
) -> Lease:
    """Return a lease that is not deleted. Raise NotFound, also for a lease of another project.

    With a `reader` also a lease that is shared with the caller's project, or with the caller.
    """
    wanted = [leases.c.id == lease_id, ~leases.c.gone]
    wanted += [] if project_id is None else [leases.c.project_id == project_id]
    wanted += [] if reader is None else [_readable(reader)]
    if lock:  # waits for the row; only a later statement sees what its last holder wrote to other tables
        conn.execute(locks.ordered(select(leases.c.id).where(*wanted), leases.c.id))
    row = conn.execute(_WHOLE.where(*wanted)).one_or_none()
    if row is None:
        raise NotFound(f"Object with {{'lease_id': '{lease_id}'}} not found")
    try:
        return lease_of(row)
    except UnreadableLease as error:
        raise error.named from error.__cause__


def _readable(reader: Caller) -> ColumnElement[bool]:
    return or_(
        leases.c.project_id == reader.project_id,
        shared_with(project_id=reader.project_id, user_id=reader.user_id),
        leases.c.parent["project_id"].astext == reader.project_id,
    )


def lock(conn: Connection, ids: Iterable[UUID]) -> list[Lease]:
    """Return the leases that are not deleted, in the order of their ids, with their rows locked as by `get`."""
    by_id = get_many(conn, locks.lock_leases(conn, ids))
    return [by_id[lease_id] for lease_id in sorted(by_id)]


def get_many(conn: Connection, ids: Iterable[UUID]) -> dict[UUID, Lease]:
    """Return leases by id, including deleted ones."""
    return {row.id: lease_of(row) for row in conn.execute(_BY_IDS, {"ids": list(ids)})}


def get_readable(conn: Connection, ids: Iterable[UUID]) -> dict[UUID, Lease]:
    """Return leases by id, including deleted ones, without those that this release cannot read; they are logged."""
    return readable(read_many(conn, ids).values())


def read_many(conn: Connection, ids: Iterable[UUID]) -> dict[UUID, ReadLease]:
    """Return leases by id, including deleted ones, with the errors of unreadable ones in their places."""
    return {row.id: _read(row) for row in conn.execute(_BY_IDS, {"ids": list(ids)})}


def _read(row: Row[*tuple[object, ...]]) -> ReadLease:
    try:
        return lease_of(row)
    except UnreadableLease as error:
        return error


def readable(rows: Iterable[ReadLease]) -> dict[UUID, Lease]:
    """Return the leases that could be read, by id; log the others in one line."""
    known: dict[UUID, Lease] = {}
    unreadable: list[UnreadableLease] = []
    for row in rows:
        if isinstance(row, UnreadableLease):
            unreadable.append(row)
        else:
            known[row.id] = row
    if unreadable:
        reasons = {str(one.lease_id): repr(one.__cause__)[:LONGEST_REASON] for one in unreadable[:MOST_LOGGED]}
        log.error(
            "unreadable leases left out; `climate event mend` repairs them", leases=reasons, count=len(unreadable)
        )
    return known


def all_of(conn: Connection) -> Iterable[Lease]:
    """Yield all leases, including deleted ones, in the order of their ids; read in batches."""
    for row in conn.execute(_WHOLE.order_by(leases.c.id), execution_options={"yield_per": 500}):
        yield lease_of(row)


def of_event(conn: Connection, event_id: UUID) -> Lease:
    """Return the lease of an event, not locked."""
    return lease_of(conn.execute(_OF_EVENT, {"event_id": event_id}).one())


def of_events(conn: Connection, event_ids: Iterable[UUID]) -> dict[UUID, Lease]:
    """Return the leases of events, not locked, by the ids of these events."""
    wanted = set(event_ids)
    owners = [lease_of(row) for row in conn.execute(_OF_EVENTS, {"event_ids": list(wanted)})]
    return {event.id: lease for lease in owners for event in lease.events if event.id in wanted}


def events_with(
    conn: Connection, status: str | None, limit: int, marker: UUID | None = None
) -> list[tuple[UUID, ReadLease]]:
    """Return the ids of events with their leases, in the order in which they are due, after the marker."""
    query = select(events.c.id, events.c.lease_id).order_by(events.c.due_at, events.c.id).limit(limit)
    query = query if status is None else query.where(has(events.c.status, EventStatus(status)))
    if marker is not None:
        place = conn.execute(select(events.c.due_at, events.c.id).where(events.c.id == marker)).one_or_none()
        if place is None:
            raise InvalidInput(f"marker {marker} is not the id of an event")
        query = query.where(tuple_(events.c.due_at, events.c.id) > tuple_(place.due_at, place.id))
    rows = conn.execute(query).all()
    owners = read_many(conn, {row.lease_id for row in rows})
    return [(row.id, owners[row.lease_id]) for row in rows]


def holding(conn: Connection, event_id: UUID) -> Lease:
    """Return the lease of an event, locked."""
    lease_id = conn.scalar(_LOCK_OF_EVENT, {"event_id": event_id})
    if lease_id is None:
        raise NotFound(f"no event {event_id}")
    return get_many(conn, [lease_id])[lease_id]


def with_resource(conn: Connection, resource_ids: Iterable[str]) -> frozenset[str]:
    """Return those of the resources that a reservation of a lease in force is for."""
    query = select(reservations.c.resource_id).where(
        reservations.c.resource_id.in_(list(resource_ids)), reservations.c.status != "deleted"
    )
    return frozenset(conn.scalars(query))


def is_promised(conn: Connection, resource_id: str) -> bool:
    """Return whether a lease in force is for that resource; others wait with this check until the transaction ends.

    Raise Busy if another transaction checks it, and this one holds locks that the other may wait for.
    """
    locks.lock_resource(conn, resource_id)
    return bool(with_resource(conn, [resource_id]))


def count_open(conn: Connection, project_id: str) -> int:
    """Return the number of leases of a project that have not ended, those in ERROR among them."""
    still = (leases.c.project_id == project_id) & ~leases.c.gone & (leases.c.status != LeaseStatus.TERMINATED)
    return int(conn.execute(select(func.count()).where(still)).scalar_one())


def of_reservation(conn: Connection, reservation_id: UUID) -> Lease | None:
    """Return the lease of a reservation, deleted or not."""
    owner = select(reservations.c.lease_id).where(reservations.c.id == reservation_id).scalar_subquery()
    row = conn.execute(_WHOLE.where(leases.c.id == owner)).one_or_none()
    return lease_of(row) if row else None


def of_resource(conn: Connection, resource_id: str) -> Lease | None:
    """Return the lease in force that has a reservation for a resource."""
    owner = (
        select(reservations.c.lease_id)
        .where(reservations.c.resource_id == resource_id, reservations.c.status != "deleted")
        .limit(1)
        .scalar_subquery()
    )
    row = conn.execute(_WHOLE.where(leases.c.id == owner)).one_or_none()
    return lease_of(row) if row else None


@dataclass(frozen=True, slots=True)
class Listing:
    """Filter of leases (all conditions must hold), and the page after `marker`."""

    project_id: str | None = None
    reader: Caller | None = None
    """Caller of whose project the leases are, or with whom they are shared."""
    status: str | None = None
    name: str | None = None
    starts_before: datetime | None = None
    ends_after: datetime | None = None
    series_id: UUID | None = None
    marker: UUID | None = None
    limit: int | None = None
    soonest: bool = False
    """Leases of a project in the order of their ends, without a marker, instead of the oldest first."""


def listed(conn: Connection, listing: Listing) -> list[ReadLease]:
    """Return leases, oldest first, in one statement. Raise InvalidInput for a marker that is not among them.

    Each condition has an index, in the order of the list where that is possible.
    """
    order = (leases.c.end_date if listing.soonest else leases.c.created_at, leases.c.id)
    wished = _conditions(conn, listing)
    if (reader := listing.reader) is None:
        chosen = _WHOLE.where(*wished)
    else:  # two lists of ids, each by its own index
        shared = shared_with(project_id=reader.project_id, user_id=reader.user_id)
        both = [
            select(leases.c.id).where(*wished, condition).order_by(*order).limit(listing.limit)
            for condition in (leases.c.project_id == reader.project_id, shared)
        ]
        chosen = _WHOLE.where(leases.c.id.in_(union(*(one.subquery().select() for one in both))))
    return [_read(row) for row in conn.execute(chosen.order_by(*order).limit(listing.limit)).all()]


def _conditions(conn: Connection, listing: Listing) -> list[ColumnElement[bool]]:
    found = [~leases.c.gone]
    if listing.status in _LEASE_STATUSES:  # a plan for any status expects as many leases of a rare one
        found.append(has(leases.c.status, listing.status))
    elif listing.status is not None:
        found.append(leases.c.status == listing.status)
    conditions = {
        leases.c.project_id: listing.project_id,
        leases.c.name: listing.name,
        leases.c.series_id: listing.series_id,
    }
    found += [column == value for column, value in conditions.items() if value is not None]
    if listing.starts_before is not None:
        latest = min(listing.starts_before, LAST - AHEAD_OF_ITS_START) + AHEAD_OF_ITS_START
        found += [leases.c.start_date < listing.starts_before, leases.c.created_at < latest]
    if listing.ends_after is not None:
        found.append(_ends_after(listing, listing.ends_after))
    if listing.marker is not None:
        found.append(tuple_(leases.c.created_at, leases.c.id) > _place(conn, listing))
    return found


def _ends_after(listing: Listing, time: datetime) -> ColumnElement[bool]:
    if listing.soonest:
        return leases.c.end_date > time
    # Selected by a list of ids, hence by the index of ends: the order of the list begins with ended leases.
    late = select(leases.c.id).where(~leases.c.gone, leases.c.end_date > time).order_by(leases.c.end_date)
    late = late if listing.project_id is None else late.where(leases.c.project_id == listing.project_id)
    return leases.c.id == func.any(func.array(late.scalar_subquery()))


def _place(conn: Connection, listing: Listing) -> object:
    place = select(leases.c.created_at, leases.c.id).where(leases.c.id == listing.marker)
    if listing.project_id is not None:
        place = place.where(leases.c.project_id == listing.project_id)
    if listing.reader is not None:
        place = place.where(_readable(listing.reader))
    row = conn.execute(place).one_or_none()
    if row is None:
        raise InvalidInput(f"marker {listing.marker} is not the id of a lease in this list")
    return tuple_(row.created_at, row.id)


def _gathered(rows: FromClause, order: Sequence[Any], *fields: Any) -> object:
    """Return the fields of these rows of the lease in the outer query, as one JSON list of lists.

    Lists are decoded much faster than objects, and `json` is written faster than `jsonb`.
    """
    children = func.json_agg(aggregate_order_by(func.json_build_array(*fields), *order))
    owner = (rows if isinstance(rows, Table) else reservations).c.lease_id
    return select(children).select_from(rows).where(owner == leases.c.id).scalar_subquery()


def _of_reservations(held: Table) -> FromClause:
    return held.join(reservations, held.c.reservation_id == reservations.c.id)


def _bounds(held: Table) -> tuple[object, object]:
    return func.lower(held.c.during), func.upper(held.c.during)


_RESERVATION_COLUMNS = (
    "id resource_type spec resource_id exists_before_start missing resources_changed parts preemptions sublets"
)
_RESERVATION = [reservations.c[name] for name in _RESERVATION_COLUMNS.split()]
"""Columns in the order in which `climate.store.leases.rows` reads them."""

_EVENT_COLUMNS = "id kind due_at run_at status outcome reason attempts token first_claimed_at updated_at name shares"
_EVENT = [events.c[name] for name in _EVENT_COLUMNS.split()]
"""Columns in the order in which `climate.store.leases.rows` reads them."""

_PARTS = (
    _gathered(reservations, [reservations.c.position], *_RESERVATION),
    _gathered(events, [events.c.seq, events.c.due_at, events.c.id], *_EVENT),
    _gathered(
        _of_reservations(allocations),
        [allocations.c.host],
        allocations.c.reservation_id,
        allocations.c.host,
        *_bounds(allocations),
        allocations.c.slots,
    ),
    _gathered(
        _of_reservations(floating_allocations).join(floating_ips),
        [floating_allocations.c.number],
        floating_allocations.c.reservation_id,
        floating_allocations.c.number,
        func.host(floating_ips.c.address),
        *_bounds(floating_allocations),
    ),
    _gathered(
        _of_reservations(lease_pools), [reservations.c.id], lease_pools.c.reservation_id, lease_pools.c.aggregate_id
    ),
    _gathered(
        _of_reservations(inventory_allocations),
        [inventory_allocations.c.number],
        inventory_allocations.c.reservation_id,
        inventory_allocations.c.number,
        inventory_allocations.c.amount,
        *_bounds(inventory_allocations),
    ),
)

_WHOLE: Select[*tuple[object, ...]] = select(leases, func.json_build_array(*_PARTS).label("parts"))
"""Whole leases in one statement, with all their parts as one JSON list, in the order in which `lease_of` reads them."""

_OWNER = select(events.c.lease_id).where(events.c.id == bindparam("event_id", type_=Uuid)).scalar_subquery()
_BY_IDS = _WHOLE.where(in_parameter(leases.c.id, "ids"))
_OWNERS = select(events.c.lease_id).where(in_parameter(events.c.id, "event_ids"))
_OF_EVENTS = _WHOLE.where(leases.c.id.in_(_OWNERS))
_OF_EVENT = _WHOLE.where(leases.c.id == _OWNER)

# As in `get`, read the rest in a later statement.
_LOCK_OF_EVENT = locks.ordered(select(leases.c.id).where(leases.c.id == _OWNER), leases.c.id)
_LEASE_STATUSES = frozenset(str(status) for status in LeaseStatus)
