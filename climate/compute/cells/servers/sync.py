"""Synchronisation of the top cell: a child reports changes of its servers, the top cell stores the last report of each.

Triggers note each change in its own transaction. The `cells` process deletes the notes and writes the reports to the
outbox in one transaction, so none is lost. Several changes of one server between two rounds become one report.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

import structlog
from sqlalchemy import Connection

from climate.compute.cells.builds import top_cell_servers
from climate.compute.cells.servers import report_fields as server_report
from climate.compute.cells.servers.report_fields import Report
from climate.compute.context import Compute
from climate.compute.models.server import Server
from climate.compute.store.cells import changes as cell_changes
from climate.compute.store.cells import servers
from climate.compute.store.cells.changes import Version

log = structlog.get_logger(__name__)

UPDATE, DESTROY, FAULT = "instance_update_at_top", "instance_destroy_at_top", "instance_fault_create_at_top"
"""Methods of the top cell."""

NOTED = ("name", "description", "metadata", "image_id", "key_name", "locked_by", "locked_reason")
"""Fields of the top cell that a command may change."""

BATCH = 1000
"""Maximum number of changes per round."""

REPORTS = 100
"""Maximum number of reports in one message."""

LARGEST_PART = 900_000
"""Maximum size of the reports in one message, in characters."""

Tell = Callable[[Connection, str, Mapping[str, object]], None]
"""Function that sends (method, arguments) to all cells above after the commit."""

Order = Callable[[Connection, str, str], None]
"""Function that orders (path of a cell, id of a server) to delete that server after the commit."""


def follow(compute: Compute, *, wanted: bool) -> None:
    """Enable or disable change notes of servers in this cell.

    Creating the triggers waits for transactions that write servers; then all servers are noted.
    """
    with compute.engine.begin() as conn:
        if cell_changes.is_tracked(conn) == wanted:
            return
        if wanted:
            cell_changes.track(conn)
        else:
            cell_changes.untrack(conn)
    log.info("changes of servers are reported to the top cell" if wanted else "changes of servers are not reported")


def report_changes(compute: Compute, tell: Tell, most: int = BATCH) -> int:
    """Report servers with noted changes; return their number."""
    with compute.engine.begin() as conn:
        changed, versions = cell_changes.take(conn, most)
        _report(compute, conn, tell, changed, versions)
    return len(changed)


def report(compute: Compute, conn: Connection, tell: Tell, ids: Mapping[str, datetime]) -> None:
    """Report these servers (id -> time of its change) in their current state, each with a new version.

    Servers that are not here are reported as deleted.
    """
    if ids:
        _report(compute, conn, tell, ids, cell_changes.next_versions(conn, list(ids)))


def _report(
    compute: Compute, conn: Connection, tell: Tell, ids: Mapping[str, datetime], versions: Mapping[str, Version]
) -> None:
    if not ids:
        return
    there, unreadable = cell_changes.read(conn, list(ids))
    zone = compute.rules.options.default_zone
    reports = [
        server_report.written(server, zone, {**versions[server.id], "changed_at": ids[server.id]}) for server in there
    ]
    for part in _parts(reports):
        tell(conn, UPDATE, {"instances": part})
    gone = sorted(set(ids) - {server.id for server in there} - unreadable)
    if gone:
        cell_changes.gone(conn, gone, compute.now(conn))
        tell(conn, DESTROY, {"instances": gone})


def _parts(reports: Sequence[Report]) -> Iterator[list[Report]]:
    """Yield the reports in parts that fit into a message; a report that is too large loses its metadata."""
    part: list[Report] = []
    room = LARGEST_PART
    for one in reports:
        size = len(json.dumps(one))
        if size > LARGEST_PART:
            log.warning("server reported without its metadata: too large", server=one["id"], size=size)
            one, size = {**one, "metadata": {}}, 0
        if part and (size > room or len(part) == REPORTS):
            yield part
            part, room = [], LARGEST_PART
        part.append(one)
        room -= size
    if part:
        yield part


def update_at_top(compute: Compute, cell: str, given: object, order: Order) -> set[str]:
    """Store the reports of a cell as `store` does; return the ids of changed servers."""
    if not (reports := usable(cell, given)):
        return set()
    with compute.engine.begin() as conn:
        return store(conn, cell, reports, order, compute.now(conn))


def usable(cell: str, given: object) -> list[Report]:
    """Return the valid reports of a cell; log the others."""
    reports, refused = server_report.read(given)
    for reason in refused:
        log.warning("report of a cell refused", cell=cell, reason=reason[:200])
    return reports


def store(conn: Connection, cell: str, reports: Sequence[Report], order: Order, now: datetime) -> set[str]:
    """Store valid reports of a cell; return the ids of changed servers.

    Reports of servers of another cell are logged and skipped. A cell that has a server which was deleted here before
    its first report is ordered to delete it.
    """
    stored = servers.report(conn, cell, reports, now)
    _process_new(conn, cell, [report["id"] for report in reports if report["id"] not in stored], order)
    return stored


def _process_new(conn: Connection, cell: str, left: Sequence[str], order: Order) -> None:
    """Handle reported servers that were not stored; outdated reports are ignored."""
    if not left:
        return
    unclaimed = []
    for row in servers.not_stored(conn, cell, left):
        if row["unclaimed"]:
            unclaimed.append(row["id"])
        elif not row["deleted"]:
            log.warning("cell reported the server of another cell", cell=cell, server=row["id"], of=row["cell"])
    for server_id in unclaimed:
        order(conn, cell, server_id)
    servers.claimed(conn, unclaimed)


def noted(server: Server, changes: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Return field -> values before and after, of the changes that the top cell makes for a command."""
    return {key: {"from": getattr(server, key), "to": value} for key, value in changes.items()}


def take_back(compute: Compute, cell: str, server_id: str, given: object) -> bool:
    """Revert the fields of `noted`; return whether any was changed.

    A field that was changed again since is kept. Only the cell of the server may order this.
    """
    with compute.engine.begin() as conn:
        server = servers.get(conn, server_id, lock=True)
        if server is None or not isinstance(given, dict):
            return False
        if server.service_host != cell:
            log.warning("cell refused a command of another cell", cell=cell, server=server_id, of=server.service_host)
            return False
        before = {key: change["from"] for key, change in given.items() if _is_to_be_taken_back(server, key, change)}
        if before:
            servers.change(conn, server_id, before, compute.now(conn))
            log.info("refused command reverted", server=server_id, fields=sorted(before))
        return bool(before)


def _is_to_be_taken_back(server: Server, key: str, change: object) -> bool:
    if key not in NOTED or not isinstance(change, dict) or not {"from", "to"} <= set(change):
        return False
    return bool(getattr(server, key) == change["to"] and server_report.CHECKS[key](change["from"]))


def destroy_at_top(compute: Compute, cell: str, given: object) -> set[str]:
    """Store tombstones of servers that a cell reports as deleted; return the ids of changed ones."""
    ids = server_report.read_ids(given)
    with compute.engine.begin() as conn:
        return servers.destroy(conn, cell, ids, compute.now(conn)) if ids else set()


def fault_at_top(compute: Compute, given: object, message: object) -> set[str]:
    """Put unreported servers into ERROR; return the ids of changed ones."""
    ids = server_report.read_ids(given)
    with compute.engine.begin() as conn:
        return top_cell_servers.failed(compute, conn, ids, str(message)[: server_report.LONGEST_TEXT])
