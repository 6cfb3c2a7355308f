"""Rows of an import: what exists already, and hosts and floating IPs by the thousand."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import Connection, Uuid, bindparam, func, insert, select, text, union
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ARRAY

from climate.database.sql_arrays import in_parameter
from climate.domain.facts import HostFact
from climate.domain.hosts import folded_host, pools
from climate.domain.hosts.shared_capacity import Size
from climate.domain.period import Period
from climate.domain.policy import Caller
from climate.store.hosts import pool_membership
from climate.store.hosts.hosts import AUTHORIZED_PROJECTS, HOST_TYPE
from climate.store.journal import journal
from climate.store.leases import healing_waits
from climate.store.tables import archives
from climate.store.tables.floating_ips import floating_allocations, floating_ips
from climate.store.tables.hosts import hosts, properties
from climate.store.tables.leases import allocations, in_force, leases, reservations
from climate.store.tables.leases import journal as journal_table

Held = tuple[int, UUID | None, Period, Size | None]
"""Resource number, its lease (None for cleaning and maintenance), and the size of a share (None: all of it)."""


def extend_timeout(conn: Connection) -> None:
    """Let the statements of this transaction take minutes."""
    conn.execute(text("SET LOCAL statement_timeout = '10min'"))


def existing_leases(conn: Connection, wanted: Collection[UUID]) -> frozenset[UUID]:
    """Return those of the leases that exist, were deleted, or are archived."""
    ids = {"ids": list(wanted)}
    of_them = bindparam("ids", type_=ARRAY(Uuid))
    kept = select(leases.c.id).where(leases.c.id == func.any(of_them))
    archived = select(archives.archived_leases.c.lease_id).where(
        archives.archived_leases.c.lease_id == func.any(of_them)
    )
    told = select(journal_table.c.stream).where(journal_table.c.stream == func.any(of_them))
    return frozenset(conn.scalars(union(kept, archived, told), ids))


def host_allocations(conn: Connection, numbers: Collection[int]) -> list[Held]:
    """Return the allocations in force of these hosts."""
    during = allocations.c.during
    size = (allocations.c.slots, allocations.c.vcpus, allocations.c.memory_mb, allocations.c.disk_gb)
    query = (
        select(allocations.c.host, reservations.c.lease_id, func.lower(during), func.upper(during), *size)
        .select_from(allocations.outerjoin(reservations, reservations.c.id == allocations.c.reservation_id))
        .where(in_parameter(allocations.c.host, "numbers"), in_force(allocations))
    )
    return [
        (host, lease, Period(start, end), Size(*parts) if slots else None)
        for host, lease, start, end, slots, *parts in conn.execute(query, {"numbers": sorted(numbers)})
    ]


def address_allocations(conn: Connection, numbers: Collection[int]) -> list[Held]:
    """Return the allocations in force of these floating IPs."""
    held = floating_allocations
    query = (
        select(held.c.number, reservations.c.lease_id, func.lower(held.c.during), func.upper(held.c.during))
        .join(reservations, reservations.c.id == held.c.reservation_id)
        .where(in_parameter(held.c.number, "numbers"), in_force(held))
    )
    rows = conn.execute(query, {"numbers": sorted(numbers)})
    return [(number, lease, Period(start, end), None) for number, lease, start, end in rows]


def host_numbers(conn: Connection, wanted: Sequence[int | None]) -> list[int]:
    """Return a number for each new host: the wanted one if it is free, else a new one.

    Numbers that other transactions take meanwhile are higher than all wanted ones.
    """
    given = [number for number in wanted if number is not None]
    conn.execute(_RAISE_NUMBERS, {"highest": max(given, default=0)})
    taken = set(conn.scalars(select(hosts.c.id).where(hosts.c.id.in_(given))))
    lacking = sum(number is None or number in taken for number in wanted)
    new = iter(list(conn.scalars(_NEW_NUMBERS, {"count": lacking})))
    return [next(new) if number is None or number in taken else number for number in wanted]


def add_hosts(
    conn: Connection, author: Caller, own: Sequence[Mapping[str, object]], facts: Sequence[Sequence[HostFact]]
) -> None:
    """Register hosts with these columns and facts, each beginning with HostEnrolled; two statements for any number."""
    rows, entries = [], []
    for columns, happened in zip(own, facts, strict=True):
        stream = uuid4()
        place, care = pools.fold(happened, stream), folded_host.fold(happened)
        told = {"stream": stream, "hypervisor_hostname": place.name, "extra": dict(care.extra)}
        rows.append({**columns, **pool_membership.row_of(place), **told, "created_at": happened[0].at, "drift": ""})
        entries += [(stream, version, fact) for version, fact in enumerate(happened, start=1)]
    if rows:
        conn.execute(_ADD_HOSTS, {"rows": json.dumps(rows, default=str)})
        conn.execute(insert(journal_table), journal.rows(entries, author))
        healing_waits.wake(conn)


def name_properties(conn: Connection, names: Iterable[str], private: Collection[str], now: datetime) -> None:
    """Register names of capabilities; known ones stay as they are."""
    rows = [
        {"id": uuid4(), "resource_type": HOST_TYPE, "property_name": name, "created_at": now}
        | {"private": name in private or name == AUTHORIZED_PROJECTS}
        for name in sorted(set(names))
    ]
    if rows:
        conn.execute(postgresql.insert(properties).on_conflict_do_nothing(), rows)


def registered_addresses(conn: Connection) -> dict[tuple[str, str], int]:
    """Return the numbers of the registered floating IPs by network and address."""
    query = select(floating_ips.c.network_id, func.host(floating_ips.c.address), floating_ips.c.number)
    return {(row[0], row[1]): row[2] for row in conn.execute(query.where(floating_ips.c.removed_at.is_(None)))}


def add_addresses(conn: Connection, rows: Sequence[Mapping[str, object]]) -> dict[UUID, int]:
    """Register floating IPs with these columns; return their numbers by id."""
    if not rows:
        return {}
    made = insert(floating_ips).returning(floating_ips.c.id, floating_ips.c.number)
    return {row.id: row.number for row in conn.execute(made, [dict(row) for row in rows])}


_SEQUENCE = "CAST(pg_get_serial_sequence('hosts', 'id') AS regclass)"
_RAISE_NUMBERS = text(f"SELECT setval({_SEQUENCE}, greatest(nextval({_SEQUENCE}), :highest))")
_NEW_NUMBERS = text(f"SELECT nextval({_SEQUENCE}) FROM generate_series(1, :count)")  # noqa: S608
_COLUMNS = ", ".join(column.name for column in hosts.columns)
_ADD_HOSTS = text(f"""
    INSERT INTO hosts ({_COLUMNS})
    SELECT {_COLUMNS} FROM jsonb_populate_recordset(NULL::hosts, CAST(:rows AS jsonb))
""")  # noqa: S608
