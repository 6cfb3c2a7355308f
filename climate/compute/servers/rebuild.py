"""Rebuild and rescue: a server starts from another image, with the same id, node and addresses."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest
from climate.compute.models.request import replacement
from climate.compute.models.server import REBUILD, RESCUE, Server
from climate.compute.placement import request_data
from climate.compute.servers import actions
from climate.compute.servers.actions import By, TaskRequest
from climate.compute.store.servers import properties as rows

OF_IMAGES = frozenset({"ImagePropertiesFilter", "AggregateImagePropertiesIsolation", "IsolatedHostsFilter"})
"""Filters that a rebuild must pass; the others do not apply, because the node stays."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The new values of a rebuilt server; None: unchanged."""

    image_id: str
    name: str | None = None
    metadata: Mapping[str, str] | None = None
    description: str | None = None
    disk_config: str | None = None
    boot_data: Mapping[str, str | None] = field(default_factory=dict)
    """New key_name and user_data; None removes one, and an absent one stays."""
    public_key: str | None = None
    """Public key of the new key_name, empty for none; None: the user has the key pair in this deployment."""


def rebuild(
    compute: Compute, server_id: str, rebuild: Rebuilt, *, project_id: str | None = None, by: By | None = None
) -> None:
    """Request a rebuild; the server runs afterwards, or is shut off, as before.

    Raises NotFound, Conflict, Busy, BadRequest if the server is too small for the image, or its node does not support
    it.
    """
    with compute.engine.begin() as conn:
        server = actions.locked(conn, server_id, project_id)
        actions.check_lock(server, project_id)
        actions.idle(server, REBUILD)
        request_data.check_image(conn, rebuild.image_id, server.flavor)
        if rebuild.image_id != server.image_id:
            _check_node(compute, conn, server, rebuild.image_id)
        changes = {
            "image_id": rebuild.image_id,
            "name": rebuild.name,
            "metadata": rebuild.metadata,
            "description": rebuild.description,
        }
        given = {key: value for key, value in changes.items() if value is not None}
        rows.change(conn, server.id, given, compute.now(conn))
        rows.set_boot_data(conn, server.id, rebuild.boot_data, rebuild.public_key)
        if rebuild.disk_config is not None:
            rows.set_disk_config(conn, server.id, rebuild.disk_config)
        actions.record(conn, compute, server, TaskRequest(REBUILD), by)
    compute.cast(server.service_host or "", server_id)


def rescue(
    compute: Compute,
    server_id: str,
    image_id: str | None,
    *,
    project_id: str | None = None,
    by: By | None = None,
) -> None:
    """Request the start of a server from an image, with its own disk behind; None: from the image of the server.

    Raises NotFound, Conflict, Busy. Raises BadRequest if the server is too small for the image, its node does not
    support it, or it has none.
    """
    with compute.engine.begin() as conn:
        server = actions.locked(conn, server_id, project_id)
        actions.check_lock(server, project_id)
        actions.idle(server, RESCUE)
        wanted = image_id or server.image_id
        if wanted is None:
            raise BadRequest(f"Instance {server.id} has no image to be rescued with: give rescue_image_ref.")
        request_data.check_image(conn, wanted, server.flavor)
        if wanted != server.image_id:
            _check_node(compute, conn, server, wanted)
        actions.record(conn, compute, server, TaskRequest(RESCUE, details={"image": wanted}), by)
    compute.cast(server.service_host or "", server_id)


def _check_node(compute: Compute, conn: Connection, server: Server, image_id: str) -> None:
    """Check that servers of this image may be on the server's node, by the filters for new servers."""
    hosts = compute.roster.take(conn, compute.now(conn), compute.down_seconds)
    result = np.flatnonzero(hosts.ids == server.node_id)
    if not len(result):
        return
    node = hosts.row(int(result[0]))
    spec = request_data.completed(conn, compute.rules, replace(replacement(server, ()), image_id=image_id))
    for rule in compute.rules.filters:
        if rule.name in OF_IMAGES and not rule.keep(node, spec, compute.rules.options).all():
            raise BadRequest(f"Image {image_id} cannot be used where instance {server.id} is: {rule.name} refuses it.")
