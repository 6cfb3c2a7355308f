"""Removal of a neighbour that has servers, or that builds wait for."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from climate.compute.cells import neighbours, removal
from climate.compute.cells.builds import start
from climate.compute.cells.errors import CellInUse, CellNotFound
from climate.compute.cells.models import Broker, Cell
from climate.compute.cells.servers import proxy
from climate.compute.cells.state import state
from climate.compute.models.server import DELETE
from climate.compute.store.cells import changes
from tests.compute.cells.server_tree import LEAF_PATH, ServerTree, server_tree, who
from tests.compute.cells.tree import CellDatabases, secret_of
from tests.compute.cloud_factory import request


@pytest.fixture
def cells(cell_databases: CellDatabases, tmp_path: Any) -> Iterator[ServerTree]:
    with server_tree(cell_databases, tmp_path, scheduler_retries=0) as found:
        found.clear()
        for name in ("leaf", "right"):
            state.report(found.tree[name])
            found.settle()
        yield found


def boot(cells: ServerTree, count: int = 1) -> tuple[str, ...]:
    """A build at the top, for which nothing has moved yet."""
    started = start.start(cells.top, request(count=count, hints={}))
    return started.server_ids


def join_again(cells: ServerTree, parent: str, child: str) -> None:
    link = Broker(secret=secret_of(parent, child))
    neighbours.create(cells.tree[parent], Cell(child, broker=link))


def report_again(cells: ServerTree, server_id: str) -> None:
    """Have the leaf report a server, as it does now and then of itself."""
    with cells.leaf.compute.engine.begin() as conn:
        changes.note(conn, [server_id])
    cells.settle()


def status(cells: ServerTree, server_id: str) -> tuple[str, str]:
    found = cells.seen(server_id)
    return found.status, (found.fault or {}).get("message", "")


def test_cell_that_builds_wait_for_is_not_removed(cells: ServerTree) -> None:
    cells.tree.transport.away.add("right")
    ids = [*boot(cells, 2), *boot(cells)]
    cells.tree.settle()
    with pytest.raises(CellInUse, match=r"Cell right cannot be deleted: 2 builds wait for it\."):
        removal.remove(cells.top, "right")
    assert [status(cells, server_id) for server_id in ids] == 3 * [("BUILD", "")]
    cells.tree.transport.away.clear()
    with cells.top.engine.begin() as conn:
        conn.execute(text("UPDATE compute_cells SET retry_at = NULL"))
    cells.settle()
    assert {status(cells, server_id) for server_id in ids} == {("ACTIVE", "")}


def test_servers_of_waiting_builds_fail_when_their_cell_is_removed_by_force(cells: ServerTree) -> None:
    cells.tree.transport.away.add("right")
    ids = boot(cells, 2)
    cells.tree.settle()
    removal.remove(cells.top, "right", force=True)
    cells.tree.settle()
    said = ("ERROR", "The cell right was removed before it had reported the server.")
    assert [status(cells, server_id) for server_id in ids] == [said, said]
    for server_id in ids:
        proxy.request_task(cells.top, who(cells.seen(server_id)), DELETE)
        assert cells.at_top(server_id) is None


def test_build_that_arrived_and_was_not_reported_counts(cells: ServerTree) -> None:
    (server_id,) = boot(cells)
    cells.tree.settle()  # the messages move, and no server is reported
    assert cells.leaf.count("compute_servers") == 1
    assert cells.tree.places["top"].count("compute_cell_outbox", "kind = 'targeted'") == 0
    with pytest.raises(CellInUse, match="1 build waits for it"):
        removal.remove(cells.top, "right")
    removal.remove(cells.top, "right", force=True)
    cells.settle()
    assert status(cells, server_id)[0] == "ERROR"
    join_again(cells, "top", "right")
    with cells.top.engine.begin() as conn:
        conn.execute(text("UPDATE compute_cells SET retry_at = NULL"))
    cells.settle()
    report_again(cells, server_id)
    assert status(cells, server_id) == ("ACTIVE", ""), "a cell that comes back tells what it has"


def test_middle_cell_tells_the_top_of_builds_that_it_gives_up(cells: ServerTree) -> None:
    (server_id,) = _through_right(cells)
    with pytest.raises(CellInUse, match="1 build waits for it"):
        removal.remove(cells.tree["right"], "leaf")
    removal.remove(cells.tree["right"], "leaf", force=True)
    cells.settle()
    assert status(cells, server_id) == ("ERROR", "The cell leaf was removed before it had reported the server.")


def _through_right(cells: ServerTree) -> tuple[str, ...]:
    """A build that waits at the middle cell for the leaf."""
    cells.tree.transport.away.add("leaf")
    hinted = request(hints={"target_cell": LEAF_PATH}, admin=True)
    ids = start.start(cells.top, hinted).server_ids
    cells.tree.settle()
    return ids


def test_cell_with_servers_is_not_removed(cells: ServerTree) -> None:
    server = cells.boot()
    with pytest.raises(CellInUse, match=r"Cell right cannot be deleted: it has 1 server\."):
        removal.remove(cells.top, "right")
    removal.remove(cells.top, "right", force=True)
    assert cells.seen(server.id).status == "ACTIVE"
    proxy.request_task(cells.top, who(server), DELETE)
    assert cells.at_top(server.id) is None
    join_again(cells, "top", "right")
    cells.settle()
    report_again(cells, server.id)
    assert cells.leaf.count("compute_servers") == 0, "a cell that comes back is told of the deletion"


def test_build_whose_servers_were_deleted_holds_no_cell(cells: ServerTree) -> None:
    cells.tree.transport.away.add("right")
    (server_id,) = boot(cells)
    cells.tree.settle()
    proxy.request_task(cells.top, who(cells.seen(server_id)), DELETE)
    removal.remove(cells.top, "right")
    with pytest.raises(CellNotFound):
        removal.remove(cells.top, "right")
