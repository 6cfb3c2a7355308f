"""The files of a server's config drive: its metadata, and its user data or the script of a cloudpipe."""

import base64
import json
from collections.abc import Mapping

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.models.server import Server
from climate.compute.network.service.hostnames import hostname
from climate.compute.store.projects import keypairs
from climate.compute.store.servers import servers
from climate.compute.vpn import cloudpipe_script
from climate.connections import reading

META_DATA, USER_DATA = "openstack/latest/meta_data.json", "openstack/latest/user_data"
"""Paths at which cloud-init looks for the files. Source: Nova's format of the drive."""


def of_server(compute: Compute, server: Server) -> Mapping[str, bytes]:
    """Return the files of a server's drive by their paths; none if it has no drive. Raises VirtError."""
    if not server.config_drive:
        return {}
    with reading(compute.engine) as conn:
        given = servers.user_data(conn, [server.id]).get(server.id)
        files = {META_DATA: json.dumps(_metadata(compute, conn, server)).encode()}
        content = cloudpipe_script.of_server(compute, conn, server) if given is None else base64.b64decode(given)
    return files if content is None else {**files, USER_DATA: content}


def _metadata(compute: Compute, conn: Connection, server: Server) -> Mapping[str, object]:
    result = keypairs.listed(conn, server.user_id, server.key_name) if server.key_name else []
    keys = {
        "public_keys": {one["name"]: one["public_key"] for one in result},
        "keys": [{"name": one["name"], "type": "ssh", "data": one["public_key"]} for one in result],
    }
    return {
        "uuid": server.id,
        "name": server.name,
        "hostname": f"{hostname(server.name, server.id)}.{compute.network.domain}",
        "launch_index": server.launch_index,
        "availability_zone": server.node_zone,
        "project_id": server.project_id,
        "meta": dict(server.metadata),
        **(keys if result else {}),
    }
