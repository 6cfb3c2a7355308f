"""Reservable hosts, and the names of their capabilities."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import Connection, Row, exists, func, insert, or_, select, update
from sqlalchemy.dialects import postgresql

from climate.database.sql_arrays import in_array
from climate.database.violated_constraints import translated
from climate.domain.errors import Conflict, InvalidInput, NotFound
from climate.domain.facts import HostDescribed, HostEnrolled, HostRemoved
from climate.domain.hosts.pools import Pool
from climate.domain.policy import Caller
from climate.store import locks
from climate.store.hosts import pool_membership, row_consistency
from climate.store.tables.hosts import hosts, properties
from climate.store.tables.leases import allocations, in_force, reservations

HOST_TYPE = "physical:host"
FLAVOR_TYPE = "flavor:instance"
"""Resource type whose resource_properties are the flavor itself, not a requirement."""

AUTHORIZED_PROJECTS = "authorized_projects"
"""Extra capability with the ids of authorized projects, separated by commas. Only administrators see its values."""

COLUMNS = (
    "id",
    "vcpus",
    "cpu_info",
    "hypervisor_type",
    "hypervisor_version",
    "hypervisor_hostname",
    "service_name",
    "memory_mb",
    "local_gb",
    "status",
    "availability_zone",
    "trust_id",
    "reservable",
)
"""Properties of every host; extra capabilities cannot use these names."""


@dataclass(frozen=True, slots=True)
class Host:
    """A host of the reservation service. `own` are its columns, `extra` its capabilities."""

    id: int
    own: Mapping[str, object]
    extra: Mapping[str, str]
    created_at: datetime
    updated_at: datetime | None

    @property
    def name(self) -> str:
        return str(self.own["hypervisor_hostname"])


@dataclass(frozen=True, slots=True)
class Property:
    id: UUID
    name: str
    private: bool
    created_at: datetime
    updated_at: datetime | None
    values: tuple[str, ...] = ()


def add(
    conn: Connection,
    author: Caller,
    own: Mapping[str, object],
    extra: Mapping[str, str],
    now: datetime,
    pool: Pool = Pool.RESERVATION,
) -> Host:
    """Register a host with these columns, in its pool: reservation or multi-tenant.

    Raise Conflict if one of that name is registered already.
    """
    row = {**own, "reservable": True, "extra": dict(extra), "created_at": now, "pool_since": now}
    row |= {"pool": pool, "home": pool}
    with translated({"uq_hosts_name": Conflict(f"Host '{own['hypervisor_hostname']}' is already registered")}):
        made = conn.execute(insert(hosts).values(row).returning(*hosts.c)).one()
    _name_properties(conn, extra, now)
    first = HostEnrolled(made.id, now, made.hypervisor_hostname, made.pool, dict(extra), made.pool_token)
    pool_membership.begin(conn, author, made.stream, first)
    return _host(made)


def get(conn: Connection, host_id: int, *, lock: bool = False) -> Host:
    query = select(hosts).where(hosts.c.id == host_id, hosts.c.removed_at.is_(None))
    if lock:
        locks.lock_hosts(conn, [host_id])
    row = conn.execute(query).one_or_none()
    if row is None:
        raise NotFound(f"Object with {{'host_id': '{host_id}'}} not found")
    return _host(row)


def by_number(conn: Connection, numbers: Collection[int]) -> dict[int, Host]:
    """Return hosts by their numbers, including removed ones."""
    query = select(hosts).where(in_array(hosts.c.id, sorted(numbers)))
    return {row.id: _host(row) for row in conn.execute(query)} if numbers else {}


def listed(conn: Connection, marker: int | None = None, limit: int | None = None) -> list[Host]:
    query = select(hosts).where(hosts.c.removed_at.is_(None)).order_by(hosts.c.id).limit(limit)
    if marker is not None:
        get_marker = select(hosts.c.id).where(hosts.c.id == marker)
        if conn.scalar(get_marker) is None:
            raise InvalidInput(f"marker {marker} is not the id of a host")
        query = query.where(hosts.c.id > marker)
    return [_host(row) for row in conn.execute(query)]


def in_calendar(conn: Connection, marker: int | None = None, limit: int | None = None) -> list[int]:
    """Return numbers of the hosts after `marker` that are registered, or that a lease still holds.

    Raise InvalidInput for an unknown marker.
    """
    is_held = exists().where(allocations.c.host == hosts.c.id, in_force(allocations))
    shown = select(hosts.c.id).where(or_(hosts.c.removed_at.is_(None), is_held))
    query = shown.order_by(hosts.c.id).limit(limit)
    if marker is not None:
        if conn.scalar(shown.where(hosts.c.id == marker)) is None:
            raise InvalidInput(f"marker {str(marker)!r} is not an entry of this list")
        query = query.where(hosts.c.id > marker)
    return list(conn.scalars(query))


def change(conn: Connection, author: Caller, host_id: int, extra: Mapping[str, str | None], now: datetime) -> Host:
    """Set capabilities, or remove those whose value is None. Raise Tampered if rows do not match the facts."""
    host = get(conn, host_id, lock=True)
    place = pool_membership.get(conn, host_id)
    row_consistency.refuse_tampered(conn, place)
    pool_membership.record(conn, author, [(place, [HostDescribed(now, dict(extra))])])
    merged = {**host.extra, **extra}
    kept = {key: value for key, value in merged.items() if value is not None}
    changed = update(hosts).where(hosts.c.id == host_id).values(extra=kept, updated_at=now)
    _name_properties(conn, {key: "" for key, value in extra.items() if value is not None}, now)
    return _host(conn.execute(changed.returning(*hosts.c)).one())


def remove(conn: Connection, author: Caller, host_id: int, now: datetime) -> None:
    """Mark a host as removed; its row stays, because the history of leases refers to its number."""
    pool_membership.record(conn, author, [(pool_membership.get(conn, host_id), [HostRemoved(now)])])
    conn.execute(update(hosts).where(hosts.c.id == host_id).values(removed_at=now))


def promised(conn: Connection, host_id: int) -> Sequence[UUID]:
    """Return leases that hold the host, now or later."""
    query = (
        select(reservations.c.lease_id)
        .join(allocations, allocations.c.reservation_id == reservations.c.id)
        .where(allocations.c.host == host_id, in_force(allocations))
        .distinct()
    )
    return list(conn.scalars(query))


def relied_on(conn: Connection, host_id: int) -> list[str]:
    """Return the requirements (as text) of reservations that hold the host, now or later."""
    spec = reservations.c.spec
    query = (
        select(spec["hypervisor_properties"].astext, spec["resource_properties"].astext)
        .join(allocations, allocations.c.reservation_id == reservations.c.id)
        .where(allocations.c.host == host_id, in_force(allocations), reservations.c.resource_type != FLAVOR_TYPE)
    )
    return [text for row in conn.execute(query.distinct()) for text in row if text]


def flavors_on(conn: Connection, host_id: int) -> list[str]:
    """Return the flavors (as JSON text) of reservations that hold slots of the host, now or later."""
    query = (
        select(reservations.c.spec["resource_properties"].astext)
        .join(allocations, allocations.c.reservation_id == reservations.c.id)
        .where(allocations.c.host == host_id, in_force(allocations), reservations.c.resource_type == FLAVOR_TYPE)
    )
    return list(conn.scalars(query.distinct()))


def property_names(conn: Connection, *, private: bool) -> frozenset[str]:
    """Return the names of all extra capabilities; private ones only on request."""
    query = select(properties.c.property_name).where(properties.c.resource_type == HOST_TYPE)
    return frozenset(conn.scalars(query if private else query.where(~properties.c.private)))


def property_list(conn: Connection, *, private: bool) -> list[Property]:
    """Return capabilities with the distinct values of the registered hosts."""
    value = func.jsonb_each_text(hosts.c.extra).table_valued("key", "value").lateral("pair")
    seen = (
        select(value.c.key, func.array_agg(postgresql.aggregate_order_by(value.c.value.distinct(), value.c.value)))
        .select_from(hosts.join(value, onclause=hosts.c.removed_at.is_(None)))
        .group_by(value.c.key)
    )
    values = {key: tuple(result) for key, result in conn.execute(seen)}
    query = select(properties).where(properties.c.resource_type == HOST_TYPE).order_by(properties.c.property_name)
    query = query if private else query.where(~properties.c.private)
    return [_property(row, values.get(row.property_name, ())) for row in conn.execute(query)]


def set_private(conn: Connection, name: str, private: bool, now: datetime) -> Property:
    change = update(properties).where(properties.c.resource_type == HOST_TYPE, properties.c.property_name == name)
    row = conn.execute(change.values(private=private, updated_at=now).returning(*properties.c)).one_or_none()
    if row is None:
        raise NotFound(f"Property {name} does not exist")
    return _property(row, ())


def _name_properties(conn: Connection, extra: Mapping[str, object], now: datetime) -> None:
    rows = [
        {"id": uuid4(), "resource_type": HOST_TYPE, "property_name": name, "created_at": now}
        | {"private": name == AUTHORIZED_PROJECTS}
        for name in sorted(extra)
    ]
    if rows:
        conn.execute(postgresql.insert(properties).on_conflict_do_nothing(), rows)


def _property(row: Row[*tuple[object, ...]], values: tuple[str, ...]) -> Property:
    return Property(row.id, row.property_name, row.private, row.created_at, row.updated_at, values)


def _host(row: Row[*tuple[object, ...]]) -> Host:
    own = {name: getattr(row, name) for name in COLUMNS}
    return Host(row.id, own, row.extra, row.created_at, row.updated_at)


def any_is_restricted(conn: Connection) -> bool:
    """Return whether only some projects may use one of the hosts."""
    restricted = hosts.c.extra.has_key(AUTHORIZED_PROJECTS) & hosts.c.removed_at.is_(None)
    return bool(conn.scalar(select(exists().where(restricted))))
