"""Columns of a server that change when it is shelved, unshelved or resized.

Each function is called with the server's row locked.
"""

from dataclasses import asdict

from sqlalchemy import Connection, bindparam, update

from climate.compute.models.flavor import Flavor
from climate.compute.models.server import Room
from climate.compute.store.tables.nodes import nodes
from climate.compute.store.tables.servers import servers

_OF_ID = servers.c.id == bindparam("server_id")

# Sets the given columns.
_CHANGE = update(servers).where(_OF_ID)


def set_held_capacity(conn: Connection, server_id: str, room: Room) -> None:
    """Set the held capacity of a server's row; the caller has updated the usage of its node."""
    conn.execute(_CHANGE, {"server_id": server_id, **asdict(room)})


def settle(conn: Connection, server_id: str, room: Room) -> None:
    """Set the held capacity of a server, on its node and in its row."""
    # The node first: its usage loses what the row says before the change.
    usage = {
        "used_vcpus": nodes.c.used_vcpus - servers.c.vcpus + room.vcpus,
        "used_ram_mb": nodes.c.used_ram_mb - servers.c.ram_mb + room.ram_mb,
        "used_disk_mb": nodes.c.used_disk_mb - servers.c.disk_mb + room.disk_mb,
    }
    conn.execute(update(nodes).where(servers.c.id == server_id, nodes.c.id == servers.c.node_id).values(usage))
    set_held_capacity(conn, server_id, room)


def resized(
    conn: Connection, server_id: str, flavor: Flavor, old: Flavor | None = None, before: str | None = None
) -> None:
    """Set another flavor of a server; `old` and `before`: its flavor and status after a revert."""
    given = {
        "server_id": server_id,
        "flavor": asdict(flavor),
        "old_flavor": asdict(old) if old else None,
        "before": before,
    }
    conn.execute(_CHANGE, given)


def offload(conn: Connection, server_id: str, image: str | None) -> None:
    """Remove a server from its node: its disk is in this image."""
    conn.execute(_CHANGE, {"server_id": server_id, "node_id": None, "shelved_image": image})


def place(conn: Connection, server_id: str, node_id: int) -> None:
    """Put a server without a node onto one."""
    conn.execute(_CHANGE, {"server_id": server_id, "node_id": node_id})


def unshelved(conn: Connection, server_id: str) -> None:
    """Record that a server is no longer in an image."""
    conn.execute(_CHANGE, {"server_id": server_id, "shelved_image": None})
