"""Reader of Blazar databases on MariaDB, MySQL and PostgreSQL, of the releases Zed (10) and later.

All tables are read in one transaction with a single snapshot, by SELECT alone. Releases differ in the tables
`computehost_resource_inventory` and `computehost_trait`, which those before 2024.2 (14) lack.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy import URL, Connection, Row, create_engine, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from climate.cloud import provided
from climate.domain.errors import InvalidInput, Unavailable
from climate.service.blazar_import.records import (
    ADDRESSES,
    FLAVORS,
    HOSTS,
    SERVERS,
    BlazarAddress,
    BlazarData,
    BlazarEvent,
    BlazarHost,
    BlazarLease,
    BlazarProperty,
    BlazarReservation,
    Wanted,
    WantedAddresses,
    WantedHosts,
    WantedServers,
)

DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg", "mysql": "mysql+pymysql"}
DRIVERS["mariadb"] = DRIVERS["mysql"]
CONNECT_SECONDS = 10

REQUIRED = (
    *("leases", "reservations", "events", "computehosts", "computehost_extra_capabilities", "resource_properties"),
    *("computehost_reservations", "computehost_allocations", "instance_reservations", "floatingips"),
    *("floatingip_reservations", "floatingip_allocations", "required_floatingips"),
)
"""Tables of every supported release."""

INVENTORIES, TRAITS = "computehost_resource_inventory", "computehost_trait"

Rows = list[Row[tuple[object, ...]]]


def read(url: str) -> BlazarData:
    """Read the database. Raise InvalidInput if it is none of Blazar, and Unavailable if it cannot be reached."""
    with _connected(url) as conn:
        tables = set(inspect(conn).get_table_names())
        missing = [name for name in REQUIRED if name not in tables]
        if missing:
            raise InvalidInput(
                f"the database has no table {missing[0]}: wanted is the database of Blazar 10 (Zed) or later, "
                "upgraded by blazar-db-manage"
            )
        return BlazarData(
            hosts=tuple(_hosts(conn, tables)),
            addresses=tuple(_addresses(conn)),
            leases=tuple(_leases(conn)),
            properties=tuple(
                BlazarProperty(row.property_name, bool(row.private))
                for row in _rows(conn, "resource_properties", "property_name")
                if row.resource_type == HOSTS
            ),
        )


@contextmanager
def _connected(given: str) -> Iterator[Connection]:
    """Open a transaction that sees one moment."""
    url = driver_url(given)
    shown = url.render_as_string(hide_password=True)
    try:
        engine = create_engine(url, isolation_level="REPEATABLE READ", connect_args=_line(url))
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"databases on {url.get_backend_name()} need the package {error.name}: "
            "pip install 'climate-reservation[blazar]'"
        ) from None
    except (ArgumentError, NoSuchModuleError) as error:
        raise InvalidInput(f"{shown} is not the URL of a database: {error}") from None
    try:
        with engine.connect() as conn:
            if url.get_backend_name() == "postgresql":
                conn.execute(text("SET TRANSACTION READ ONLY"))
            yield conn
    except DBAPIError as error:
        said = " ".join(str(error.orig).split())[:300]
        raise Unavailable(f"the database {shown} cannot be read: {said}") from error
    finally:
        engine.dispose()


def driver_url(given: str) -> URL:
    """Return the URL with the driver to use; raise InvalidInput for one of another kind of database."""
    try:
        url = make_url(given)
    except ArgumentError:
        raise InvalidInput("the URL of the database is malformed: wanted is mysql://USER:PASSWORD@HOST/NAME") from None
    backend = url.drivername.partition("+")[0]
    if backend not in DRIVERS:
        raise InvalidInput(
            f"databases of the kind {backend} cannot be read: wanted is mysql://, mariadb:// or postgresql://"
        )
    return url.set(drivername=DRIVERS[backend])


def _line(url: URL) -> dict[str, int]:
    return {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_SECONDS}


def _rows(conn: Connection, table: str, *order: str) -> Rows:
    """Return the rows of a table, in order of these columns."""
    columns = ", ".join(order)
    return list(conn.execute(text(f"SELECT * FROM {table} ORDER BY {columns}")))  # noqa: S608


def _by(rows: Iterable[Row[tuple[object, ...]]], column: str) -> Mapping[str, Rows]:
    """Group rows by a column."""
    groups: dict[str, Rows] = defaultdict(list)
    for row in rows:
        groups[getattr(row, column)].append(row)
    return groups


def _hosts(conn: Connection, tables: set[str]) -> Iterator[BlazarHost]:
    names = {row.id: row.property_name for row in _rows(conn, "resource_properties", "id")}
    extra = _by(_rows(conn, "computehost_extra_capabilities", "created_at", "id"), "computehost_id")
    amounts = _by(_rows(conn, INVENTORIES, "id"), "computehost_id") if INVENTORIES in tables else {}
    traits = _by(_rows(conn, TRAITS, "id"), "computehost_id") if TRAITS in tables else {}
    for row in _rows(conn, "computehosts", "id"):
        counted = {
            one.resource_class: int((one.total - one.reserved) * one.allocation_ratio)
            for one in amounts.get(row.id, ())
        }
        own = {
            names[one.property_id]: one.capability_value for one in extra.get(row.id, ()) if one.property_id in names
        }
        yield BlazarHost(
            id=row.id,
            name=row.hypervisor_hostname or "",
            service_name=row.service_name or "",
            vcpus=row.vcpus,
            memory_mb=row.memory_mb,
            local_gb=row.local_gb,
            cpu_info=row.cpu_info,
            hypervisor_type=row.hypervisor_type,
            hypervisor_version=row.hypervisor_version,
            availability_zone=row.availability_zone,
            reservable=bool(row.reservable),
            created_at=_time(row.created_at),
            extra={**provided([one.trait for one in traits.get(row.id, ())], counted), **own},
            amounts=counted,
        )


def _addresses(conn: Connection) -> Iterator[BlazarAddress]:
    for row in _rows(conn, "floatingips", "id"):
        yield BlazarAddress(
            id=row.id,
            network_id=row.floating_network_id,
            subnet_id=row.subnet_id,
            address=row.floating_ip_address,
            reservable=bool(row.reservable),
            created_at=_time(row.created_at),
        )


def _leases(conn: Connection) -> Iterator[BlazarLease]:
    reservations = _by(_rows(conn, "reservations", "created_at", "id"), "lease_id")
    events = _by(_rows(conn, "events", "time", "id"), "lease_id")
    wanted = _requests(conn)
    hosts = _by(_rows(conn, "computehost_allocations", "id"), "reservation_id")
    addresses = _by(_rows(conn, "floatingip_allocations", "id"), "reservation_id")

    def reservation(row: Row[tuple[object, ...]]) -> BlazarReservation:
        return BlazarReservation(
            id=row.id,
            resource_type=row.resource_type or "",
            status=row.status or "",
            missing_resources=bool(row.missing_resources),
            resources_changed=bool(row.resources_changed),
            wanted=wanted.get((row.resource_type or "", row.id)),
            hosts=tuple(held.compute_host_id for held in hosts.get(row.id, ())),
            addresses=tuple(held.floatingip_id for held in addresses.get(row.id, ())),
        )

    for row in _rows(conn, "leases", "id"):
        yield BlazarLease(
            id=row.id,
            name=row.name,
            user_id=row.user_id or "",
            project_id=row.project_id or "",
            start=_utc(row.start_date),
            end=_utc(row.end_date),
            status=row.status or "",
            created_at=_time(row.created_at),
            reservations=tuple(map(reservation, reservations.get(row.id, ()))),
            events=tuple(_event(one, row.start_date) for one in events.get(row.id, ())),
        )


def _event(row: Row[tuple[object, ...]], start: datetime) -> BlazarEvent:
    """Return an event, which is due at the start of its lease if it has no time."""
    return BlazarEvent(row.id, row.event_type or "", _utc(row.time or start), row.status or "")


def _requests(conn: Connection) -> Mapping[tuple[str, str], Wanted]:
    """Return the requests of reservations by resource type and reservation."""
    result: dict[tuple[str, str], Wanted] = {}
    for row in _rows(conn, "computehost_reservations", "id"):
        texts = (row.hypervisor_properties or "", row.resource_properties or "", row.before_end or "")
        result[HOSTS, row.reservation_id] = WantedHosts(row.count_range or "", *texts)
    for row in _rows(conn, "instance_reservations", "id"):
        affinity = None if row.affinity is None else bool(row.affinity)
        servers = WantedServers(
            *(row.vcpus, row.memory_mb, row.disk_gb, row.amount, affinity),
            *(row.resource_properties or "", row.server_group_id),
        )
        result[SERVERS, row.reservation_id] = result[FLAVORS, row.reservation_id] = servers
    required = _by(_rows(conn, "required_floatingips", "id"), "floatingip_reservation_id")
    for row in _rows(conn, "floatingip_reservations", "id"):
        named = tuple(one.address for one in required.get(row.id, ()))
        result[ADDRESSES, row.reservation_id] = WantedAddresses(row.network_id, row.amount, named)
    return result


def _time(value: datetime | None) -> datetime | None:
    return None if value is None else _utc(value)


def _utc(value: datetime) -> datetime:
    """Return a time of Blazar, which stores UTC without a time zone."""
    return value.replace(tzinfo=UTC)
