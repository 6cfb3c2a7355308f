"""Fixed addresses and the interfaces that have them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Address
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, func, select, text, union_all, update
from sqlalchemy.dialects.postgresql import INET

from climate.compute.network.driver import Entry
from climate.compute.network.models import Vif
from climate.compute.store.clock import NOW
from climate.compute.store.columns import in_array
from climate.compute.store.networks.networks import columns, network_of
from climate.compute.store.tables import networks as tables
from climate.compute.store.tables.nodes import nodes
from climate.compute.store.tables.servers import servers

# An interface whose MAC is taken is not inserted: the caller retries with other MACs.
_VIFS = text("""
    INSERT INTO compute_vifs (id, mac, network_id, server_id, place)
    SELECT v.id, v.mac, v.network_id, v.server_id, v.place
    FROM unnest(CAST(:ids AS uuid[]), CAST(:macs AS text[]), CAST(:networks AS uuid[]), CAST(:servers AS uuid[]),
                CAST(:places AS int[])) AS v(id, mac, network_id, server_id, place)
    ON CONFLICT (mac) DO NOTHING
    RETURNING id::text
""")

_TAKE = text("""
    UPDATE compute_addresses a
    SET server_id = w.owner, vif_id = w.vif_id, mac = w.mac, leased = false, changed_at = :now
    FROM (SELECT f.address, v.owner, v.id AS vif_id, v.mac
          FROM (SELECT address, row_number() OVER (ORDER BY address) AS place
                FROM (SELECT address FROM compute_addresses
                      WHERE network_id = CAST(:network_id AS uuid) AND server_id IS NULL AND NOT reserved
                      ORDER BY address LIMIT :count FOR NO KEY UPDATE SKIP LOCKED) AS free) AS f
          JOIN (SELECT s.place, i.id, i.mac, CASE WHEN i.project_id IS NULL THEN i.server_id ELSE i.id END AS owner
                FROM unnest(CAST(:vif_ids AS uuid[])) WITH ORDINALITY AS s(vif_id, place)
                JOIN compute_vifs i ON i.id = s.vif_id) AS v
          USING (place)) AS w
    WHERE a.network_id = CAST(:network_id AS uuid) AND a.address = w.address
    RETURNING host(a.address)
""")

_TAKE_THIS = text("""
    UPDATE compute_addresses a
    SET server_id = CASE WHEN v.project_id IS NULL THEN v.server_id ELSE v.id END,
        vif_id = v.id, mac = v.mac, leased = false, changed_at = :now
    FROM compute_vifs v
    WHERE a.network_id = CAST(:network_id AS uuid) AND a.address = CAST(:address AS inet) AND a.server_id IS NULL
      AND (:reserved OR NOT a.reserved) AND v.id = CAST(:vif_id AS uuid)
    RETURNING host(a.address)
""")

# An address stays allocated until its DHCP lease ends, even if its server is deleted. A port that a project created
# stays with its addresses, unless one of these is named.
_GIVE_UP = text("""
    WITH given AS (
        UPDATE compute_addresses a
        SET vif_id = NULL, changed_at = :now,
            server_id = CASE WHEN n.manager = 'flat' THEN NULL ELSE a.server_id END,
            leased = a.leased AND n.manager <> 'flat'
        FROM compute_networks n
        WHERE n.id = a.network_id AND a.vif_id IS NOT NULL
          AND CASE WHEN CAST(:address AS text) IS NULL AND CAST(:vif_id AS uuid) IS NULL
                   THEN a.server_id = CAST(:server_id AS uuid)
                   ELSE a.vif_id IN (SELECT o.id FROM compute_vifs o
                                     WHERE o.server_id = CAST(:server_id AS uuid)
                                       AND (CAST(:vif_id AS uuid) IS NULL OR o.id = CAST(:vif_id AS uuid)))
                        AND (CAST(:address AS text) IS NULL OR host(a.address) = :address) END
        RETURNING host(a.address) AS address, n.id::text AS network_id, n.host, n.manager),
    gone AS (
        DELETE FROM compute_vifs v
        WHERE v.server_id = CAST(:server_id AS uuid) AND v.project_id IS NULL
          AND (CAST(:vif_id AS uuid) IS NULL OR v.id = CAST(:vif_id AS uuid))
          AND NOT EXISTS (SELECT FROM compute_addresses o
                          WHERE o.vif_id = v.id AND (CAST(:address AS text) IS NOT NULL
                                                     AND host(o.address) <> :address)))
    SELECT address, network_id, host, manager FROM given
""")

_RELEASED = text("""
    UPDATE compute_addresses a
    SET leased = false, changed_at = :now,
        server_id = CASE WHEN a.vif_id IS NULL AND a.grant_id IS NULL THEN NULL ELSE a.server_id END
    FROM (SELECT network_id, address, leased FROM compute_addresses
          WHERE network_id = CAST(:network_id AS uuid) AND address = CAST(:address AS inet) FOR NO KEY UPDATE) AS b
    WHERE a.network_id = b.network_id AND a.address = b.address AND a.server_id IS NOT NULL
      AND a.mac = :mac
    RETURNING b.leased
""")

OVERDUE = f"""
    n.id = a.network_id AND n.host = :host AND a.server_id IS NOT NULL AND a.vif_id IS NULL
    AND CASE WHEN a.grant_id IS NOT NULL
             THEN a.changed_at < {NOW} - make_interval(secs => :held)
             ELSE a.changed_at < {NOW} - make_interval(secs => :seconds) OR n.manager = 'flat' END
"""
"""Condition of an address `a` in a network `n` of :host that has waited too long for its client or its server."""

_TIMED_OUT = text(f"""
    UPDATE compute_addresses a SET server_id = NULL, grant_id = NULL, leased = false, changed_at = :now
    FROM compute_networks n
    WHERE {OVERDUE}
    RETURNING host(a.address)
""")

_ENTRIES = text("""
    SELECT a.network_id::text, v.mac, host(a.address) AS address, s.name, v.id::text AS vif_id,
           v.place = 0 AND n.routed AS first,
           CAST(extract(epoch FROM a.changed_at) AS bigint) AS since, s.id::text AS server_id
    FROM compute_addresses a
    JOIN compute_networks n ON n.id = a.network_id
    JOIN compute_vifs v ON v.id = a.vif_id
    JOIN compute_servers s ON s.id = v.server_id
    WHERE n.host = :host AND n.manager <> 'flat'
    ORDER BY a.network_id, s.created_at, s.id, v.place, v.id, a.leased DESC, a.address
""")

_OF_SERVERS = text(f"""
    SELECT v.id::text AS vif_id, v.mac, v.place, v.server_id::text AS server_id, s.project_id AS of_project,
           v.admin_up, v.project_id IS NOT NULL AS kept,
           coalesce(v.security_groups, s.security_groups, (SELECT array_agg(g.id) FROM compute_security_groups g
                                        WHERE g.project_id = s.project_id AND g.name = 'default'))::text[] AS groups,
           (SELECT array_agg(host(a.address) ORDER BY a.address) FROM compute_addresses a WHERE a.vif_id = v.id) AS all,
           {columns()}
    FROM compute_vifs v JOIN compute_networks n ON n.id = v.network_id JOIN compute_servers s ON s.id = v.server_id
    WHERE v.server_id = ANY(CAST(:ids AS uuid[])) ORDER BY v.server_id, v.place
""")

# Uses the index of the ids, however many interfaces there are.
_BEGINNING = text("""
    SELECT v.id::text, n.name
    FROM unnest(CAST(:heads AS text[])) AS h(head)
    JOIN compute_vifs v ON v.id BETWEEN CAST(h.head || '-0000-0000-0000-000000000000' AS uuid)
                                    AND CAST(h.head || '-ffff-ffff-ffff-ffffffffffff' AS uuid)
    JOIN compute_servers s ON s.id = v.server_id LEFT JOIN compute_nodes n ON n.id = s.node_id
""")

# Networks do not overlap, and the index of their ranges finds the one that has the address.
_SERVER_AT = (
    select(tables.vifs.c.server_id)
    .select_from(tables.networks)
    .join(tables.addresses, tables.addresses.c.network_id == tables.networks.c.id)
    .join(tables.vifs, tables.vifs.c.id == tables.addresses.c.vif_id)
    .where(tables.networks.c.cidr.op(">>=")(bindparam("address", type_=INET)))
    .where(tables.addresses.c.address == bindparam("address", type_=INET), tables.vifs.c.server_id.is_not(None))
)


_OF_VIFS = (
    select(func.count()).select_from(tables.addresses).join(tables.vifs, tables.vifs.c.id == tables.addresses.c.vif_id)
)

_USED = union_all(
    _OF_VIFS.join(servers, servers.c.id == tables.vifs.c.server_id).where(
        servers.c.project_id == bindparam("project_id"), tables.vifs.c.project_id.is_(None)
    ),
    _OF_VIFS.where(tables.vifs.c.project_id == bindparam("project_id")),
)


class NewVif(NamedTuple):
    id: str
    mac: str
    network_id: str
    server_id: str
    place: int


class DeallocatedAddress(NamedTuple):
    """An address that was deallocated."""

    address: str
    network_id: str
    host: str | None
    manager: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A deallocated address that is free when its DHCP lease ends."""

    network_id: str
    address: IPv4Address
    mac: str
    leased: bool
    changed_at: datetime


def insert_vifs(conn: Connection, vifs: Sequence[NewVif]) -> set[str]:
    """Insert interfaces; return the ids of those whose MAC was unused."""
    ids, macs, networks, servers, places = (list(column) for column in zip(*vifs, strict=True))
    given = {"ids": ids, "macs": macs, "networks": networks, "servers": servers, "places": places}
    return set(conn.execute(_VIFS, given).scalars())


def take(conn: Connection, network_id: str, vif_ids: Sequence[str], now: datetime) -> list[str]:
    """Allocate a free address of a network to each of these interfaces there; return the allocated ones."""
    given = {"network_id": network_id, "vif_ids": list(vif_ids), "count": len(vif_ids), "now": now}
    return list(conn.execute(_TAKE, given).scalars())


def take_this(
    conn: Connection, network_id: str, vif_id: str, address: str, now: datetime, *, reserved: bool = False
) -> bool:
    """Allocate this address to an interface; False if it is taken, or reserved and that is not allowed."""
    given = {"network_id": network_id, "vif_id": vif_id, "address": address, "now": now, "reserved": reserved}
    return conn.execute(_TAKE_THIS, given).first() is not None


def deallocate(
    conn: Connection, server_id: str, now: datetime, *, vif_id: str | None = None, address: str | None = None
) -> list[DeallocatedAddress]:
    """Deallocate a server's addresses and delete its interfaces without any; return the deallocated ones.

    `vif_id` and `address` restrict this to one interface or address. Ports that a project created are not deleted;
    without a restriction they keep their addresses.
    """
    given = {"server_id": server_id, "now": now, "vif_id": vif_id, "address": address}
    return [DeallocatedAddress(*row) for row in conn.execute(_GIVE_UP, given)]


def leased(conn: Connection, network_id: str, address: str, mac: str, now: datetime) -> bool | None:
    """Record that a DHCP client holds an address; return whether it is allocated, None for no or another MAC."""
    own = tables.addresses.c
    statement = (
        update(tables.addresses)
        .where(own.network_id == network_id, own.address == address, own.server_id.is_not(None), own.mac == mac)
        .values(leased=True, changed_at=now)
        .returning(own.vif_id.is_not(None))
    )
    return conn.scalar(statement)


def released(conn: Connection, network_id: str, address: str, mac: str, now: datetime) -> bool | None:
    """Record that no client holds an address; return whether one did, None if it belongs to no or another MAC."""
    given = {"network_id": network_id, "address": address, "mac": mac, "now": now}
    row = conn.execute(_RELEASED, given).one_or_none()
    return None if row is None else bool(row.leased)


def time_out(conn: Connection, host: str, now: datetime, seconds: float, held: float) -> list[str]:
    """Free addresses of a host's networks that waited longer than `seconds`, or were held longer than `held`."""
    return list(conn.execute(_TIMED_OUT, {"host": host, "now": now, "seconds": seconds, "held": held}).scalars())


def free(conn: Connection, network_id: str, addresses: Sequence[str], now: datetime, seen: datetime) -> None:
    """Free addresses that wait and are not leased, unless they have changed after `seen`."""
    own = tables.addresses.c
    statement = update(tables.addresses).where(
        own.network_id == network_id,
        in_array(own.address, addresses),
        own.vif_id.is_(None),
        ~own.leased,
        own.changed_at <= seen,
        own.grant_id.is_(None),
    )
    conn.execute(statement.values(server_id=None, changed_at=now))


def waiting(conn: Connection, host: str) -> list[Waiting]:
    """Return the addresses in a host's networks that wait for the end of their DHCP leases."""
    own = tables.addresses.c
    query = (
        select(own.network_id, func.host(own.address).label("address"), own.mac, own.leased, own.changed_at)
        .join(tables.networks, tables.networks.c.id == own.network_id)
        .where(tables.networks.c.host == host)
        .where(own.server_id.is_not(None), own.vif_id.is_(None), own.grant_id.is_(None))
        .order_by(func.random())  # those that cannot be released keep no other from its turn
        .limit(500)
    )
    return [
        Waiting(row.network_id, IPv4Address(row.address), row.mac or "", row.leased, row.changed_at)
        for row in conn.execute(query)
    ]


def entries(conn: Connection, host: str) -> dict[str, list[tuple[str, str, Entry]]]:
    """Return the DHCP entries of a host's networks: network -> (server's id, its name, entry without a host name).

    Each interface has one entry: of several addresses the leased one, else the first.
    """
    result: dict[str, list[tuple[str, str, Entry]]] = {}
    seen: set[str] = set()
    for row in conn.execute(_ENTRIES, {"host": host}):
        if row.vif_id in seen:
            continue
        seen.add(row.vif_id)
        entry = Entry(row.mac, IPv4Address(row.address), "", row.vif_id, row.first, row.since)
        result.setdefault(row.network_id, []).append((row.server_id, row.name, entry))
    return result


def vifs_of(conn: Connection, server_ids: Sequence[str]) -> list[Vif]:
    """Return the interfaces of servers in order."""
    rows = conn.execute(_OF_SERVERS, {"ids": list(server_ids)}).mappings()
    return [
        Vif(
            id=row["vif_id"],
            mac=row["mac"],
            place=row["place"],
            server_id=row["server_id"],
            project_id=row["of_project"],
            network=network_of(row),
            addresses=tuple(IPv4Address(address) for address in row["all"] or ()),
            security_groups=None if row["groups"] is None else tuple(row["groups"]),
            admin_up=row["admin_up"],
            kept=row["kept"],
        )
        for row in rows
    ]


def vifs_on(conn: Connection, service_host: str) -> list[tuple[str, str, str]]:
    """Return the interfaces of all servers on a service's nodes: (id, its server's id, its node's name)."""
    query = (
        select(tables.vifs.c.id, servers.c.id, nodes.c.name)
        .join(servers, servers.c.id == tables.vifs.c.server_id)
        .join(nodes, nodes.c.id == servers.c.node_id)
        .where(nodes.c.service_host == service_host)
    )
    return [(vif, server, node) for vif, server, node in conn.execute(query)]


def vifs_beginning(conn: Connection, heads: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return the interfaces whose ids begin with these eight digits: (id, the name of its server's node, if any)."""
    digits = [head for head in heads if len(head) == 8 and set(head) <= set("0123456789abcdef")]
    return [(vif, node) for vif, node in conn.execute(_BEGINNING, {"heads": digits})]


def server_at(conn: Connection, address: str) -> str | None:
    """Return the id of the server whose interface has this address; None if no interface has it."""
    return conn.execute(_SERVER_AT, {"address": address}).scalar_one_or_none()


def used(conn: Connection, project_id: str) -> int:
    """Return the number of fixed addresses of a project's servers and ports."""
    return sum(conn.execute(_USED, {"project_id": project_id}).scalars())
