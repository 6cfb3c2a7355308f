"""Ports: interfaces of servers, and those that a project created, which may be without a server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    Text,
    and_,
    any_,
    bindparam,
    case,
    cast,
    delete,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import UUID, aggregate_order_by, insert

from climate.compute.store.networks.fixed_ips import DeallocatedAddress
from climate.compute.store.tables.networks import addresses, networks, vifs
from climate.compute.store.tables.nodes import nodes
from climate.compute.store.tables.servers import servers

_ADDRESSES = (
    select(func.array_agg(aggregate_order_by(func.host(addresses.c.address), addresses.c.address)))
    .where(addresses.c.vif_id == vifs.c.id)
    .correlate(vifs)
    .scalar_subquery()
)

_LEFT = servers.alias("left_server")

_LEAVING = (
    select(_LEFT.c.id)
    .where(_LEFT.c.id == vifs.c.left_server_id, _LEFT.c.task.is_not(None), vifs.c.server_id.is_(None))
    .correlate(vifs)
    .exists()
)

_PORTS = (
    select(
        vifs.c.id.label("port_id"),
        func.coalesce(vifs.c.network_id, vifs.c.outline_id).label("network_id"),
        networks.c.subnet_id,
        vifs.c.mac,
        vifs.c.server_id,
        func.coalesce(vifs.c.project_id, servers.c.project_id).label("project_id"),
        servers.c.status,
        func.coalesce(_ADDRESSES, cast(literal([], ARRAY(Text)), ARRAY(Text))).label("addresses"),
        func.coalesce(vifs.c.security_groups, servers.c.security_groups).label("security_groups"),
        vifs.c.project_id.is_not(None).label("kept"),
        _LEAVING.label("leaving"),
        *(vifs.c.name, vifs.c.description, vifs.c.admin_up, vifs.c.device_id, vifs.c.device_owner),
        func.coalesce(nodes.c.service_host, vifs.c.named_host).label("host"),
        *(vifs.c.created_at, vifs.c.changed_at),
    )
    .select_from(vifs)
    .outerjoin(servers, servers.c.id == vifs.c.server_id)
    .outerjoin(networks, networks.c.id == vifs.c.network_id)
    .outerjoin(nodes, nodes.c.id == servers.c.node_id)
    .order_by(vifs.c.server_id.nulls_last(), vifs.c.place, vifs.c.created_at, vifs.c.id)
)

_OF: Mapping[str, ColumnElement[bool]] = {
    "port_id": vifs.c.id == bindparam("port_id"),
    "server_id": vifs.c.server_id == bindparam("server_id"),
    "project_id": or_(
        vifs.c.project_id == bindparam("project_id"),
        servers.c.project_id == bindparam("project_id"),
    ),
}
"""Filters of ports."""


@dataclass(frozen=True, slots=True)
class Port:
    """A port, with the addresses that it has. Times UTC."""

    port_id: str
    network_id: str
    subnet_id: str | None
    """None: the network has no subnet yet."""
    mac: str
    server_id: str | None
    project_id: str
    status: str | None
    """Status of the server; None: the port has none."""
    addresses: Sequence[str]
    security_groups: Sequence[str] | None
    """Ids of its groups; None: the group `default` of its project."""
    kept: bool
    """True: a project created it, and it outlives its server."""
    leaving: bool
    """True: the compute service of its last server has yet to unplug it."""
    name: str
    description: str
    admin_up: bool
    device_id: str
    """Device that a client named, if the port has no server."""
    device_owner: str
    host: str
    """Service host of the server's node, or the one that an administrator named; empty: none."""
    created_at: datetime
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class PortRow:
    """A port to create."""

    id: str
    project_id: str
    mac: str
    network_id: str | None
    outline_id: str | None
    security_groups: Sequence[str]
    name: str = ""
    description: str = ""
    admin_up: bool = True
    device_id: str = ""
    device_owner: str = ""
    named_host: str = ""


def listed(conn: Connection, wanted: Mapping[str, str | None]) -> list[Port]:
    """Return ports, by `port_id`, `server_id` and `project_id` if these are given."""
    given = {key: value for key, value in wanted.items() if value is not None}
    return [Port(**row) for row in conn.execute(_PORTS.where(*(_OF[key] for key in given)), given).mappings()]


def lock(conn: Connection, port_id: str, project_id: str | None = None) -> Port | None:
    """Return the port, locked; None if there is none, or if `project_id` is given and did not create it."""
    query = select(vifs.c.id).where(vifs.c.id == port_id).with_for_update()
    found = conn.scalar(query if project_id is None else query.where(vifs.c.project_id == project_id))
    return next(iter(listed(conn, {"port_id": port_id})), None) if found is not None else None


def create(conn: Connection, port: PortRow) -> bool:
    """Insert a port; False if another has its MAC."""
    values = {name: getattr(port, name) for name in PortRow.__slots__}
    new = insert(vifs).values(values).on_conflict_do_nothing(index_elements=["mac"]).returning(vifs.c.id)
    return conn.execute(new).first() is not None


def change(conn: Connection, port_id: str, changes: Mapping[str, object], now: datetime) -> None:
    """Update columns of a port."""
    conn.execute(update(vifs).where(vifs.c.id == port_id).values(**changes, changed_at=now))


def bind(conn: Connection, port_id: str, server_id: str, place: int, now: datetime) -> None:
    """Make a port the interface of a server at a place."""
    change(conn, port_id, {"server_id": server_id, "place": place, "device_id": "", "device_owner": ""}, now)


def unbind(conn: Connection, server_id: str, now: datetime, port_id: str | None = None) -> set[str]:
    """Detach the ports that a project created from a server, or this one; return the hosts of their networks."""
    own = [vifs.c.server_id == server_id, vifs.c.project_id.is_not(None)]
    statement = (
        update(vifs)
        .where(*own, *([vifs.c.id == port_id] if port_id is not None else []), networks.c.id == vifs.c.network_id)
        .values(server_id=None, place=None, left_server_id=server_id, named_host="", changed_at=now)
        .returning(networks.c.host, networks.c.manager)
    )
    return {row.host for row in conn.execute(statement) if row.host is not None and row.manager != "flat"}


def release(conn: Connection, port: Port, now: datetime, address: str | None = None) -> list[DeallocatedAddress]:
    """Deallocate the addresses of a port, or this one.

    It is free at once, unless a server has it or a DHCP client leased it: then it is free when the lease ends.
    """
    waits = and_(or_(addresses.c.leased, literal(port.server_id is not None)), networks.c.manager != "flat")
    statement = (
        update(addresses)
        .where(networks.c.id == addresses.c.network_id, addresses.c.vif_id == port.port_id)
        .values(
            vif_id=None,
            server_id=case((waits, addresses.c.server_id), else_=None),
            leased=and_(addresses.c.leased, networks.c.manager != "flat"),
            changed_at=now,
        )
        .returning(func.host(addresses.c.address), cast(networks.c.id, Text), networks.c.host, networks.c.manager)
    )
    if address is not None:
        statement = statement.where(func.host(addresses.c.address) == address)
    return [DeallocatedAddress(*row) for row in conn.execute(statement)]


def drop(conn: Connection, port_id: str) -> None:
    """Delete a port, whose addresses are released."""
    conn.execute(delete(vifs).where(vifs.c.id == port_id))


def count(conn: Connection, project_id: str) -> int:
    """Return the number of ports that a project created."""
    return conn.execute(select(func.count()).where(vifs.c.project_id == project_id)).scalar_one()


def with_group(conn: Connection, group_id: str) -> str | None:
    """Return a port that has a security group of its own accord; None if there is none."""
    has_group = literal(group_id, UUID(as_uuid=False)) == any_(vifs.c.security_groups)
    return conn.scalar(select(vifs.c.id).where(has_group).limit(1))


def in_network(conn: Connection, network_id: str) -> int:
    """Return the number of ports of a network, with a range or without."""
    query = select(func.count()).where(or_(vifs.c.network_id == network_id, vifs.c.outline_id == network_id))
    return conn.execute(query).scalar_one()


def move_to_outline(conn: Connection, network_id: str) -> None:
    """Move the ports of a network, none of which has an address, to the outline with the same id."""
    conn.execute(update(vifs).where(vifs.c.network_id == network_id).values(network_id=None, outline_id=network_id))


def move_to_network(conn: Connection, network_id: str) -> None:
    """Move the ports of a network without a range to the network with the same id that it has become."""
    conn.execute(update(vifs).where(vifs.c.outline_id == network_id).values(network_id=network_id, outline_id=None))
