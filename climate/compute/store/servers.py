"""Servers: writing them down and reading them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, text

from climate.compute.flavor import Flavor
from climate.compute.server import Address, Server

_COLUMNS = """
    s.id::text, s.name, s.project_id, s.user_id, s.status, s.task, s.flavor, s.image_id::text, s.metadata, s.hints,
    s.zone, s.build_id, s.launch_index, s.created_at, s.updated_at, s.launched_at, s.key_name, s.fault,
    s.task_image::text, s.tried, s.node_id, n.name AS node, n.service_host, n.zone AS node_zone,
    (SELECT json_agg(json_build_object('address', host(a.address), 'mac', a.mac,
                                       'network_id', a.network_id, 'label', w.label) ORDER BY w.label, a.address)
     FROM compute_addresses a JOIN compute_networks w ON w.id = a.network_id WHERE a.server_id = s.id) AS addresses
"""

_FROM = "FROM compute_servers s LEFT JOIN compute_nodes n ON n.id = s.node_id"

_GET = text(f"SELECT {_COLUMNS} {_FROM} WHERE s.id = CAST(:id AS uuid)")

_GET_LOCKED = text(f"SELECT {_COLUMNS} {_FROM} WHERE s.id = CAST(:id AS uuid) FOR NO KEY UPDATE OF s")

_IN_POOL = text(f"SELECT {_COLUMNS} {_FROM} WHERE n.pool = :pool ORDER BY s.created_at, s.id")

_SLEEPING = text(f"SELECT {_COLUMNS} {_FROM} WHERE s.status = 'RESERVED' ORDER BY s.id")

_SETTLED = text(f"SELECT {_COLUMNS} {_FROM} WHERE n.service_host = :host AND s.task IS NULL ORDER BY s.id")

_KNOWN = text("SELECT id::text FROM compute_servers WHERE id = ANY(CAST(:ids AS uuid[]))")

_INSERT = text("""
    INSERT INTO compute_servers (id, name, project_id, user_id, status, task, task_at, flavor, vcpus, ram_mb, disk_mb,
                                 image_id, metadata, hints, zone, key_name, user_data, build_id, launch_index, node_id,
                                 fault, created_at, updated_at)
    VALUES (CAST(:id AS uuid), :name, :project_id, :user_id, :status, :task, :now, CAST(:flavor AS jsonb), :vcpus,
            :ram_mb, :disk_mb, CAST(:image_id AS uuid), CAST(:metadata AS jsonb), CAST(:hints AS jsonb), :zone,
            :key_name, :user_data, :build_id, :launch_index, :node_id, CAST(:fault AS jsonb), :now, :now)
""")

# NULL in a parameter means: any.  The marker is the last server of the page before.
_LIST = text(f"""
    SELECT {_COLUMNS} {_FROM}
    WHERE (CAST(:project_id AS text) IS NULL OR s.project_id = :project_id)
      AND (CAST(:name AS text) IS NULL OR s.name ~ :name)
      AND (CAST(:status AS text) IS NULL OR s.status = :status)
      AND (CAST(:host AS text) IS NULL OR n.name = :host OR n.service_host = :host)
      AND (CAST(:user_id AS text) IS NULL OR s.user_id = :user_id)
      AND (CAST(:image AS text) IS NULL OR s.image_id::text = :image)
      AND (CAST(:flavor AS text) IS NULL OR s.flavor ->> 'id' = :flavor)
      AND (CAST(:ip AS text) IS NULL OR EXISTS (
               SELECT FROM compute_addresses a WHERE a.server_id = s.id AND host(a.address) ~ :ip))
      AND (CAST(:marker AS uuid) IS NULL OR (s.created_at, s.id) <
              (SELECT m.created_at, m.id FROM compute_servers m WHERE m.id = CAST(:marker AS uuid)))
    ORDER BY s.created_at DESC, s.id DESC LIMIT :limit
""")

_RENAME = text("UPDATE compute_servers SET name = :name, updated_at = :now WHERE id = CAST(:id AS uuid)")

_METADATA = text("""
    UPDATE compute_servers SET metadata = CAST(:metadata AS jsonb), updated_at = :now WHERE id = CAST(:id AS uuid)
""")

_USED = text("""
    SELECT count(*) AS instances, coalesce(sum(vcpus), 0) AS cores, coalesce(sum(ram_mb), 0) AS ram_mb
    FROM compute_servers WHERE project_id = :project_id
""")


@dataclass(frozen=True, slots=True)
class ServerQuery:
    """What is wanted of a list of servers; None means any.  `name` and `ip` are regular expressions."""

    project_id: str | None = None
    name: str | None = None
    status: str | None = None
    host: str | None = None
    user_id: str | None = None
    image: str | None = None
    flavor: str | None = None
    ip: str | None = None
    marker: str | None = None
    limit: int = 1000


def get(conn: Connection, server_id: str, *, lock: bool = False) -> Server | None:
    """The server, with its row locked if asked for; None when there is none."""
    row = conn.execute(_GET_LOCKED if lock else _GET, {"id": server_id}).mappings().one_or_none()
    return _server(row) if row else None


def listed(conn: Connection, query: ServerQuery) -> list[Server]:
    """Servers that fit the query, newest first."""
    return [_server(row) for row in conn.execute(_LIST, asdict(query)).mappings()]


def in_pool(conn: Connection, pool: str) -> list[Server]:
    """The servers on the nodes of a pool."""
    return [_server(row) for row in conn.execute(_IN_POOL, {"pool": pool}).mappings()]


def sleeping(conn: Connection) -> list[Server]:
    """All servers that are RESERVED."""
    return [_server(row) for row in conn.execute(_SLEEPING).mappings()]


def settled(conn: Connection, service_host: str) -> list[Server]:
    """The servers of a service for which nothing is under way."""
    return [_server(row) for row in conn.execute(_SETTLED, {"host": service_host}).mappings()]


def known(conn: Connection, ids: Sequence[str]) -> set[str]:
    """Those of `ids` that are servers."""
    return set(conn.execute(_KNOWN, {"ids": list(ids)}).scalars())


def insert(conn: Connection, servers: Sequence[Server], user_data: str | None) -> None:
    """Write new servers down."""
    conn.execute(_INSERT, [_row(server, user_data) for server in servers])


def rename(conn: Connection, server_id: str, name: str, now: datetime) -> None:
    """Give a server another name."""
    conn.execute(_RENAME, {"id": server_id, "name": name, "now": now})


def set_metadata(conn: Connection, server_id: str, metadata: Mapping[str, str], now: datetime) -> None:
    """Replace the metadata of a server."""
    conn.execute(_METADATA, {"id": server_id, "metadata": json.dumps(dict(metadata)), "now": now})


def used(conn: Connection, project_id: str) -> Mapping[str, int]:
    """What a project's servers use: instances, cores, ram_mb."""
    row = conn.execute(_USED, {"project_id": project_id}).mappings().one()
    return {key: int(value) for key, value in row.items()}


def _row(server: Server, user_data: str | None) -> dict[str, Any]:
    flavor = server.flavor
    return {
        "id": server.id,
        "name": server.name,
        "project_id": server.project_id,
        "user_id": server.user_id,
        "status": server.status,
        "task": server.task,
        "now": server.created_at,
        "flavor": json.dumps(asdict(flavor)),
        "vcpus": flavor.vcpus,
        "ram_mb": flavor.ram_mb,
        "disk_mb": flavor.disk_mb,
        "image_id": server.image_id,
        "metadata": json.dumps(dict(server.metadata)),
        "hints": json.dumps(dict(server.hints)),
        "zone": server.zone,
        "key_name": server.key_name,
        "user_data": user_data,
        "build_id": server.build_id,
        "launch_index": server.launch_index,
        "node_id": server.node_id,
        "fault": json.dumps(server.fault) if server.fault else None,
    }


def _server(row: RowMapping) -> Server:
    values = dict(row)
    values["flavor"] = Flavor(**values["flavor"])
    values["addresses"] = tuple(Address(**address) for address in values["addresses"] or ())
    values["tried"] = tuple(values["tried"])
    return Server(**values)
