"""Removal of a neighbour, refused while it has servers or pending builds, unless forced."""

import structlog
from sqlalchemy import Connection

from climate.compute.audit_trail import CELL, Change
from climate.compute.cells import neighbours
from climate.compute.cells.errors import CellInUse, CellNotFound
from climate.compute.cells.messaging import paths, send
from climate.compute.cells.messaging.messages import UP
from climate.compute.cells.servers.sync import FAULT
from climate.compute.context import Compute
from climate.compute.store.cells import builds as cell_builds
from climate.compute.store.cells import cells as rows
from climate.compute.store.cells import servers as cell_servers

log = structlog.get_logger(__name__)

PART = 1000
"""Maximum number of servers in one message."""


def remove(compute: Compute, name: str, *, force: bool = False) -> None:
    """Delete a neighbour and the messages that wait for it.

    With `force`, unreported servers of builds go into ERROR, and reported ones stay listed with their last state;
    deleting them then needs no cell. Raise CellNotFound, and CellInUse without `force`.
    """
    with compute.engine.begin() as conn:
        # The lock blocks builds that are being sent to the cell; they go to another one.
        row = rows.lock(conn, name)
        if row is None:
            raise CellNotFound(f"Cell {name} could not be found.")
        builds = cell_builds.waiting(conn, name)
        servers = cell_servers.count_below(conn, paths.join(compute.cells.name, name))
        if (builds or servers) and not force:
            raise CellInUse(_refusal(name, builds, servers))
        failed = cell_builds.unreported(conn, name)
        _fail(compute, conn, failed, f"The cell {name} was removed before it had reported the server.")
        rows.delete(conn, name)
        compute.tell_change(conn, Change(CELL, name, name, neighbours.fields_of(row.cell), None))
    log.info("cell removed", cell=name, builds=builds, failed=len(failed), servers=servers)


def _refusal(name: str, builds: int, servers: int) -> str:
    what = [f"{builds} {'build waits' if builds == 1 else 'builds wait'} for it"] if builds else []
    what = ([f"it has {servers} {'server' if servers == 1 else 'servers'}"] if servers else []) + what
    return (
        f"Cell {name} cannot be deleted: {' and '.join(what)}. Delete the servers first, "
        "or use force=true, by which servers of these builds go into ERROR."
    )


def _fail(compute: Compute, conn: Connection, ids: list[str], reason: str) -> None:
    for start in range(0, len(ids), PART):
        kwargs = {"instances": ids[start : start + PART], "message": reason}
        send.broadcast(compute, conn, UP, FAULT, kwargs, run_locally=True)
