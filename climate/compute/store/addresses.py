"""Networks and their pools of fixed addresses."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, text

_MAKE = text("""
    INSERT INTO compute_networks (label, cidr, gateway) VALUES (:label, :cidr, :gateway)
    ON CONFLICT (label) DO NOTHING RETURNING id::text
""")

# 02:16:3e and the last three bytes of the address: unique in a network, the same whenever it is made again.
_FILL = text("""
    INSERT INTO compute_addresses (network_id, address, mac)
    SELECT CAST(:network_id AS uuid), CAST(:first AS inet) + i,
           '02:16:3e:' || substr(regexp_replace(lpad(to_hex(((CAST(:first AS inet) + i) - inet '0.0.0.0') & 16777215),
                                                     6, '0'), '(..)', '\\1:', 'g'), 1, 8)
    FROM generate_series(0, :count - 1) AS i
""")

_LIST = text("""
    SELECT id::text, subnet_id::text, label, cidr, gateway, created_at FROM compute_networks
    WHERE CAST(:id AS text) IS NULL OR id::text = :id
    ORDER BY created_at, id
""")

_TAKE = text("""
    UPDATE compute_addresses a SET server_id = w.server_id
    FROM (SELECT f.address, s.server_id
          FROM (SELECT address, row_number() OVER (ORDER BY address) AS place
                FROM (SELECT address FROM compute_addresses
                      WHERE network_id = CAST(:network_id AS uuid) AND server_id IS NULL
                      ORDER BY address LIMIT :count FOR NO KEY UPDATE SKIP LOCKED) AS free) AS f
          JOIN unnest(CAST(:server_ids AS uuid[])) WITH ORDINALITY AS s(server_id, place) USING (place)) AS w
    WHERE a.network_id = CAST(:network_id AS uuid) AND a.address = w.address
    RETURNING a.address
""")

_PORTS = text("""
    SELECT a.port_id::text, a.network_id::text, w.subnet_id::text, host(a.address) AS address, a.mac,
           a.server_id::text, s.project_id, s.status
    FROM compute_addresses a
    JOIN compute_networks w ON w.id = a.network_id
    JOIN compute_servers s ON s.id = a.server_id
    WHERE (CAST(:server_id AS text) IS NULL OR a.server_id::text = :server_id)
      AND (CAST(:project_id AS text) IS NULL OR s.project_id = :project_id)
    ORDER BY a.address LIMIT 1000
""")


def make(conn: Connection, label: str, cidr: str, gateway: str) -> str | None:
    """Make a network; its id, or None when there is one of that label."""
    found: str | None = conn.execute(_MAKE, {"label": label, "cidr": cidr, "gateway": gateway}).scalar()
    return found


def fill(conn: Connection, network_id: str, first: str, count: int) -> None:
    """Put `count` addresses from `first` on into the pool of a network."""
    conn.execute(_FILL, {"network_id": network_id, "first": first, "count": count})


def networks(conn: Connection, network_id: str | None = None) -> list[dict[str, Any]]:
    """All networks, oldest first, or the one of that id."""
    return [dict(row) for row in conn.execute(_LIST, {"id": network_id}).mappings()]


def take(conn: Connection, network_id: str, server_ids: Sequence[str]) -> int:
    """Give each server a free address of the network; how many there were."""
    given = {"network_id": network_id, "server_ids": list(server_ids), "count": len(server_ids)}
    return len(conn.execute(_TAKE, given).all())


def ports(conn: Connection, wanted: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """Addresses in use, by `server_id` and `project_id` when these are given."""
    given = {"server_id": wanted.get("server_id"), "project_id": wanted.get("project_id")}
    return [dict(row) for row in conn.execute(_PORTS, given).mappings()]
