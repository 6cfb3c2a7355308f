"""What a method writes, and what this process sends of it: in one transaction, and once."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from structlog.testing import capture_logs

from climate.compute.cells import neighbours
from climate.compute.cells.builds import scheduler, start
from climate.compute.cells.errors import Postpone
from climate.compute.cells.messaging import inbox, outbox, send
from climate.compute.cells.messaging.dispatch import CellContext, Effect, Handlers
from climate.compute.cells.messaging.messages import Message
from climate.compute.cells.models import Cell
from climate.compute.cells.servers import methods
from climate.compute.cells.state import state
from climate.compute.cells.state.link_cache import CellSnapshot
from climate.compute.store.cells import changes
from tests.compute.cells.messaging.test_pipeline import Hands
from tests.compute.cells.server_tree import LEAF, ServerTree, server_tree
from tests.compute.cells.tree import CellDatabases, Tree
from tests.compute.cloud_factory import request


def count(cells: Tree, name: str, what: str) -> int:
    with cells[name].engine.connect() as conn:
        return int(conn.execute(text(f"SELECT count(*) FROM {what}")).scalar_one())


def test_a_message_is_due_at_once_where_the_clock_of_the_process_lags(cells: Tree) -> None:
    top, lag = cells["top"], timedelta(seconds=30)
    calls: list[str] = []
    cells.handlers = Handlers({"note": lambda context, message, kwargs: calls.append(context.name)})
    with top.engine.begin() as conn:
        send.cast(top, conn, "right", "note", {})
        send.cast(top, conn, "top", "note", {})

    class Lagging(Hands):
        def here(self) -> CellSnapshot:
            links, now = super().here()
            return CellSnapshot(links, now - lag)

    hands = Lagging(top, cells.handlers)
    assert outbox.send(top, cells.transport, "right", hands.here()) == 1
    assert inbox.work(top, cells.handlers, "targeted", hands) == 1
    assert calls == ["top"]


class Writing:
    """A method that writes a build, and fails after that as often as it is told."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def __call__(self, context: CellContext, message: Message, kwargs: object) -> Effect:
        def write(conn: Connection, now: datetime) -> Sequence[tuple[Cell, Message]]:
            conn.execute(text("INSERT INTO compute_cell_builds (build_id) VALUES ('r-1')"))
            self.failures -= 1
            if self.failures >= 0:
                raise Postpone(0)
            return ()

        return Effect(write)


@pytest.mark.parametrize("failures", [0, 2])
def test_what_a_method_writes_is_committed_with_the_mark_on_its_message(cells: Tree, failures: int) -> None:
    cells.handlers = Handlers({"write": Writing(failures)})
    with cells["top"].engine.begin() as conn:
        send.cast(cells["top"], conn, "top", "write", {})
    for _ in range(failures):
        assert inbox.work(cells["top"], cells.handlers, "targeted") == 1
        assert count(cells, "top", "compute_cell_builds") == 0
        assert count(cells, "top", "compute_cell_inbox WHERE due_at IS NOT NULL") == 1
    cells.settle()
    assert count(cells, "top", "compute_cell_builds") == 1
    assert count(cells, "top", "compute_cell_inbox WHERE due_at IS NULL") == 1
    same = "compute_cell_builds b JOIN compute_cell_inbox i ON b.xmin = i.xmin"
    assert count(cells, "top", same) == 1, "a process that dies leaves both or neither: one transaction wrote them"


@pytest.fixture
def tree(cell_databases: CellDatabases, tmp_path: Path) -> Iterator[ServerTree]:
    with server_tree(cell_databases, tmp_path, scheduler_retries=0) as found:
        found.clear()
        for name in (LEAF, "right"):
            state.report(found.tree[name])
            found.settle()
        yield found


def only_the_leaf(tree: ServerTree) -> None:
    """Let the leaf be the better cell for a build."""
    neighbours.change(tree.tree["right"], LEAF, {"weight_offset": 1e9}, {})


def test_a_build_leaves_the_api_cell_with_the_request(tree: ServerTree) -> None:
    start.start(tree.top, request())
    assert count(tree.tree, "top", "compute_cell_outbox WHERE kind = 'targeted'") == 1
    assert count(tree.tree, "top", "compute_cell_inbox WHERE due_at IS NOT NULL") == 0
    assert count(tree.tree, "top", "compute_cell_builds WHERE cell = 'right'") == 1


def test_a_build_that_no_child_takes_is_tried_again_by_the_process(tree: ServerTree) -> None:
    started = start.start(tree.top, request(hints={"target_cell": "top!nowhere"}, admin=True))
    assert count(tree.tree, "top", "compute_cell_builds WHERE cell IS NOT NULL") == 0
    tree.settle()
    assert tree.seen(started.server_ids[0]).status == "ERROR"


def test_a_build_is_sent_on_by_the_process_that_chose_its_cell(tree: ServerTree) -> None:
    """It is sent once, even if the message comes again later."""
    only_the_leaf(tree)
    cells = tree.tree
    start.start(tree.top, request())
    outbox.send(tree.top, cells.transport, "right")
    envelopes = cells.transport.receive("right")
    hands = Hands(cells["right"], cells.handlers)
    assert inbox.receive(cells["right"], cells.transport, envelopes, hands) == 1
    inbox.finish(cells["right"], cells.handlers, hands.tasks[0], hands)
    assert [(cell.name, len(sent)) for cell, sent, _ in hands.sent] == [(LEAF, 1)]
    assert count(cells, "right", "compute_cell_outbox WHERE tries = 1 AND due_at > now()") == 1
    assert count(cells, "right", "compute_cell_inbox WHERE due_at IS NOT NULL") == 0
    inbox.finish(cells["right"], cells.handlers, hands.tasks[0], hands)
    assert len(hands.sent) == 1
    hands.publish(cells)
    tree.settle()
    assert count(cells, LEAF, "compute_servers") == 1


def test_a_build_goes_elsewhere_when_its_child_is_deleted_meanwhile(tree: ServerTree) -> None:
    only_the_leaf(tree)
    cells = tree.tree
    started = start.start(tree.top, request())
    outbox.send(tree.top, cells.transport, "right")
    hands = Hands(cells["right"], cells.handlers)
    inbox.receive(cells["right"], cells.transport, cells.transport.receive("right"), hands)
    task = hands.tasks[0]

    class Late(scheduler.CellScheduler):
        """Chooses a cell that is deleted before the build is sent."""

        def _place(self, context: CellContext, build: start.Build) -> Effect | None:
            found = super()._place(context, build)
            with context.compute.engine.begin() as conn:
                conn.execute(text("DELETE FROM compute_cells WHERE name = 'leaf'"))
            return found

    inbox.finish(cells["right"], Late().handlers(), task, hands)
    assert hands.sent == []
    tree.settle()
    assert tree.seen(started.server_ids[0]).service_host == "top!right"


def test_a_report_is_sent_by_the_process_that_wrote_it(tree: ServerTree) -> None:
    cells = tree.tree
    server = tree.leaf.boot_one()
    hands = Hands(cells[LEAF], cells.handlers)
    assert methods.report_changes(cells[LEAF], hands) > 0
    assert [(cell.name, len(sent)) for cell, sent, _ in hands.sent] == [("right", 1)]
    assert count(cells, LEAF, "compute_cell_outbox WHERE tries = 1 AND due_at > now()") == 1
    hands.publish(cells)
    tree.settle()
    assert tree.seen(server.id).service_host == "top!right!leaf"


def test_a_report_waits_for_a_parent_that_is_away(tree: ServerTree) -> None:
    cells = tree.tree
    server = tree.leaf.boot_one()
    with cells[LEAF].engine.begin() as conn:
        conn.execute(text("UPDATE compute_cells SET failures = 1"))
    hands = Hands(cells[LEAF], cells.handlers)
    methods.report_changes(cells[LEAF], hands)
    assert hands.sent == []
    tree.settle()
    assert tree.seen(server.id).service_host == "top!right!leaf"


def test_changes_are_taken_with_their_versions(tree: ServerTree) -> None:
    server = tree.leaf.boot_one()
    compute = tree.leaf.compute
    with compute.engine.begin() as conn:
        changes.note(conn, [server.id, server.id])
        changed, versions = changes.take(conn, 1000)
        assert set(changed) == set(versions) == {server.id}
        again = changes.next_versions(conn, [server.id])
        assert again[server.id]["version"] > versions[server.id]["version"]
        assert changes.take(conn, 1000) == ({}, {})


def test_a_message_that_cannot_be_read_keeps_no_other_from_being_processed(cells: Tree) -> None:
    calls: list[str] = []
    cells.handlers = Handlers({"note": lambda context, message, kwargs: calls.append(context.name)})
    with cells["top"].engine.begin() as conn:
        for _ in range(2):
            send.cast(cells["top"], conn, "top", "note", {})
        conn.execute(
            text("UPDATE compute_cell_inbox SET body = '{' WHERE id = (SELECT min(id) FROM compute_cell_inbox)")
        )
    with capture_logs() as logged:
        inbox.work(cells["top"], cells.handlers, "targeted")
    assert calls == ["top"]
    assert [one["event"] for one in logged if one["log_level"] == "error"] == ["messages of cells: failed"]
