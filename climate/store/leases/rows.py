"""Leases as rows: read from them, and written by a single statement for any number of leases."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Connection, Table, Text, TextClause, TextualSelect, column, delete, text, tuple_
from sqlalchemy import Row as StoredRow

from climate.database.connections import Insert
from climate.domain.errors import UnreadableLease
from climate.domain.events.event import Event
from climate.domain.events.event_share import Share
from climate.domain.facts import AddressHold, AmountHold, Hold
from climate.domain.lease import Lease, Reservation
from climate.domain.period import Period
from climate.domain.planning.preemption import Preemption, is_preemptible
from climate.domain.sharing.sharing import NOT_SHARED, Sharing
from climate.domain.sharing.sublease import Sublet
from climate.domain.sharing.sublease_facts import ParentLease
from climate.domain.status import EventKind, EventStatus
from climate.store.journal import fact_codec
from climate.store.leases import parts as lease_parts
from climate.store.tables.floating_ips import floating_allocations
from climate.store.tables.inventories import inventory_allocations
from climate.store.tables.leases import allocations, events, journal, leases, reservations

SEQ = {
    EventKind.WAIT_OVER: -5,
    EventKind.EXPIRE: 0,
    EventKind.SYNC: 5,
    EventKind.PREPARE: 10,
    EventKind.START: 20,
    EventKind.ADJUST: 30,
    EventKind.ADDITIONAL: 35,
    EventKind.BEFORE_END: 40,
    EventKind.CLOSE: 50,
    EventKind.END: 60,
}
"""Numbers of the kinds of events, stored in rows; a kind never changes its number."""

_json = json.JSONEncoder(default=str).encode

Row = dict[str, Any]
Changed = Sequence[tuple[Lease | None, Lease]]
"""Pairs of the former lease, None for new ones, and the present one."""


def save(
    conn: Connection,
    changed: Changed,
    lines: Sequence[Row] = (),
    pools: Insert | None = None,
    *,
    rowless: bool = False,
) -> Mapping[UUID, int]:
    """Write the rows in which each pair of leases differs, and append the lines to the journal.

    With `pools` also write those of the cloud's pools; return the ids of their aggregates, by reservation. `rowless`
    means that none of the leases has any row yet, which saves the search for them; IntegrityError if one has.
    """
    _delete_given_up(conn, changed)
    written = {table.name: new_rows(changed, key, rows_of) for table, key, rows_of in PARTS}
    written |= {journal.name: list(lines)}
    given = {name: _json(rows) for name, rows in written.items() if rows}
    if pools is None:
        if given:
            conn.execute(_saving(tuple(given), rowless), given)
        return {}
    statement = _saving(tuple(given), rowless, pools.sql)
    return {UUID(name): number for name, number in conn.execute(statement, {**given, **pools.parameters})}


def _delete_given_up(conn: Connection, changed: Changed) -> None:
    """Delete the allocations of hosts, addresses and amounts that leases no longer hold."""
    present = _with_former_rows(changed)
    dropped = [key for before, after in present for key in _held(before) - _held(after)]
    if dropped:
        conn.execute(delete(allocations).where(tuple_(allocations.c.reservation_id, allocations.c.host).in_(dropped)))
    for table, keys_of in ((floating_allocations, _addresses_of), (inventory_allocations, _amounts_of)):
        given_up = [key for before, after in present for key in keys_of(before) - keys_of(after)]
        if given_up:
            conn.execute(delete(table).where(tuple_(table.c.reservation_id, table.c.number).in_(given_up)))


def _with_former_rows(changed: Changed) -> list[tuple[Lease, Lease]]:
    return [(before, after) for before, after in changed if before]


def new_rows(changed: Changed, key: Sequence[str], rows_of: Callable[[Lease], list[Row]]) -> list[Row]:
    """Return the rows that are new or changed, by the columns of their key; linear in their number."""
    rows: list[Row] = []
    for before, after in changed:
        if before is None:
            rows += rows_of(after)
            continue
        known = {tuple(row[name] for name in key): row for row in rows_of(before)}
        rows += [row for row in rows_of(after) if known.get(tuple(row[name] for name in key)) != row]
    return rows


def rows_of(lease: Lease) -> dict[str, list[Row]]:
    """Return all rows of a lease by table, as `save` writes them; omitted columns are NULL."""
    return {table.name: rows_of_table(lease) for table, _, rows_of_table in PARTS}


def _lease_rows(lease: Lease) -> list[Row]:
    return [
        {
            "id": lease.id,
            "name": lease.name,
            "project_id": lease.project_id,
            "user_id": lease.user_id,
            "start_date": lease.period.start,
            "end_date": lease.period.end,
            "status": lease.status,
            "degraded": lease.degraded,
            "deleting": lease.deleting,
            "gone": lease.gone,
            "wait_until": lease.wait_until,
            "version": lease.version,
            "created_at": lease.created_at,
            "updated_at": lease.updated_at,
            "series_id": lease.series_id,
            "sharing": fact_codec.encode(lease.sharing) if lease.sharing else {},
            "parent": fact_codec.encode(lease.parent) if lease.parent else None,
        }
    ]


def _reservation_rows(lease: Lease) -> list[Row]:
    return [
        {
            "id": r.id,
            "lease_id": lease.id,
            "position": position,
            "resource_type": r.resource_type,
            "resource_id": r.resource_id,
            "status": lease.status_of(r),
            "spec": dict(r.spec),
            "exists_before_start": r.exists_before_start,
            "missing": r.missing,
            "resources_changed": r.resources_changed,
            "parts": fact_codec.encode(r.parts),
            "preemptions": fact_codec.encode(r.preemptions),
            "sublets": fact_codec.encode(r.sublets),
        }
        for position, r in enumerate(lease.reservations)
    ]


def _event_rows(lease: Lease) -> list[Row]:
    return [
        {
            "id": e.id,
            "lease_id": lease.id,
            "seq": SEQ[e.kind],
            "kind": e.kind,
            "due_at": e.due_at,
            "run_at": e.run_at,
            "status": e.status,
            "outcome": e.outcome,
            "reason": e.reason,
            "attempts": e.attempts,
            "token": e.token,
            "first_claimed_at": e.first_claimed_at,
            "updated_at": e.updated_at,
            "name": e.name,
            "shares": fact_codec.encode(e.shares),
            "project_id": lease.project_id,
        }
        for e in lease.events
    ]


def _held(lease: Lease) -> set[tuple[UUID, int]]:
    return {(r.id, hold.host) for r in lease.reservations for hold in r.holds}


def _allocation_rows(lease: Lease) -> list[Row]:
    return [
        {
            "reservation_id": r.id,
            "host": hold.host,
            "during": f'["{hold.during.start}","{hold.during.end}")',
            "kind": "lease",
            "state": lease.hold_state_of(r),
            "slots": hold.slots,
            "vcpus": hold.slots * int(r.spec.get("vcpus") or 0),
            "memory_mb": hold.slots * int(r.spec.get("memory_mb") or 0),
            "disk_gb": hold.slots * int(r.spec.get("disk_gb") or 0),
            "preemptible": is_preemptible(r.spec),
        }
        for r in lease.reservations
        for hold in r.holds
    ]


def _addresses_of(lease: Lease) -> set[tuple[UUID, int]]:
    return {(r.id, hold.number) for r in lease.reservations for hold in r.addresses}


def _address_rows(lease: Lease) -> list[Row]:
    return [
        {
            "reservation_id": r.id,
            "number": hold.number,
            "during": f'["{hold.during.start}","{hold.during.end}")',
            "state": lease.hold_state_of(r),
        }
        for r in lease.reservations
        for hold in r.addresses
    ]


def _amounts_of(lease: Lease) -> set[tuple[UUID, int]]:
    return {(r.id, hold.number) for r in lease.reservations for hold in r.amounts}


def _amount_rows(lease: Lease) -> list[Row]:
    return [
        {
            "reservation_id": r.id,
            "number": hold.number,
            "amount": hold.amount,
            "during": f'["{hold.during.start}","{hold.during.end}")',
            "state": lease.state_of(r, hold),
        }
        for r in lease.reservations
        for hold in r.amounts
    ]


PARTS: tuple[tuple[Table, tuple[str, ...], Callable[[Lease], list[Row]]], ...] = (
    (leases, ("id",), _lease_rows),
    (reservations, ("id",), _reservation_rows),
    (events, ("id",), _event_rows),
    (allocations, ("reservation_id", "host"), _allocation_rows),
    (floating_allocations, ("reservation_id", "number"), _address_rows),
    (inventory_allocations, ("reservation_id", "number"), _amount_rows),
)
"""Tables, key columns, and the rows of a lease. Foreign keys are checked after the statement."""


def _insert(table: Table, columns: Sequence[str]) -> str:
    """Return an INSERT of the rows of a parameter named like the table: one value and one plan for any number."""
    listed = ", ".join(columns)
    rows = f"jsonb_populate_recordset(NULL::{table.name}, CAST(:{table.name} AS jsonb))"
    return f"INSERT INTO {table.name} ({listed}) SELECT {listed} FROM {rows}"  # noqa: S608


def _columns(table: Table) -> list[str]:
    return [column.name for column in table.columns if column.identity is None]


def _insert_all(table: Table, key: Sequence[str]) -> str:
    return _insert(table, _columns(table))


def _upsert(table: Table, key: Sequence[str]) -> str:
    columns = _columns(table)
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return f"{_insert(table, columns)} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"


@cache
def _saving(names: Sequence[str], rowless: bool, pools: str = "") -> TextClause | TextualSelect:
    """Return the one statement for these tables; a table without rows costs as much as one with a row.

    With the SQL of pools it returns the reservation and the aggregate of each.
    """
    write = _insert_all if rowless else _upsert
    parts = [f"{table.name}_saved AS ({write(table, key)})" for table, key, _ in PARTS if table.name in names]
    # The part outside the WITH list runs first: of two concurrent appends to a stream, the second one fails.
    last = _insert(journal, ("stream", "version", "kind", "body", "actor", "request_id"))
    if journal.name not in names:
        last = "SELECT 1"
    if pools:
        noted = "INSERT INTO lease_pools (reservation_id, aggregate_id) SELECT CAST(name AS uuid), id FROM pools_made"
        parts += [f"journal_saved AS ({last})", f"pools_made (name, id) AS ({pools})", f"pools_noted AS ({noted})"]
        last = "SELECT name, id FROM pools_made"
    statement = text(f"WITH {', '.join(parts)} {last}" if parts else last)
    # With its columns declared, the description of its result is made once.
    return statement.columns(column("name", Text), column("id", BigInteger)) if pools else statement


def lease_of(row: StoredRow[*tuple[object, ...]]) -> Lease:
    """Return the lease of a row of `leases` with its parts; raise UnreadableLease if this release cannot read it."""
    try:
        return _of_row(row)
    except Exception as error:  # whatever is wrong with a row, its reader has to know of which lease it is
        raise UnreadableLease(row.id, row.project_id) from error


def _of_row(row: StoredRow[*tuple[object, ...]]) -> Lease:
    own, scheduled, *held = row.parts
    holds, addresses, pools, amounts = (_by_reservation(one) if one else _NOTHING for one in held)
    return Lease(
        id=row.id,
        name=row.name,
        project_id=row.project_id,
        user_id=row.user_id,
        period=Period(row.start_date, row.end_date),
        reservations=tuple(
            _reservation(
                r,
                tuple(Hold(host, _period(start, end), slots) for host, start, end, slots in holds.get(r[0], ())),
                tuple(AddressHold(n, address, _period(*during)) for n, address, *during in addresses.get(r[0], ())),
                next((aggregate_id for (aggregate_id,) in pools.get(r[0], ())), None),
                tuple(AmountHold(n, amount, _period(*during)) for n, amount, *during in amounts.get(r[0], ())),
            )
            for r in own or ()
        ),
        events=tuple(_event(e) for e in scheduled or ()),
        created_at=row.created_at,
        updated_at=row.updated_at,
        deleting=row.deleting,
        gone=row.gone,
        version=row.version,
        series_id=row.series_id,
        sharing=fact_codec.decode_all(Sharing, [row.sharing])[0] if row.sharing else NOT_SHARED,
        parent=fact_codec.decode_all(ParentLease, [row.parent])[0] if row.parent else None,
    )


_NOTHING: Mapping[str, list[list[Any]]] = {}


def _by_reservation(rows: Sequence[Sequence[Any]]) -> Mapping[str, list[list[Any]]]:
    """Return the other fields of the rows by their first one, the id of the reservation."""
    by_reservation: dict[str, list[list[object]]] = {}
    for reservation_id, *fields in rows:
        by_reservation.setdefault(reservation_id, []).append(fields)
    return by_reservation


def _period(start: str, end: str) -> Period:
    return Period(_time(start), _time(end))


def _reservation(
    row: Sequence[Any],
    holds: tuple[Hold, ...],
    addresses: tuple[AddressHold, ...],
    aggregate_id: int | None,
    amounts: tuple[AmountHold, ...],
) -> Reservation:
    reservation_id, resource_type, spec, resource_id, exists_before_start, missing, changed, parts, *taken = row
    if not isinstance(spec, dict):
        raise TypeError(f"the spec of reservation {reservation_id} is no JSON object")
    return Reservation(
        id=UUID(reservation_id),
        resource_type=resource_type,
        spec=spec,
        resource_id=resource_id,
        holds=holds,
        exists_before_start=exists_before_start,
        missing=missing,
        resources_changed=changed,
        addresses=addresses,
        parts=tuple(map(lease_parts.read, parts)),
        aggregate_id=aggregate_id,
        amounts=amounts,
        preemptions=fact_codec.decode_all(Preemption, taken[0]),
        sublets=fact_codec.decode_all(Sublet, taken[1]),
    )


def _event(row: Sequence[Any]) -> Event:
    event_id, kind, due_at, run_at, status, outcome, reason, attempts, token, first_claimed, updated, name, shares = row
    due = _time(due_at)
    return Event(
        UUID(event_id),
        _KINDS.get(kind) or EventKind(kind),
        due,
        due if run_at == due_at else _time(run_at),
        _STATUSES.get(status) or EventStatus(status),
        outcome,
        reason,
        attempts,
        token,
        _time(first_claimed) if first_claimed else None,
        _time(updated) if updated else None,
        name,
        tuple(Share(**share) for share in shares) if shares else (),
    )


_time = datetime.fromisoformat
# A mapping is much quicker than a call of the enumeration, and lists have many events.
_KINDS = {str(kind): kind for kind in EventKind}
_STATUSES = {str(status): status for status in EventStatus}
