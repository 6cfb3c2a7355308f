"""Room on nodes: chosen on a snapshot, claimed under the nodes' row locks."""

from collections import Counter

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import ClaimLost
from climate.compute.request import Placement
from climate.compute.scheduler import snapshot
from climate.compute.scheduler.select import Pick, select
from climate.compute.server import Server
from climate.compute.store import nodes

TRIES = 10
"""How often a request chooses again after others took what it had chosen."""


def claim(conn: Connection, compute: Compute, place: Placement, count: int, also: tuple[int, ...] = ()) -> list[Pick]:
    """Choose nodes for `count` servers and take room on them; lock the nodes in `also` together with them.

    Raises NoValidHost; ClaimLost when somebody else was quicker, which asks for
    a rollback and another try.
    """
    picks = select(snapshot.take(nodes.columns(conn, compute.now(conn))), place, count)
    wanted = Counter(pick.node_id for pick in picks)
    nodes.lock(conn, [*wanted, *also])
    if not nodes.claim(conn, wanted, place):
        raise ClaimLost
    return picks


def release(conn: Connection, server: Server) -> None:
    """Give the room of a server back."""
    if server.node_id is not None:
        nodes.release(conn, server.node_id, server.flavor.vcpus, server.flavor.ram_mb, server.flavor.disk_mb)
