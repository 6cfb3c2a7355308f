"""The files of a server's config drive: its metadata, and its user data or the script of a cloudpipe."""

import json
from collections.abc import Mapping

from climate.compute.context import Compute
from climate.compute.metadata import guest_metadata
from climate.compute.models.server import Server
from climate.compute.vpn import cloudpipe_script
from climate.database.connections import reading

META_DATA, USER_DATA = "openstack/latest/meta_data.json", "openstack/latest/user_data"
"""Paths at which cloud-init looks for the files. Source: Nova's format of the drive."""
NETWORK_DATA = "openstack/latest/network_data.json"


def of_server(compute: Compute, server: Server) -> Mapping[str, bytes]:
    """Return the files of a server's drive by their paths; none if it has no drive. Raises VirtError."""
    if not server.config_drive:
        return {}
    with reading(compute.engine) as conn:
        own = guest_metadata.gathered(compute, conn, server)
        script = cloudpipe_script.of_server(compute, conn, server) if own.user_data is None else None
    files = {
        META_DATA: json.dumps(own.meta_data()).encode(),
        NETWORK_DATA: json.dumps(own.network_data()).encode(),
    }
    content = script if own.user_data is None else own.user_data
    return files if content is None else {**files, USER_DATA: content}
