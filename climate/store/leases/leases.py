"""Leases as rows, and the single function that changes them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Connection,
    Select,
    Table,
    Uuid,
    bindparam,
    func,
    select,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY, aggregate_order_by
from sqlalchemy.exc import IntegrityError

from climate.connections import Insert
from climate.domain.errors import Conflict, InvalidInput, NotFound
from climate.domain.event_share import Share
from climate.domain.facts import AddressHold, AmountHold, Fact, Hold
from climate.domain.lease import Event, Lease, Part, Reservation, fold
from climate.domain.period import Period
from climate.domain.policy import Caller
from climate.domain.status import EventKind, EventStatus, HoldState, LeaseStatus, PartState
from climate.store import locks
from climate.store.db_errors import constraint
from climate.store.journal import journal
from climate.store.leases import healing_waits, tampering
from climate.store.leases import rows as lease_rows
from climate.store.tables.floating_ips import floating_allocations, floating_ips
from climate.store.tables.inventories import inventory_allocations
from climate.store.tables.leases import allocations, events, has, lease_pools, leases, reservations

LAST = datetime(9999, 1, 1, tzinfo=UTC)
AHEAD_OF_ITS_START = timedelta(days=1)
"""Time by which a start may precede the creation of its lease, since starts may lie some seconds in the past."""

Change = tuple[Lease | None, Sequence[Fact]]
"""The present lease, or None, and the facts that change it."""


def record(
    conn: Connection, author: Caller, lease: Lease | None, *happened: Fact, pools: Insert | None = None
) -> Lease:
    """Append facts to a lease's journal and update its rows.

    Raise Tampered if its rows are not the fold of its journal, because new facts would preserve the difference.
    """
    if lease is not None:
        tampering.refuse_lease(conn, lease)
    return record_many(conn, author, [(lease, happened)], pools)[0]


def record_many(
    conn: Connection, author: Caller, changes: Sequence[Change], pools: Insert | None = None
) -> list[Lease]:
    """Record changes of leases: facts and rows together, or neither.

    Takes a constant number of statements for any number of leases. Raise Conflict if another transaction has appended
    to one of them since it was read. `pools` creates the pools of their reservations in the cloud.
    """
    after = [fold(list(happened), before) for before, happened in changes]
    entries = [
        (lease.id, version, fact)
        for lease, (_, happened) in zip(after, changes, strict=True)
        for version, fact in enumerate(happened, start=lease.version - len(happened) + 1)
    ]
    pairs = [(before, lease) for (before, _), lease in zip(changes, after, strict=True)]
    made: Mapping[UUID, int] = {}
    if entries:
        try:
            rowless = all(before is None for before, _ in pairs)
            made = lease_rows.save(conn, pairs, journal.rows(entries, author), pools, rowless=rowless)
        except IntegrityError as error:
            if constraint(error) != "pk_journal":
                raise
            raise Conflict("Someone else changed the lease at the same moment") from error
        if any(_in_force(before) - _in_force(lease) for before, lease in pairs if before):
            healing_waits.wake(conn)
    return [_with_pools(lease, made) for lease in after] if made else after


def _with_pools(lease: Lease, made: Mapping[UUID, int]) -> Lease:
    own = (replace(one, aggregate_id=made.get(one.id, one.aggregate_id)) for one in lease.reservations)
    return replace(lease, reservations=tuple(own))


def _in_force(lease: Lease) -> set[tuple[UUID, Hold]]:
    return {(r.id, hold) for r in lease.reservations if _is_held(lease, r) for hold in r.holds}


def _is_held(lease: Lease, reservation: Reservation) -> bool:
    return lease.hold_state_of(reservation) is not HoldState.RELEASED


def get(conn: Connection, lease_id: UUID, *, project_id: str | None = None, lock: bool = False) -> Lease:
    """Return a lease that is not deleted. Raise NotFound, also for a lease of another project."""
    wanted = [leases.c.id == lease_id, ~leases.c.gone]
    wanted += [] if project_id is None else [leases.c.project_id == project_id]
    if lock:  # waits for the row; only a later statement sees what its last holder wrote to other tables
        conn.execute(locks.ordered(select(leases.c.id).where(*wanted), leases.c.id))
    row = conn.execute(_WHOLE.where(*wanted)).one_or_none()
    if row is None:
        raise NotFound(f"Object with {{'lease_id': '{lease_id}'}} not found")
    return _lease(row)


def lock(conn: Connection, ids: Iterable[UUID]) -> list[Lease]:
    """Return the leases that are not deleted, in the order of their ids, with their rows locked as by `get`."""
    found = get_many(conn, locks.lock_leases(conn, ids))
    return [found[lease_id] for lease_id in sorted(found)]


def get_many(conn: Connection, ids: Iterable[UUID]) -> dict[UUID, Lease]:
    """Return leases by id, including deleted ones."""
    return {row.id: _lease(row) for row in conn.execute(_BY_IDS, {"ids": list(ids)})}


def all_of(conn: Connection) -> Iterable[Lease]:
    """Yield all leases, including deleted ones, in the order of their ids; read in batches."""
    for row in conn.execute(_WHOLE.order_by(leases.c.id), execution_options={"yield_per": 500}):
        yield _lease(row)


def of_event(conn: Connection, event_id: UUID) -> Lease:
    """Return the lease of an event, not locked."""
    return _lease(conn.execute(_OF_EVENT, {"event_id": event_id}).one())


def of_events(conn: Connection, event_ids: Iterable[UUID]) -> dict[UUID, Lease]:
    """Return the leases of events, not locked, by the ids of these events."""
    wanted = set(event_ids)
    found = [_lease(row) for row in conn.execute(_OF_EVENTS, {"event_ids": list(wanted)})]
    return {event.id: lease for lease in found for event in lease.events if event.id in wanted}


def events_with(
    conn: Connection, status: str | None, limit: int, marker: UUID | None = None
) -> list[tuple[Lease, Event]]:
    """Return events with their leases, in the order in which they are due, after the marker."""
    query = select(events.c.id, events.c.lease_id).order_by(events.c.due_at, events.c.id).limit(limit)
    query = query if status is None else query.where(has(events.c.status, EventStatus(status)))
    if marker is not None:
        place = conn.execute(select(events.c.due_at, events.c.id).where(events.c.id == marker)).one_or_none()
        if place is None:
            raise InvalidInput(f"marker {marker} is not the id of an event")
        query = query.where(tuple_(events.c.due_at, events.c.id) > tuple_(place.due_at, place.id))
    found = conn.execute(query).all()
    owners = get_many(conn, {row.lease_id for row in found})
    return [(owners[row.lease_id], owners[row.lease_id].event(row.id)) for row in found]


def holding(conn: Connection, event_id: UUID) -> Lease:
    """Return the lease of an event, locked."""
    lease_id = conn.scalar(_LOCK_OF_EVENT, {"event_id": event_id})
    if lease_id is None:
        raise NotFound(f"no event {event_id}")
    return get_many(conn, [lease_id])[lease_id]


def with_resource(conn: Connection, resource_ids: Iterable[str]) -> frozenset[str]:
    """Return those of the resources that a reservation of a lease in force is for."""
    found = select(reservations.c.resource_id).where(
        reservations.c.resource_id.in_(list(resource_ids)), reservations.c.status != "deleted"
    )
    return frozenset(conn.scalars(found))


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
    return _lease(row) if row else None


def of_resource(conn: Connection, resource_id: str) -> Lease | None:
    """Return the lease in force that has a reservation for a resource."""
    owner = (
        select(reservations.c.lease_id)
        .where(reservations.c.resource_id == resource_id, reservations.c.status != "deleted")
        .limit(1)
        .scalar_subquery()
    )
    row = conn.execute(_WHOLE.where(leases.c.id == owner)).one_or_none()
    return _lease(row) if row else None


@dataclass(frozen=True, slots=True)
class Listing:
    """Filter of leases (all conditions must hold), and the page after `marker`."""

    project_id: str | None = None
    status: str | None = None
    name: str | None = None
    starts_before: datetime | None = None
    ends_after: datetime | None = None
    marker: UUID | None = None
    limit: int | None = None


def listed(conn: Connection, wanted: Listing) -> list[Lease]:
    """Return leases, oldest first, in one statement. Raise InvalidInput for a marker that is not among them.

    Each condition has an index, in the order of the list where that is possible.
    """
    query = _WHOLE.where(~leases.c.gone).order_by(leases.c.created_at, leases.c.id)
    conditions = {
        leases.c.project_id: wanted.project_id,
        leases.c.status: wanted.status,
        leases.c.name: wanted.name,
    }
    for column, value in conditions.items():
        query = query if value is None else query.where(column == value)
    if wanted.starts_before is not None:
        latest = min(wanted.starts_before, LAST - AHEAD_OF_ITS_START) + AHEAD_OF_ITS_START
        query = query.where(leases.c.start_date < wanted.starts_before, leases.c.created_at < latest)
    if wanted.ends_after is not None:
        # Selected by a list of ids, hence by the index of ends: the order of the list begins with ended leases.
        late = (
            select(leases.c.id).where(~leases.c.gone, leases.c.end_date > wanted.ends_after).order_by(leases.c.end_date)
        )
        query = query.where(leases.c.id == func.any(func.array(late.scalar_subquery())))
    if wanted.marker is not None:
        query = query.where(tuple_(leases.c.created_at, leases.c.id) > _place(conn, wanted))
    return [_lease(row) for row in conn.execute(query.limit(wanted.limit)).all()]


def _place(conn: Connection, wanted: Listing) -> Any:
    place = select(leases.c.created_at, leases.c.id).where(leases.c.id == wanted.marker)
    if wanted.project_id is not None:
        place = place.where(leases.c.project_id == wanted.project_id)
    row = conn.execute(place).one_or_none()
    if row is None:
        raise InvalidInput(f"marker {wanted.marker} is not the id of a lease in this list")
    return tuple_(row.created_at, row.id)


def _gathered(table: Table, *order: Any) -> Any:
    """Return the rows of `table` of the lease in the outer query, as one JSON list."""
    rows = func.jsonb_agg(aggregate_order_by(func.to_jsonb(table.table_valued()), *order))
    return select(rows).where(table.c.lease_id == leases.c.id).scalar_subquery()


def _gathered_holds() -> Any:
    fields = func.jsonb_build_array(
        allocations.c.reservation_id,
        allocations.c.host,
        func.lower(allocations.c.during),
        func.upper(allocations.c.during),
        allocations.c.slots,
    )
    own = allocations.join(reservations, allocations.c.reservation_id == reservations.c.id)
    rows = select(func.jsonb_agg(aggregate_order_by(fields, allocations.c.host))).select_from(own)
    return rows.where(reservations.c.lease_id == leases.c.id).scalar_subquery()


def _gathered_addresses() -> Any:
    held = floating_allocations
    spelled = func.host(floating_ips.c.address)
    period = (func.lower(held.c.during), func.upper(held.c.during))
    fields = func.jsonb_build_array(held.c.reservation_id, held.c.number, spelled, *period)
    own = held.join(floating_ips).join(reservations, held.c.reservation_id == reservations.c.id)
    rows = select(func.jsonb_agg(aggregate_order_by(fields, held.c.number))).select_from(own)
    return rows.where(reservations.c.lease_id == leases.c.id).scalar_subquery()


def _gathered_pools() -> Any:
    pools = lease_pools.join(reservations, lease_pools.c.reservation_id == reservations.c.id)
    rows = select(func.jsonb_object_agg(lease_pools.c.reservation_id, lease_pools.c.aggregate_id)).select_from(pools)
    return rows.where(reservations.c.lease_id == leases.c.id).scalar_subquery()


def _gathered_amounts() -> Any:
    held = inventory_allocations
    period = (func.lower(held.c.during), func.upper(held.c.during))
    fields = func.jsonb_build_array(held.c.reservation_id, held.c.number, held.c.amount, *period)
    own = held.join(reservations, held.c.reservation_id == reservations.c.id)
    rows = select(func.jsonb_agg(aggregate_order_by(fields, held.c.number))).select_from(own)
    return rows.where(reservations.c.lease_id == leases.c.id).scalar_subquery()


_WHOLE: Select[Any] = select(
    leases,
    _gathered(reservations, reservations.c.position).label("reservations"),
    _gathered(events, events.c.seq, events.c.due_at, events.c.id).label("events"),
    _gathered_holds().label("holds"),
    _gathered_addresses().label("addresses"),
    _gathered_pools().label("pools"),
    _gathered_amounts().label("amounts"),
)
"""Whole leases in one statement, with their parts as JSON."""

_OWNER = select(events.c.lease_id).where(events.c.id == bindparam("event_id", type_=Uuid)).scalar_subquery()
_BY_IDS = _WHOLE.where(leases.c.id == func.any(bindparam("ids", type_=ARRAY(Uuid))))
_OWNERS = select(events.c.lease_id).where(events.c.id == func.any(bindparam("event_ids", type_=ARRAY(Uuid))))
_OF_EVENTS = _WHOLE.where(leases.c.id.in_(_OWNERS))
_OF_EVENT = _WHOLE.where(leases.c.id == _OWNER)

# As in `get`, read the rest in a later statement.
_LOCK_OF_EVENT = locks.ordered(select(leases.c.id).where(leases.c.id == _OWNER), leases.c.id)


def _lease(row: Any) -> Lease:
    holds: dict[str, list[Hold]] = {}
    for reservation_id, host, start, end, slots in row.holds or ():
        holds.setdefault(reservation_id, []).append(Hold(host, Period(_time(start), _time(end)), slots))
    addresses: dict[str, list[AddressHold]] = {}
    for reservation_id, number, address, start, end in row.addresses or ():
        held = AddressHold(number, address, Period(_time(start), _time(end)))
        addresses.setdefault(reservation_id, []).append(held)
    amounts: dict[str, list[AmountHold]] = {}
    for reservation_id, number, amount, start, end in row.amounts or ():
        amounts.setdefault(reservation_id, []).append(AmountHold(number, amount, Period(_time(start), _time(end))))
    return Lease(
        id=row.id,
        name=row.name,
        project_id=row.project_id,
        user_id=row.user_id,
        period=Period(row.start_date, row.end_date),
        reservations=tuple(
            replace(
                _reservation(r, tuple(holds.get(r["id"], ())), tuple(addresses.get(r["id"], ()))),
                aggregate_id=(row.pools or {}).get(r["id"]),
                amounts=tuple(amounts.get(r["id"], ())),
            )
            for r in row.reservations or ()
        ),
        events=tuple(_event(e) for e in row.events or ()),
        created_at=row.created_at,
        updated_at=row.updated_at,
        deleting=row.deleting,
        gone=row.gone,
        version=row.version,
    )


def _reservation(r: dict[str, Any], holds: tuple[Hold, ...], addresses: tuple[AddressHold, ...]) -> Reservation:
    return Reservation(
        id=UUID(r["id"]),
        resource_type=r["resource_type"],
        spec=r["spec"],
        resource_id=r["resource_id"],
        holds=holds,
        exists_before_start=r["exists_before_start"],
        missing=r["missing"],
        resources_changed=r["resources_changed"],
        addresses=addresses,
        parts=tuple(_part(part) for part in r["parts"]),
    )


def _part(p: dict[str, Any]) -> Part:
    return Part(
        id=UUID(p["id"]),
        zone_id=p["zone_id"],
        zone=p["zone"],
        least=p["least"],
        most=p["most"],
        state=PartState(p["state"]),
        lease_id=UUID(p["lease_id"]) if p["lease_id"] else None,
        reservation_id=UUID(p["reservation_id"]) if p["reservation_id"] else None,
        hosts=p["hosts"],
        cell=p.get("cell", ""),
    )


def _event(e: dict[str, Any]) -> Event:
    return Event(
        id=UUID(e["id"]),
        kind=_KINDS.get(e["kind"]) or EventKind(e["kind"]),
        due_at=_time(e["due_at"]),
        run_at=_time(e["run_at"]),
        status=_STATUSES.get(e["status"]) or EventStatus(e["status"]),
        outcome=e["outcome"],
        reason=e["reason"],
        attempts=e["attempts"],
        token=e["token"],
        first_claimed_at=_time(e["first_claimed_at"]) if e["first_claimed_at"] else None,
        updated_at=_time(e["updated_at"]) if e["updated_at"] else None,
        name=e["name"],
        shares=tuple(Share(**share) for share in e["shares"]),
    )


_time = datetime.fromisoformat
# A mapping is much quicker than a call of the enumeration, and lists have many events.
_KINDS = {str(kind): kind for kind in EventKind}
_STATUSES = {str(status): status for status in EventStatus}
