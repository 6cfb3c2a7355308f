"""Sizes and places of servers: what changes on a row when a server is shelved, unshelved or resized.

Each of these is called with the server's row locked.
"""

from dataclasses import asdict

from sqlalchemy import Connection, bindparam, text, update

from climate.compute.models.flavor import Flavor
from climate.compute.models.server import Room
from climate.compute.store.tables.servers import servers

_OF_ID = servers.c.id == bindparam("server_id")

# Sets the columns that it is given.
_CHANGE = update(servers).where(_OF_ID)

# The two statements of one change: what the row says is held is what is counted on its node.
_COUNT = text("""
    UPDATE compute_nodes n
    SET used_vcpus = used_vcpus - s.vcpus + :vcpus, used_ram_mb = used_ram_mb - s.ram_mb + :ram_mb,
        used_disk_mb = used_disk_mb - s.disk_mb + :disk_mb
    FROM compute_servers s WHERE s.id = CAST(:server_id AS uuid) AND n.id = s.node_id
""")


def hold(conn: Connection, server_id: str, room: Room) -> None:
    """Write down what is held for a server, whatever is counted on its node: the caller has seen to that."""
    conn.execute(_CHANGE, {"server_id": server_id, **asdict(room)})


def settle(conn: Connection, server_id: str, room: Room) -> None:
    """Hold so much for a server, on its node and in its row."""
    conn.execute(_COUNT, {"server_id": server_id, **asdict(room)})
    hold(conn, server_id, room)


def resized(
    conn: Connection, server_id: str, flavor: Flavor, old: Flavor | None = None, before: str | None = None
) -> None:
    """Give a server another flavor; `old` and `before`: what it is gone back to when that is not confirmed."""
    given = {
        "server_id": server_id,
        "flavor": asdict(flavor),
        "old_flavor": asdict(old) if old else None,
        "before": before,
    }
    conn.execute(_CHANGE, given)


def offload(conn: Connection, server_id: str, image: str | None) -> None:
    """Take a server off its node: all there is of it is in this image."""
    conn.execute(_CHANGE, {"server_id": server_id, "node_id": None, "shelved_image": image})


def put_on(conn: Connection, server_id: str, node_id: int) -> None:
    """Put a server that is on no node onto one."""
    conn.execute(_CHANGE, {"server_id": server_id, "node_id": node_id})


def unshelved(conn: Connection, server_id: str) -> None:
    """A server is no longer in an image."""
    conn.execute(_CHANGE, {"server_id": server_id, "shelved_image": None})
