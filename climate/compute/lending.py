"""Pools of nodes for leases: kept, lent to a project, closed and taken back.

Whoever moves a node between pools and whoever puts a server on it hold the same
row lock meanwhile, taken in name order by all.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import Busy, Conflict, NotFound, StaleToken
from climate.compute.host import FREEPOOL, Node
from climate.compute.server import Server
from climate.compute.store import nodes as node_rows
from climate.compute.store import pools as rows
from climate.compute.store import servers
from climate.compute.store.nodes import Held


def nodes(compute: Compute, name: str | None = None) -> list[Node]:
    """All nodes, or those of one name; a node whose driver reports it no more is not among them."""
    with compute.engine.connect() as conn:
        return [node for node in node_rows.listed(conn, compute.now(conn), name) if node.present]


def pools(compute: Compute) -> Mapping[str, frozenset[str]]:
    """Pool -> names of its nodes."""
    with compute.engine.connect() as conn:
        return rows.members(conn)


def servers_in(compute: Compute, pool: str) -> list[Server]:
    """The servers on the nodes of a pool."""
    with compute.engine.connect() as conn:
        return servers.in_pool(conn, pool)


def sleeping(compute: Compute) -> list[Server]:
    """All servers that are RESERVED."""
    with compute.engine.connect() as conn:
        return servers.sleeping(conn)


def enrol(compute: Compute, name: str) -> None:
    """Put a node into the reservation pool.  Conflict when servers are on it or it is lent."""
    with compute.engine.begin() as conn:
        node = _one(rows.lock_named(conn, [name]), name)
        if node.pool == FREEPOOL:
            return
        if node.pool is not None:
            raise Conflict(f"Host {name} is lent to {node.pool}.")
        if rows.servers_on(conn, [node.id]):
            raise Conflict(f"Host {name} has servers.")
        rows.put(conn, node.id, FREEPOOL)


def withdraw(compute: Compute, name: str) -> None:
    """Give a node of the reservation pool back to the ordinary scheduler.  Conflict when it is lent."""
    with compute.engine.begin() as conn:
        held = rows.lock_named(conn, [name])
        if not held:
            return
        node = _one(held, name)
        if node.pool not in (None, FREEPOOL):
            raise Conflict(f"Host {name} is lent to {node.pool}.")
        rows.put(conn, node.id, None)


def lend(compute: Compute, pool: str, project_id: str, names: Sequence[str], token: int) -> None:
    """Make the pool for a project, and move these nodes from the reservation pool into it.

    Raises StaleToken, NotFound, Busy while a node is neither here nor there.
    """
    with compute.engine.begin() as conn:
        held = rows.lock_named(conn, names)
        _check_fence(held, token)
        missing = set(names) - {node.name for node in held}
        if missing:
            raise NotFound(f"Host {min(missing)} could not be found.")
        astray = [node.name for node in held if node.pool not in (FREEPOOL, pool)]
        if astray:
            raise Busy(f"Host {astray[0]} is not in the reservation pool.")
        if not rows.lend(conn, pool, project_id, [node.id for node in held], token):
            raise StaleToken


def close(compute: Compute, pool: str, token: int) -> None:
    """Let nobody boot in the pool any more; nothing to do when there is no such pool.  Raises StaleToken."""
    with compute.engine.begin() as conn:
        ids = _hold(conn, pool, token)
        rows.close(conn, pool, ids, token)


def take_back(compute: Compute, pool: str, names: Sequence[str], token: int) -> None:
    """Move the pool's nodes to the reservation pool and drop it.  Raises Busy while servers are on them, StaleToken.

    Nodes of these names that are in the reservation pool already are closed to lower tokens too.
    """
    with compute.engine.begin() as conn:
        ids = _hold(conn, pool, token, names)
        left = rows.servers_on(conn, ids)
        if left:
            raise Busy(f"{left} servers are still on the hosts of {pool}")
        rows.take_back(conn, pool, ids, token)


def _hold(conn: Connection, pool: str, token: int, free: Sequence[str] = ()) -> list[int]:
    """Lock the nodes of a lent pool, and those of the reservation pool with a name in `free`; their ids."""
    if pool == FREEPOOL:
        raise Conflict("The reservation pool is lent to nobody.")
    held = rows.lock_pool(conn, pool, free)
    _check_fence(held, token)
    if (rows.fence(conn, pool) or 0) > token:
        raise StaleToken
    return [node.id for node in held]


def _check_fence(held: Sequence[Held], token: int) -> None:
    if any(node.fence > token for node in held):
        raise StaleToken


def _one(held: Sequence[Held], name: str) -> Held:
    if not held:
        raise NotFound(f"Host {name} could not be found.")
    if len(held) > 1:
        raise Conflict(f"There are {len(held)} hosts called {name}.")
    return held[0]
