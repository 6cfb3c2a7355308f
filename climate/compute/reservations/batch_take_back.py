"""Pools of nodes taken back from several reservations in one transaction, which waits for no lock."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import ComputeError, Conflict, StaleToken, Waits
from climate.compute.models.node import FREEPOOL, KEPT
from climate.compute.store.reservations import batch_lend
from climate.compute.store.reservations import batch_take_back as rows
from climate.compute.store.reservations.batch_lend import NodeRow


@dataclass(frozen=True, slots=True)
class Return:
    """A pool of a reservation: the names of its nodes, the token of the caller, and the pool to which they go."""

    pool: str
    names: tuple[str, ...]
    token: int
    to: str | None = FREEPOOL


def take_back(compute: Compute, returns: Sequence[Return]) -> list[ComputeError | None]:
    """Move the nodes and delete the pools, as `pools.take_back` does for one; return the error of each, or None.

    The error is Waits if a pool does not exist or has servers, or if two returns want the same node. It is also Waits
    if another transaction holds the pool or one of its nodes. Request that return alone then.
    """
    with compute.engine.begin() as conn:
        kept = rows.lock_unlocked(conn, {one.to for one in returns if one.to is not None})
        names = [name for one in returns for name in one.names]
        fences, nodes = rows.lock(conn, [one.pool for one in returns], names)
        wanted = {one.pool: _nodes_of(one, nodes) for one in returns}
        occupied = _occupied_nodes(conn, wanted)
        troubles = [_trouble(r, wanted, fences, kept) or _occupied(wanted[r.pool], occupied) for r in returns]
        good = [one for one, trouble in zip(returns, troubles, strict=True) if trouble is None]
        rows.take_back(conn, [rows.PoolDeletion(r.pool, r.to, r.token, [n.id for n in wanted[r.pool]]) for r in good])
    return troubles


def _occupied_nodes(conn: Connection, wanted: Mapping[str, Sequence[NodeRow]]) -> frozenset[int]:
    """Return the nodes with servers among those that are in their pool."""
    return batch_lend.occupied(conn, [node.id for pool, own in wanted.items() for node in own if node.pool == pool])


def _nodes_of(one: Return, nodes: Sequence[NodeRow]) -> list[NodeRow]:
    """Return the nodes of a pool, and those of the reservation pool with the names of a return."""
    return [n for n in nodes if n.pool == one.pool or (n.pool == FREEPOOL and n.name in one.names)]


def _trouble(
    one: Return, wanted: Mapping[str, Sequence[NodeRow]], fences: Mapping[str, int], kept: frozenset[str]
) -> ComputeError | None:
    own = wanted[one.pool]
    others = {node.id for pool, nodes in wanted.items() if pool != one.pool for node in nodes}
    if one.pool in KEPT:
        return Conflict(f"The pool {one.pool} is not lent.")
    if one.pool not in fences:
        return Waits("Another transaction holds the pool, or there is none.")
    if one.to is not None and one.to not in kept:
        return Waits(f"The pool {one.to} does not exist yet, or another transaction holds it.")
    if any(not node.is_locked or node.id in others for node in own):
        return Waits("Another transaction holds a host of the pool.")
    if max([fences[one.pool], *(node.fence for node in own)]) > one.token:
        return StaleToken()
    return None


def _occupied(own: Sequence[NodeRow], occupied: frozenset[int]) -> ComputeError | None:
    return Waits("Servers are on the hosts of the pool.") if any(node.id in occupied for node in own) else None
