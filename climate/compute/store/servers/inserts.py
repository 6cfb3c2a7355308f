"""Builds: the servers of one request, inserted together."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from sqlalchemy import Connection, select, text

from climate.compute.models.request import BootRequest
from climate.compute.models.server import Server
from climate.compute.store.columns import in_array
from climate.compute.store.tables.servers import servers as server_rows

# The common values of a build are sent once, and its servers are one statement however many they are.
_SERVERS = text("""
    INSERT INTO compute_servers (id, name, node_id, launch_index, project_id, user_id, status, task, task_at, flavor,
                                 vcpus, ram_mb, disk_mb, image_id, metadata, hints, zone, key_name, public_key,
                                 user_data, build_id, fault, description, group_id, granted, destination, access_ipv4,
                                 access_ipv6, config_drive, disk_config, tags, security_groups, created_at, updated_at)
    SELECT s.id, s.name, s.node_id, s.launch_index, :project_id, :user_id, :status, :task, :now, CAST(:flavor AS jsonb),
           :vcpus, :ram_mb, :disk_mb, CAST(:image_id AS uuid), CAST(:metadata AS jsonb), CAST(:hints AS jsonb), :zone,
           :key_name, :public_key, :user_data, :build_id, CAST(:fault AS jsonb), :description, CAST(:group_id AS uuid),
           :granted, :destination, :access_ipv4, :access_ipv6,
           :config_drive, :disk_config, :tags, CAST(:security_groups AS uuid[]), :now, :now
    FROM unnest(CAST(:ids AS uuid[]), CAST(:names AS text[]), CAST(:nodes AS int[]), CAST(:places AS int[]))
         AS s(id, name, node_id, launch_index)
""")

_ACTIONS = text("""
    INSERT INTO compute_actions (server_id, project_id, action, request_id, user_id, started_at)
    SELECT id, :project_id, 'create', :request_id, :user_id, :now FROM unnest(CAST(:ids AS uuid[])) AS s(id)
""")


def insert(conn: Connection, servers: Sequence[Server], request: BootRequest) -> None:
    """Insert the servers of one request, and their create actions.

    They differ in id, name, launch_index and node; the rest is taken from the first.
    """
    given = {name: getattr(request, name) for name in ("public_key", "user_data", "request_id")}
    common = {**given, **_common(servers[0])}
    each = {
        "ids": [server.id for server in servers],
        "names": [server.name for server in servers],
        "nodes": [server.node_id for server in servers],
        "places": [server.launch_index for server in servers],
    }
    conn.execute(_SERVERS, {**common, **each})
    conn.execute(_ACTIONS, {**common, **each})


def nodes_of(conn: Connection, server_ids: Sequence[str], project_id: str) -> frozenset[int]:
    """Return the nodes of those of these servers that the project has."""
    own = server_rows.c
    query = select(own.node_id).where(
        in_array(own.id, server_ids), own.project_id == project_id, own.node_id.is_not(None)
    )
    return frozenset(conn.scalars(query))


def nodes_of_other_flavors(conn: Connection, flavor_id: str) -> frozenset[int]:
    """Return the nodes with a server of another flavor; reads all servers."""
    own = server_rows.c
    query = select(own.node_id).distinct().where(own.node_id.is_not(None), own.flavor["id"].astext != flavor_id)
    return frozenset(conn.scalars(query))


def _common(server: Server) -> Mapping[str, object]:
    flavor = server.flavor
    return {
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
        "build_id": server.build_id,
        "fault": json.dumps(server.fault) if server.fault else None,
        "description": server.description,
        "group_id": server.group_id,
        "granted": flavor.reservation,
        "destination": server.destination,
        "access_ipv4": server.access[0],
        "access_ipv6": server.access[1],
        "config_drive": server.config_drive,
        "disk_config": server.disk_config,
        "tags": list(server.tags),
        "security_groups": None if server.security_groups is None else list(server.security_groups),
    }
