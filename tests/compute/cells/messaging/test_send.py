"""Cast, broadcast and call through four cells with databases of their own."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event, text

from climate.compute.cells.errors import (
    BadMessage,
    CellError,
    CellRoutingInconsistency,
    CellServiceAPIMethodNotFound,
    CellTimeout,
    Postpone,
)
from climate.compute.cells.messaging import outbox, send
from climate.compute.cells.messaging.dispatch import CellContext, Handlers
from climate.compute.cells.messaging.messages import DOWN, UP, Message
from climate.compute.errors import Conflict
from tests.compute.cells.tree import Tree

LEAF = "top!right!leaf"


class Seen:
    """Handlers that remember where they ran and with what."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, Any]]] = []

    def note(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> Any:
        self.calls.append((message.routing_path, kwargs))
        return {"in": context.name}

    def refuse(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> Any:
        raise Conflict("not now")

    def later(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> Any:
        if context.attempt < 3:
            raise Postpone(0)
        return self.note(context, message, {"attempt": context.attempt})

    def store(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> Any:
        with context.compute.engine.begin() as conn:
            conn.execute(text("SELECT CAST(:value AS int)"), kwargs)

    def answer_badly(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> Any:
        return {1, 2}

    def handlers(self) -> Handlers:
        known = {
            "note": self.note,
            "refuse": self.refuse,
            "later": self.later,
            "store": self.store,
            "answer_badly": self.answer_badly,
        }
        return Handlers(known, known, frozenset({"note"}))


@pytest.fixture
def seen(cells: Tree) -> Seen:
    found = Seen()
    cells.handlers = found.handlers()
    return found


def cast(cells: Tree, target: str, method: str = "note", **kwargs: Any) -> None:
    with cells["top"].engine.begin() as conn:
        send.cast(cells["top"], conn, target, method, kwargs)


def left_over(cells: Tree) -> list[int]:
    """Rows that still wait, in all cells."""
    waiting = ("compute_cell_outbox", "compute_cell_responses", "compute_cell_inbox WHERE due_at IS NOT NULL")
    return [
        place.count(table) if " " not in table else _count(place, table)
        for table in waiting
        for place in cells.places.values()
    ]


def _count(place: Any, table: str) -> int:
    with place.compute.engine.connect() as conn:
        return int(conn.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def test_cast_runs_in_the_target_and_nothing_is_left(cells: Tree, seen: Seen) -> None:
    cast(cells, LEAF, word="hello")
    cells.settle()
    assert seen.calls == [(LEAF, {"word": "hello"})]
    assert not any(left_over(cells))


def test_cast_to_this_cell_itself(cells: Tree, seen: Seen) -> None:
    cast(cells, "top")
    cells.settle()
    assert seen.calls == [("top", {})]


def test_cast_is_not_sent_without_a_commit(cells: Tree, seen: Seen) -> None:
    with cells["top"].engine.connect() as conn:
        send.cast(cells["top"], conn, LEAF, "note", {})
        conn.rollback()
    cells.settle()
    assert seen.calls == []


def test_cast_to_an_unknown_neighbour_is_refused(cells: Tree, seen: Seen) -> None:
    with pytest.raises(CellRoutingInconsistency, match="Unknown child nowhere"):
        cast(cells, "nowhere")


def test_cast_of_arguments_that_are_not_json_is_refused(cells: Tree, seen: Seen) -> None:
    with pytest.raises(BadMessage, match="not JSON"):
        cast(cells, LEAF, value={1})


def test_broadcast_down_and_up(cells: Tree, seen: Seen) -> None:
    with cells["top"].engine.begin() as conn:
        send.broadcast(cells["top"], conn, DOWN, "note", {}, run_locally=True)
    cells.settle()
    assert {path for path, _ in seen.calls} == {"top", "top!left", "top!right", LEAF}
    seen.calls.clear()
    with cells["leaf"].engine.begin() as conn:
        send.broadcast(cells["leaf"], conn, UP, "note", {})
    cells.settle()
    assert [path for path, _ in seen.calls] == ["leaf!right", "leaf!right!top"]


def test_call_gives_the_value(cells: Tree, seen: Seen) -> None:
    with cells.running():
        assert send.call(cells["top"], LEAF, "note", {}, 30) == {"in": "leaf"}
        assert send.call(cells["top"], "top", "note", {}, 30) == {"in": "top"}
    assert not any(left_over(cells))


def test_call_raises_what_the_method_raises(cells: Tree, seen: Seen) -> None:
    with cells.running():
        with pytest.raises(Conflict, match="not now"):
            send.call(cells["top"], LEAF, "refuse", {}, 30)
        with pytest.raises(CellServiceAPIMethodNotFound):
            send.call(cells["top"], LEAF, "missing", {}, 30)
        with pytest.raises(CellRoutingInconsistency, match="Unknown child nowhere"):
            send.call(cells["top"], "top!right!nowhere", "note", {}, 30)
        with pytest.raises(CellError, match="not JSON"):
            send.call(cells["top"], LEAF, "answer_badly", {}, 30)


def test_ce_10_call_times_out_and_the_late_response_is_dropped(cells: Tree, seen: Seen) -> None:
    uuid = send.start_call(cells["top"], LEAF, "note", {}, 60)
    with pytest.raises(CellTimeout, match="Timeout waiting for response from cell"):
        send.wait(cells["top"], uuid, 0.01)
    cells.settle()
    assert len(seen.calls) == 1
    assert not any(left_over(cells))


def test_call_without_cells_is_refused(cells: Tree, seen: Seen) -> None:
    off = replace(cells["top"], cells=replace(cells["top"].cells, enabled=False))
    with pytest.raises(CellError, match="CLIMATE_CELLS_ENABLE"):
        send.call(off, LEAF, "note", {}, 1)
    with off.engine.begin() as conn:
        send.cast(off, conn, LEAF, "note", {})
        send.broadcast(off, conn, DOWN, "note", {})
    assert not any(left_over(cells))


def test_c1_messages_cost_no_statement_without_cells(cells: Tree, seen: Seen) -> None:
    off = replace(cells["top"], cells=replace(cells["top"].cells, enabled=False))
    statements: list[str] = []
    with off.engine.begin() as conn:
        event.listen(conn, "before_cursor_execute", lambda *call: statements.append(call[2]))
        send.cast(off, conn, LEAF, "note", {})
        send.broadcast(off, conn, UP, "note", {}, run_locally=True)
    assert (statements, seen.calls) == ([], [])


def test_postponed_message_is_handed_over_again(cells: Tree, seen: Seen) -> None:
    cast(cells, LEAF, "later")
    cells.settle()
    assert seen.calls == [(LEAF, {"attempt": 3})]


def test_message_that_the_database_refuses_waits(cells: Tree, seen: Seen) -> None:
    cast(cells, LEAF, "store", value="no number")
    cells.settle()
    with cells["leaf"].engine.connect() as conn:
        waiting = conn.execute(text("SELECT attempts, due_at > now() AS later FROM compute_cell_inbox")).one()
    assert waiting == (1, True)


def test_broker_that_is_away_loses_nothing(cells: Tree, seen: Seen) -> None:
    cells.transport.away.add("right")
    for number in range(250):
        cast(cells, LEAF, number=number)
    cells.settle()
    assert seen.calls == []
    with cells["top"].engine.begin() as conn:
        conn.execute(text("UPDATE compute_cells SET retry_at = now()"))
    cells.transport.away.clear()
    cells.settle()
    assert sorted(kwargs["number"] for _, kwargs in seen.calls) == list(range(250))
    assert not any(left_over(cells))


def test_broker_that_loses_its_content_loses_nothing(cells: Tree, seen: Seen) -> None:
    cast(cells, LEAF)
    outbox.send(cells["top"], cells.transport, "right")
    cells.transport.queues.clear()
    cells.settle()
    assert seen.calls == []
    with cells["top"].engine.begin() as conn:
        conn.execute(text("UPDATE compute_cell_outbox SET due_at = now()"))
    cells.settle()
    assert len(seen.calls) == 1
    assert not any(left_over(cells))


def test_two_processes_of_a_cell_send_each_message_once(cells: Tree, seen: Seen) -> None:
    for number in range(200):
        cast(cells, "top!left", number=number)
    threads = [threading.Thread(target=outbox.send, args=(cells["top"], cells.transport, "left")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cells.settle()
    assert sorted(kwargs["number"] for _, kwargs in seen.calls) == list(range(200))
