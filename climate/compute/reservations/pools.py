"""Pools of nodes for leases: created, lent to a project, closed, taken back; nodes are moved one by one too.

Moving a node between pools and placing a server on it hold the same row lock, always taken in name order.
"""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import Busy, Conflict, NotFound, StaleToken
from climate.compute.models.node import FREEPOOL, KEPT, Node
from climate.compute.models.server import Server
from climate.compute.store.nodes import nodes as node_rows
from climate.compute.store.nodes.nodes import Held
from climate.compute.store.reservations import pools as rows
from climate.compute.store.reservations import promised_pools
from climate.compute.store.servers import servers
from climate.database.connections import reading


def nodes(compute: Compute, name: str | None = None) -> list[Node]:
    """Return all nodes, or those of one name, without nodes that their driver no longer reports."""
    return [node for node in all_nodes(compute, name) if node.present]


def called(compute: Compute, word: str) -> list[Node]:
    """Return the nodes of that name; if there are none, the one with that id or UUID."""
    return nodes(compute, word) or [node for node in nodes(compute) if word in (str(node.id), node.uuid)]


def all_nodes(compute: Compute, name: str | None = None) -> list[Node]:
    """Return all nodes, also those that are kept as absent because they have servers or a lease."""
    with reading(compute.engine) as conn:
        return node_rows.listed(conn, compute.now(conn), compute.down_seconds, name)


def ordinary_nodes(compute: Compute) -> list[Node]:
    """Return the nodes in no pool, by name, without names that a pooled node has as well."""
    result = nodes(compute)
    pooled = {node.name for node in result if node.pool is not None}
    return sorted((node for node in result if node.name not in pooled), key=lambda node: node.name)


def servers_by_node(compute: Compute, nodes: Sequence[Node]) -> Mapping[int, Sequence[tuple[str, str]]]:
    """Return node id -> (id, name) of the servers on it."""
    with reading(compute.engine) as conn:
        return node_rows.servers(conn, [node.id for node in nodes])


def pools(compute: Compute, *, own: bool = False) -> Mapping[str, frozenset[str]]:
    """Return pool -> names of its nodes; own: without nodes that were added by the compute API."""
    with reading(compute.engine) as conn:
        return rows.members(conn, own=own)


def servers_in(compute: Compute, pool: str) -> list[Server]:
    """Return the servers on the nodes of a pool."""
    with reading(compute.engine) as conn:
        return servers.in_pool(conn, pool)


def servers_on(compute: Compute, name: str) -> list[Server]:
    """Return the servers on a node."""
    with reading(compute.engine) as conn:
        return servers.on_node(conn, name)


def is_lent_from_outside(compute: Compute, pool: str, project_id: str) -> bool:
    """Return whether an external reservation service, and no lease of this deployment, lent a pool to a project."""
    with reading(compute.engine) as conn:
        return rows.is_lent_from_outside(conn, pool, project_id)


def sleeping(compute: Compute) -> list[Server]:
    """Return all servers that are RESERVED."""
    with reading(compute.engine) as conn:
        return servers.sleeping(conn)


def busy_nodes(compute: Compute, names: Collection[str]) -> frozenset[str]:
    """Return those of the nodes on which at least one server runs."""
    with reading(compute.engine) as conn:
        return servers.busy_nodes(conn, names)


def enrol(compute: Compute, name: str, token: int) -> None:
    """Add a node to the reservation pool. Conflict if it has servers, or is lent or kept from outside.

    Raises StaleToken.
    """
    with compute.engine.begin() as conn:
        node = _one(_one_per_name(rows.lock_named(conn, [name])), name)
        if node.outside:
            raise _kept_from_outside(node)
        _check_fence([node], token)
        if node.pool not in (None, FREEPOOL):
            raise _elsewhere(node)
        if node.pool is None and rows.servers_on(conn, [node.id], but_granted=True):
            raise Conflict(f"Host {name} has servers.")
        rows.move(conn, node.id, FREEPOOL, token)


def withdraw(compute: Compute, name: str, token: int) -> None:
    """Return a node of the reservation pool to the ordinary scheduler. Conflict if it is lent.

    A node that the compute API added stays. Raises StaleToken.
    """
    with compute.engine.begin() as conn:
        held = [node for node in _one_per_name(rows.lock_named(conn, [name])) if not node.outside]
        if not held:
            return
        node = _one(held, name)
        _check_fence([node], token)
        if node.pool not in (None, FREEPOOL):
            raise _elsewhere(node)
        rows.move(conn, node.id, None, token)


def promise(compute: Compute, pool: str, wanted: Mapping[str, str]) -> int:
    """Create the empty pool of a reservation, or update its requirements; return the id of its aggregate.

    A pool that was lent is not changed. Conflict if an aggregate of another kind has its name.
    """
    _check_lendable(pool)
    with compute.engine.begin() as conn:
        return promised_pools.promise(conn, pool, wanted)


def promising(wanted: Mapping[str, Mapping[str, str]]) -> tuple[str, Mapping[str, str]]:
    """Return the SQL that creates new pools of reservations with their requirements, and its parameters.

    It returns the name and the id of each; a pool whose name is taken is not created.
    """
    for pool in wanted:
        _check_lendable(pool)
    return promised_pools.INSERT, promised_pools.inserted(wanted)


def forget(compute: Compute, pool: str) -> None:
    """Delete a promised pool that was never lent."""
    with compute.engine.begin() as conn:
        promised_pools.forget(conn, pool)


def of_leases(compute: Compute) -> Mapping[str, tuple[int, Mapping[str, str] | None]]:
    """Return pool of a reservation -> the id of its aggregate, and its requirements while it is only promised."""
    with reading(compute.engine) as conn:
        return promised_pools.listed(conn)


def _check_present(held: Sequence[Held], names: Sequence[str], pool: str) -> None:
    """Raise NotFound for a name without a node, Busy for a node outside the reservation pool and `pool`."""
    missing = set(names) - {node.name for node in held}
    if missing:
        raise NotFound(f"Host {min(missing)} could not be found.")
    astray = [node.name for node in held if node.outside or node.pool not in (FREEPOOL, pool)]
    if astray:
        raise Busy(f"Host {astray[0]} is not in the reservation pool.")


def lend(
    compute: Compute, pool: str, project_id: str, names: Sequence[str], token: int, shared_with: Sequence[str] = ()
) -> None:
    """Create the pool for a project, and move these nodes from the reservation pool into it; it is open then.

    `shared_with` are the further projects that may boot there, instead of former ones. Raises StaleToken, NotFound,
    Busy while a node is in another pool.
    """
    _check_lendable(pool)
    with compute.engine.begin() as conn:
        rows.lock(conn, pool)
        known = _one_per_name(rows.lock_named(conn, names, pool))
        held = [node for node in known if node.name in names]
        _check_fence(held, token)
        _check_present(held, names, pool)
        if rows.servers_on(conn, [node.id for node in held if node.pool == FREEPOOL]):
            raise Busy("Servers of another reservation are still on the hosts.")
        if not rows.lend(conn, pool, project_id, [node.id for node in known], token, shared_with):
            raise StaleToken


def close(compute: Compute, pool: str, token: int) -> None:
    """Close a pool: nobody can boot in it any more; nothing to do if it does not exist. Raises StaleToken."""
    with compute.engine.begin() as conn:
        rows.close(conn, pool, [node.id for node in _lock_pool(conn, pool, token)], token)


def take_back(compute: Compute, pool: str, names: Sequence[str], token: int, to: str | None = FREEPOOL) -> None:
    """Move the pool's nodes to one without owner, or with None to the ordinary scheduler, and delete the pool.

    Servers stay on them, but not in the reservation pool: Busy while they are on the nodes. Nodes of these names that
    are in the reservation pool already are fenced against lower tokens too. Raises StaleToken.
    """
    with compute.engine.begin() as conn:
        _create_locked(conn, to)
        held = _lock_pool(conn, pool, token, names)
        left = rows.servers_on(conn, [node.id for node in held if node.pool == pool]) if to == FREEPOOL else 0
        if left:
            raise Busy(f"{left} servers are still on the hosts of {pool}")
        rows.take_back(conn, pool, [node.id for node in held], token, to)


def place(compute: Compute, name: str, to: str | None, token: int) -> None:
    """Move one node, with its servers, to a pool without owner or a lent one, or with None to the ordinary scheduler.

    Raises Busy into the reservation pool while servers are on it that have no slot there; NotFound for an unknown
    node or pool; Conflict if it is kept from outside; StaleToken.
    """
    with compute.engine.begin() as conn:
        _create_locked(conn, to)
        node = _one(_one_per_name(rows.lock_named(conn, [name])), name)
        if node.outside:
            raise _kept_from_outside(node)
        _check_fence([node], token)
        if to == FREEPOOL and node.pool != FREEPOOL and rows.servers_on(conn, [node.id], but_granted=True):
            raise Busy(f"Servers are still on host {name}.")
        rows.move(conn, node.id, to, token)


def _create_locked(conn: Connection, pool: str | None) -> None:
    """Create and keep a pool until the transaction ends; lock it before any node, as everywhere."""
    if pool in KEPT and not rows.ensure(conn, pool):
        raise Conflict(f"Aggregate {pool} is an ordinary one with the name of a pool: rename it.")
    if pool is not None and pool not in KEPT and not rows.lock_lent(conn, pool):
        raise NotFound(f"Pool {pool} could not be found.")


def _lock_pool(conn: Connection, pool: str, token: int, free: Sequence[str] = (), *, drop: bool = False) -> list[Held]:
    """Lock a lent pool and its nodes, and those of the reservation pool with a name in `free`."""
    _check_lendable(pool)
    fence = rows.lock(conn, pool)
    held = rows.lock_pool(conn, pool, free)
    _check_fence(held, token)
    if (fence or 0) > token:
        raise StaleToken
    return held


def _check_lendable(pool: str) -> None:
    if pool in KEPT:
        raise Conflict(f"The pool {pool} is not lent.")


def _elsewhere(node: Held) -> Conflict:
    return Conflict(f"Host {node.name} is {'in the pool' if node.pool in KEPT else 'lent to'} {node.pool}.")


def _kept_from_outside(node: Held) -> Conflict:
    return Conflict(f"Host {node.name} is kept in {node.pool} by the compute API: remove it from there first.")


def _check_fence(held: Sequence[Held], token: int) -> None:
    if any(node.fence > token for node in held):
        raise StaleToken


def _one_per_name(held: Sequence[Held]) -> list[Held]:
    """Return one node per name, preferring the one in a pool: no pool ever has two of a name."""
    pooled = {node.name for node in held if node.pool is not None}
    return [node for node in held if node.pool is not None or node.name not in pooled]


def _one(held: Sequence[Held], name: str) -> Held:
    if not held:
        raise NotFound(f"Host {name} could not be found.")
    if len(held) > 1:
        raise Conflict(f"There are {len(held)} hosts named {name}.")
    return held[0]
