"""Floating addresses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, func, select, text, update

from climate.compute.store.tables.networks import addresses, floating_addresses, floating_pools, networks, vifs
from climate.compute.store.tables.servers import servers

_OWN = floating_addresses.c

_FLOATING: Select[Any] = (
    select(
        *(_OWN.id, func.host(_OWN.address), _OWN.pool_id, floating_pools.c.name, floating_pools.c.interface),
        *(_OWN.project_id, _OWN.fixed_network_id, func.host(_OWN.fixed_address), _OWN.host, _OWN.auto_assigned),
        *(_OWN.tags, _OWN.description, _OWN.reservation, _OWN.created_at, _OWN.changed_at),
        *(vifs.c.id, vifs.c.server_id),
    )
    .join(floating_pools, floating_pools.c.id == _OWN.pool_id)
    .outerjoin(
        addresses, and_(addresses.c.network_id == _OWN.fixed_network_id, addresses.c.address == _OWN.fixed_address)
    )
    .outerjoin(vifs, vifs.c.id == addresses.c.vif_id)
)

_LOCKED = _FLOATING.with_for_update(key_share=True, of=floating_addresses)

_ALLOCATE = text("""
    UPDATE compute_floating_addresses SET project_id = :project_id, auto_assigned = :auto, description = :description,
           changed_at = :now
    WHERE id = (SELECT id FROM compute_floating_addresses
                WHERE pool_id = CAST(:pool_id AS uuid) AND project_id IS NULL
                  AND (CAST(:address AS inet) IS NULL OR address = CAST(:address AS inet))
                ORDER BY address LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED)
    RETURNING id::text
""")

# The pool's network contains it, except for both ends and the gateway; wait for concurrent changes of the pool.
_MAKE = text("""
    INSERT INTO compute_floating_addresses (pool_id, address, project_id, description, changed_at, single)
    SELECT p.id, CAST(:address AS inet), :project_id, :description, :now, true
    FROM (SELECT id, cidr, gateway FROM compute_floating_pools WHERE id = CAST(:pool_id AS uuid) FOR SHARE) AS p
    WHERE CAST(:address AS inet) << p.cidr AND CAST(:address AS inet) IS DISTINCT FROM p.gateway
      AND host(CAST(:address AS inet)) NOT IN (host(network(p.cidr)), host(broadcast(p.cidr)))
    ON CONFLICT (address) DO NOTHING RETURNING id::text
""")

_RELEASE = text("""
    WITH gone AS (DELETE FROM compute_floating_addresses WHERE id = CAST(:id AS uuid) AND single)
    UPDATE compute_floating_addresses
    SET project_id = NULL, host = NULL, auto_assigned = false, description = '', tags = '{}', changed_at = :now
    WHERE id = CAST(:id AS uuid) AND NOT single
""")

# Core warns of the product of the address with its new fixed one.
_ASSOCIATE = text("""
    UPDATE compute_floating_addresses f
    SET fixed_network_id = a.network_id, fixed_address = a.address, host = n.host, changed_at = :now
    FROM compute_addresses a JOIN compute_networks n ON n.id = a.network_id
    WHERE f.id = CAST(:id AS uuid) AND a.network_id = CAST(:network_id AS uuid) AND a.address = CAST(:address AS inet)
    RETURNING n.host
""")

_LET_GO = text("""
    UPDATE compute_floating_addresses f
    SET fixed_network_id = NULL, fixed_address = NULL, changed_at = :now,
        project_id = CASE WHEN f.auto_assigned THEN NULL ELSE f.project_id END,
        description = CASE WHEN f.auto_assigned THEN '' ELSE f.description END,
        host = NULL, auto_assigned = false
    FROM compute_addresses a JOIN compute_networks n ON n.id = a.network_id
    WHERE a.network_id = f.fixed_network_id AND a.address = f.fixed_address
      AND CASE WHEN CAST(:vif_id AS uuid) IS NULL THEN a.server_id = CAST(:server_id AS uuid)
               ELSE a.vif_id = CAST(:vif_id AS uuid) END
    RETURNING n.host
""")

_OWNER = func.coalesce(vifs.c.project_id, servers.c.project_id)

_FIXED = (
    select(
        *(addresses.c.network_id, func.host(addresses.c.address), networks.c.manager, networks.c.host),
        *(_OWNER, vifs.c.id, servers.c.id, vifs.c.place),
    )
    .select_from(vifs)
    .outerjoin(servers, servers.c.id == vifs.c.server_id)
    .join(addresses, addresses.c.vif_id == vifs.c.id)
    .join(networks, networks.c.id == addresses.c.network_id)
    .order_by(vifs.c.place, addresses.c.address)
    .with_for_update(key_share=True, of=addresses)
)

_FIXED_BY: Mapping[str, ColumnElement[object]] = {
    "port_id": vifs.c.id,
    "server_id": vifs.c.server_id,
    "address": addresses.c.address,
    "project_id": _OWNER,
}
"""Filters of fixed addresses, and their columns."""


@dataclass(frozen=True, slots=True)
class Floating:
    """A floating address. Times UTC."""

    id: str
    address: str
    pool_id: str
    pool: str
    interface: str | None
    project_id: str | None
    fixed_network_id: str | None
    fixed_address: str | None
    host: str | None
    auto_assigned: bool
    tags: Sequence[str]
    description: str
    reservation: str | None
    created_at: datetime
    changed_at: datetime
    port_id: str | None
    server_id: str | None


@dataclass(frozen=True, slots=True)
class Fixed:
    """A fixed address that a floating one may be associated with."""

    network_id: str
    address: str
    manager: str
    host: str | None
    project_id: str
    port_id: str
    server_id: str | None
    place: int | None


def listed(conn: Connection, project_id: str | None = None, *, free: bool = False) -> list[Floating]:
    """Return floating addresses of a project, or with None of all; `free`: include unallocated ones."""
    query = _FLOATING.order_by(_OWN.address)
    if project_id is not None:
        query = query.where(_OWN.project_id == project_id)
    elif not free:
        query = query.where(_OWN.project_id.is_not(None))
    return [Floating(*row) for row in conn.execute(query)]


def get(conn: Connection, floating_id: str) -> Floating | None:
    """Return the floating address of that id, with its row locked."""
    row = conn.execute(_LOCKED.where(_OWN.id == floating_id)).one_or_none()
    return None if row is None else Floating(*row)


def by_address(conn: Connection, address: str) -> Floating | None:
    """Return the floating address, with its row locked."""
    row = conn.execute(_LOCKED.where(_OWN.address == address)).one_or_none()
    return None if row is None else Floating(*row)


def allocate(conn: Connection, pool_id: str, wanted: Mapping[str, object]) -> str | None:
    """Allocate the first free address of a pool, or this one, to a project; return its id.

    `wanted`: project_id, now, and optionally address, auto, description.
    """
    given = {"pool_id": pool_id, "address": None, "auto": False, "description": "", **wanted}
    value: str | None = conn.execute(_ALLOCATE, given).scalar()
    return value


def create(conn: Connection, pool_id: str, wanted: Mapping[str, object]) -> str | None:
    """Create an address of a pool's network for a project: address, project_id, now, description.

    Return its id; None if the address exists, or is not an available one of the network.
    """
    made: str | None = conn.execute(_MAKE, {"pool_id": pool_id, **wanted}).scalar()
    return made


def used(conn: Connection, project_id: str) -> int:
    """Return the number of addresses that count against the quota of a project."""
    query = select(func.count()).where(
        floating_addresses.c.project_id == project_id,
        ~floating_addresses.c.auto_assigned,
        floating_addresses.c.reservation.is_(None),
    )
    return conn.execute(query).scalar_one()


def release(conn: Connection, floating_id: str, now: datetime) -> None:
    """Release an address; one that was created for its project is deleted."""
    conn.execute(_RELEASE, {"id": floating_id, "now": now})


def describe(conn: Connection, floating_id: str, description: str) -> None:
    """Update the description of an address."""
    this = floating_addresses.c.id == floating_id
    conn.execute(update(floating_addresses).where(this).values(description=description))


def tag(conn: Connection, floating_id: str, tags: Sequence[str]) -> None:
    """Replace the tags of an address."""
    conn.execute(update(floating_addresses).where(floating_addresses.c.id == floating_id).values(tags=list(tags)))


def associate(conn: Connection, floating_id: str, fixed: Fixed, now: datetime) -> None:
    """Associate an address with a fixed one."""
    given = {"id": floating_id, "network_id": fixed.network_id, "address": fixed.address, "now": now}
    conn.execute(_ASSOCIATE, given)


def disassociate(conn: Connection, floating_id: str, now: datetime) -> str | None:
    """Disassociate an address; return the host that translates it now, which may differ from the first one."""
    statement = (
        update(floating_addresses)
        .where(floating_addresses.c.id == floating_id, networks.c.id == floating_addresses.c.fixed_network_id)
        .values(fixed_network_id=None, fixed_address=None, changed_at=now)
        .returning(networks.c.host)
    )
    host: str | None = conn.scalar(statement)
    return host


def let_go(conn: Connection, server_id: str | None, now: datetime, vif_id: str | None = None) -> set[str]:
    """Disassociate all floating addresses of a server, or of this interface. Ports of projects keep theirs.

    Automatically assigned ones are also released from its project. Return the hosts that served them.
    """
    hosts = conn.execute(_LET_GO, {"server_id": server_id, "vif_id": vif_id, "now": now}).scalars()
    return {host for host in hosts if host is not None}


def standing_for(conn: Connection, fixed: Fixed) -> str | None:
    """Return the floating address that is associated with a fixed one, or None."""
    query = select(func.host(floating_addresses.c.address)).where(
        floating_addresses.c.fixed_network_id == fixed.network_id, floating_addresses.c.fixed_address == fixed.address
    )
    value: str | None = conn.scalar(query)
    return value


def stands_for(conn: Connection, network_id: str, address: str) -> bool:
    """Return whether a floating address is associated with this fixed one of a network."""
    query = select(floating_addresses.c.id).where(
        floating_addresses.c.fixed_network_id == network_id, floating_addresses.c.fixed_address == address
    )
    return conn.execute(query).first() is not None


def fixed(conn: Connection, wanted: Mapping[str, str | None]) -> list[Fixed]:
    """Return fixed addresses of servers by port_id, server_id, address and project_id; their rows are locked."""
    conditions = [_FIXED_BY[name] == value for name, value in wanted.items() if value is not None]
    return [Fixed(*row) for row in conn.execute(_FIXED.where(*conditions))]


def on_host(conn: Connection, host: str) -> list[tuple[str, str, str | None]]:
    """Return (floating, fixed, interface) of all that a network host translates."""
    floating, fixed = func.host(floating_addresses.c.address), func.host(floating_addresses.c.fixed_address)
    # An associated address is served where its fixed address is.
    query = (
        select(floating, fixed, floating_pools.c.interface)
        .select_from(floating_addresses)
        .join(floating_pools, floating_pools.c.id == floating_addresses.c.pool_id)
        .join(networks, networks.c.id == floating_addresses.c.fixed_network_id)
        .where(networks.c.host == host)
        .order_by(floating_addresses.c.address)
    )
    return [(row[0], row[1], row[2]) for row in conn.execute(query)]
