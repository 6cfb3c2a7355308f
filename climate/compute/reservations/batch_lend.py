"""Pools of nodes lent to several projects in one transaction, which waits for no lock."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import Busy, ComputeError, Conflict, NotFound, StaleToken, Waits
from climate.compute.models.node import FREEPOOL, KEPT
from climate.compute.store.reservations import batch_lend as rows
from climate.compute.store.reservations.batch_lend import NodeRow


@dataclass(frozen=True, slots=True)
class Loan:
    """A pool of a reservation: the names of its nodes, its project, and the token of the caller."""

    pool: str
    project_id: str
    names: tuple[str, ...]
    token: int
    shared_with: tuple[str, ...] = ()
    """Further projects that may boot in the pool."""


def lend(compute: Compute, loans: Sequence[Loan]) -> list[ComputeError | None]:
    """Create the pools and move their nodes, as `pools.lend` does for one; return the error of each, or None.

    The error is Waits if another transaction holds the pool or one of its nodes, or if two loans want the same node.
    Request that loan alone then.
    """
    with compute.engine.begin() as conn:
        result = rows.lock(conn, [loan.pool for loan in loans], [name for loan in loans for name in loan.names])
        wanted = {loan.pool: _nodes_of(loan, result.nodes) for loan in loans}
        refused = _refusals(conn, loans, result.busy, wanted)
        good = [loan for loan in loans if loan.pool not in refused]
        lent = rows.lend(conn, [_row(loan, wanted[loan.pool]) for loan in good])
    refused |= {loan.pool: StaleToken() for loan in good if loan.pool not in lent}
    return [refused.get(loan.pool) for loan in loans]


def _refusals(
    conn: Connection, loans: Sequence[Loan], busy: Collection[str], wanted: Mapping[str, Sequence[NodeRow]]
) -> dict[str, ComputeError]:
    """Return the errors of the loans that cannot be made, by pool."""
    occupied = _occupied(conn, wanted)
    refused: dict[str, ComputeError] = {}
    for loan in loans:
        error = _busy(loan, busy) or _trouble(loan, wanted) or _unusable(loan, wanted[loan.pool], occupied)
        if error is not None:
            refused[loan.pool] = error
    return refused


def _row(loan: Loan, own: Sequence[NodeRow]) -> rows.PoolCreation:
    return rows.PoolCreation(loan.pool, loan.project_id, loan.token, [node.id for node in own], loan.shared_with)


def _occupied(conn: Connection, wanted: Mapping[str, Sequence[NodeRow]]) -> frozenset[int]:
    """Return the nodes with servers among those of the reservation pool."""
    return rows.occupied(conn, [node.id for own in wanted.values() for node in own if node.pool == FREEPOOL])


def _nodes_of(loan: Loan, nodes: Sequence[NodeRow]) -> list[NodeRow]:
    """Return the nodes with the names of a loan, and all others of its pool; of duplicate names the one in a pool."""
    pooled = {node.name for node in nodes if node.pool is not None}
    return [
        node
        for node in nodes
        if (node.name in loan.names or node.pool == loan.pool) and (node.pool is not None or node.name not in pooled)
    ]


def _busy(loan: Loan, busy: Collection[str]) -> ComputeError | None:
    return Waits("Another transaction holds the pool.") if loan.pool in busy else None


def _trouble(loan: Loan, wanted: Mapping[str, Sequence[NodeRow]]) -> ComputeError | None:
    """Return the error of a loan whose pool or nodes cannot be written now, or never by this caller."""
    own = wanted[loan.pool]
    others = {node.id for pool, nodes in wanted.items() if pool != loan.pool for node in nodes}
    if loan.pool in KEPT:
        return Conflict(f"The pool {loan.pool} is not lent.")
    if any(not one.is_locked or one.id in others for one in own):
        return Waits("Another transaction holds a host of the pool.")
    if any(one.fence > loan.token for one in own if one.name in loan.names):
        return StaleToken()
    return None


def _unusable(loan: Loan, own: Sequence[NodeRow], occupied: frozenset[int]) -> ComputeError | None:
    """Return the error of a loan that names nodes which cannot be lent."""
    held = [one for one in own if one.name in loan.names]
    missing = set(loan.names) - {one.name for one in held}
    if missing:
        return NotFound(f"Host {min(missing)} could not be found.")
    astray = [one.name for one in held if one.outside or one.pool not in (FREEPOOL, loan.pool)]
    if astray:
        return Busy(f"Host {astray[0]} is not in the reservation pool.")
    if any(one.id in occupied for one in held if one.pool == FREEPOOL):
        return Busy("Servers of another reservation are still on the hosts.")
    return None
