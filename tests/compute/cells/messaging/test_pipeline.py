"""Messages that the process which stores them hands on itself: nothing is lost or doubled when it dies."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.compute.cells.messaging import inbox, outbox
from climate.compute.cells.messaging import send as messaging
from climate.compute.cells.messaging.dispatch import CellContext, Handlers
from climate.compute.cells.messaging.messages import TARGETED, UP, Message
from climate.compute.cells.messaging.transport import Envelope
from climate.compute.store.cells import direct_sends
from climate.compute.store.cells.direct_sends import Outgoing
from climate.compute.store.cells.messages import MOST_UNCONFIRMED, ReceivedMessage
from tests.compute.cells.hands import Hands, statements_of
from tests.compute.cells.tree import Tree

LEAF = "top!right!leaf"


class Seen:
    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def note(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> None:
        self.calls.append((message.routing_path, kwargs["number"]))


@pytest.fixture
def seen(cells: Tree) -> Seen:
    found = Seen()
    known = {"note": found.note, "top_only": found.note}
    cells.handlers = Handlers(known, known, frozenset({"note", "top_only"}), frozenset({"top_only"}))
    return found


@pytest.fixture
def hands(cells: Tree, seen: Seen) -> Hands:
    """The pipeline of the cell in the middle."""
    return Hands(cells["right"], cells.handlers)


def arrive(cells: Tree, target: str, count: int = 1) -> list[Envelope]:
    """Cast messages from the top; the envelopes that wait in the broker of the cell in the middle."""
    with cells["top"].engine.begin() as conn:
        for number in range(count):
            messaging.cast(cells["top"], conn, target, "note", {"number": number})
    outbox.send(cells["top"], cells.transport, "right")
    return cells.transport.receive("right")


def receive(cells: Tree, hands: Hands, envelopes: Sequence[Envelope]) -> int:
    return inbox.receive(cells["right"], cells.transport, envelopes, hands)


def right(cells: Tree, statement: str) -> Any:
    with cells["right"].engine.begin() as conn:
        return conn.execute(text(statement)).all() if statement.startswith("SELECT") else conn.execute(text(statement))


def test_message_for_another_cell_is_sent_on_when_it_arrives(cells: Tree, seen: Seen, hands: Hands) -> None:
    assert receive(cells, hands, arrive(cells, LEAF)) == 1
    assert [(cell.name, len(messages)) for cell, messages, _ in hands.sent] == [("leaf", 1)]
    assert hands.tasks == []
    assert right(cells, "SELECT due_at IS NULL, body FROM compute_cell_inbox") == [(True, "")]
    assert right(cells, "SELECT tries, due_at > now() FROM compute_cell_outbox") == [(1, True)]
    hands.publish(cells)
    cells.settle()
    assert seen.calls == [(LEAF, 0)]


def test_message_sent_on_and_lost_in_a_crash_is_processed_once(cells: Tree, seen: Seen, hands: Hands) -> None:
    """The database forgets what had not reached its disk; the sender, which has no confirmation, sends again."""
    envelopes = arrive(cells, LEAF)
    receive(cells, hands, envelopes)
    hands.publish(cells)
    right(cells, "DELETE FROM compute_cell_inbox")
    right(cells, "DELETE FROM compute_cell_outbox")
    assert receive(cells, hands, envelopes) == 1
    hands.publish(cells)
    assert len(cells.transport.queues["leaf"]) == 2
    cells.settle()
    assert seen.calls == [(LEAF, 0)]


def test_message_that_comes_twice_is_sent_on_once(cells: Tree, hands: Hands) -> None:
    envelopes = arrive(cells, LEAF)
    assert receive(cells, hands, [*envelopes, *envelopes]) == 1
    assert receive(cells, hands, envelopes) == 0
    assert sum(len(messages) for _, messages, _ in hands.sent) == 1
    assert right(cells, "SELECT count(*) FROM compute_cell_outbox") == [(1,)]


def test_message_whose_process_dies_is_processed_by_another_one(cells: Tree, seen: Seen, hands: Hands) -> None:
    receive(cells, hands, arrive(cells, "right"))
    assert len(hands.tasks) == 1
    cells.settle()
    assert seen.calls == []
    right(cells, "UPDATE compute_cell_inbox SET due_at = now()")
    cells.settle()
    assert seen.calls == [("top!right", 0)]


def test_message_is_processed_without_another_look(cells: Tree, seen: Seen, hands: Hands) -> None:
    receive(cells, hands, arrive(cells, "right"))
    inbox.finish(cells["right"], cells.handlers, hands.tasks[0], hands)
    assert seen.calls == [("top!right", 0)]
    assert right(cells, "SELECT due_at IS NULL, body FROM compute_cell_inbox") == [(True, "")]


def test_messages_beyond_the_room_wait_in_the_database(cells: Tree, seen: Seen, hands: Hands) -> None:
    receive(cells, hands, arrive(cells, "right", count=5))
    assert len(hands.tasks) == 1
    cells.settle()
    assert sorted(number for _, number in seen.calls) == [1, 2, 3, 4]


def test_nothing_is_handed_over_for_a_neighbour_that_is_away(cells: Tree, seen: Seen, hands: Hands) -> None:
    right(cells, "UPDATE compute_cells SET failures = 1 WHERE name = 'leaf'")
    receive(cells, hands, arrive(cells, LEAF))
    assert hands.sent == []
    cells.settle()
    assert seen.calls == [(LEAF, 0)]


def test_nothing_is_handed_over_for_a_neighbour_with_many_to_confirm(cells: Tree, hands: Hands) -> None:
    right(
        cells,
        "INSERT INTO compute_cell_outbox (cell, kind, body, tries, due_at) "
        f"SELECT 'leaf', 'targeted', '', 1, now() + interval '1 hour' FROM generate_series(1, {MOST_UNCONFIRMED})",
    )
    receive(cells, hands, arrive(cells, LEAF))
    assert hands.sent == []
    # The process's clock may be ahead for as long as the database took to answer; a sent message is due in 30 s.
    due = "tries = 0 AND due_at < now() + interval '20 s'"
    assert right(cells, f"SELECT count(*) FROM compute_cell_outbox WHERE {due}") == [(1,)]


def test_message_that_cannot_be_published_waits(cells: Tree, seen: Seen, hands: Hands) -> None:
    receive(cells, hands, arrive(cells, LEAF))
    cells.transport.away.add("leaf")
    hands.publish(cells)
    assert right(cells, "SELECT failures, retry_at > now() FROM compute_cells WHERE name = 'leaf'") == [(1, True)]
    assert right(cells, "SELECT tries FROM compute_cell_outbox") == [(0,)]
    cells.transport.away.clear()
    right(cells, "UPDATE compute_cells SET retry_at = now()")
    cells.settle()
    assert seen.calls == [(LEAF, 0)]


def test_messages_are_confirmed_after_they_are_on_the_disk(cells: Tree, hands: Hands) -> None:
    receive(cells, hands, arrive(cells, LEAF, count=3))
    assert [(name, len(deliveries)) for name, deliveries in hands.confirmed] == [("top", 3)]
    assert cells.transport.receive("top") == []


def test_flush_waits_for_what_was_committed_before(cells: Tree) -> None:
    right(cells, "UPDATE compute_cells SET weight_offset = 1")
    with cells["right"].engine.begin() as conn:
        conn.execute(text("SET LOCAL synchronous_commit TO on"))
        written = conn.execute(text("SELECT pg_current_wal_insert_lsn()::text")).scalar_one()
        direct_sends.flush(conn)
    assert right(cells, f"SELECT pg_current_wal_flush_lsn() >= '{written}'::pg_lsn") == [(True,)]


def test_broadcast_for_the_top_is_only_sent_on(cells: Tree, seen: Seen, hands: Hands) -> None:
    with cells["leaf"].engine.begin() as conn:
        messaging.broadcast(cells["leaf"], conn, UP, "top_only", {"number": 7})
    outbox.send(cells["leaf"], cells.transport, "right")
    receive(cells, hands, cells.transport.receive("right"))
    assert hands.tasks == []
    hands.publish(cells)
    cells.settle()
    assert seen.calls == [("leaf!right!top", 7)]


def test_message_that_is_sent_on_costs_one_statement(cells: Tree, hands: Hands) -> None:
    envelopes = arrive(cells, LEAF)
    with statements_of(hands) as statements:
        assert receive(cells, hands, envelopes) == 1
    assert len(statements) == 1, "\n".join(statements)
    assert [cell.name for cell, _, _ in hands.sent] == ["leaf"]


def test_response_costs_one_statement_where_it_is_awaited(cells: Tree, hands: Hands) -> None:
    asked = messaging.start_call(cells["right"], "right!leaf", "note", {"number": 1}, 60)
    outbox.send(cells["right"], cells.transport, "leaf")
    inbox.receive(cells["leaf"], cells.transport, cells.transport.receive("leaf"))
    inbox.work(cells["leaf"], cells.handlers, TARGETED)
    outbox.send(cells["leaf"], cells.transport, "right")
    confirmation, response = cells.transport.receive("right")
    receive(cells, hands, [confirmation])
    with statements_of(hands) as statements:
        assert receive(cells, hands, [response, response]) == 1
    assert len(statements) == 1, "\n".join(statements)
    assert messaging.wait(cells["right"], asked, 60) is None


@pytest.mark.parametrize("body", ['"', "\\", '{"a": "b\\"c", "d": [1, null]}', "a,b}{", "NULL", "", " ü\n\t'x'"])
def test_text_of_a_message_is_stored_as_it_is(cells: Tree, body: str) -> None:
    arrived = ReceivedMessage("top", str(uuid4()), TARGETED, body, attempts=1, waits=120.0)
    unread = ReceivedMessage("top", str(uuid4()), TARGETED, body, waits=None)
    because = ("top", arrived.delivery)
    going = [Outgoing("leaf", TARGETED, body, str(uuid4()), because, taken) for taken in (True, False)]
    with cells["right"].engine.begin() as conn:
        kept = direct_sends.store(conn, [arrived, unread], going, cells["right"].now(conn))
        rows = conn.execute(text("SELECT body, attempts, due_at IS NULL FROM compute_cell_inbox ORDER BY id")).all()
        sent = conn.execute(text("SELECT body FROM compute_cell_outbox ORDER BY id")).scalars().all()
    assert kept.new == {because, ("top", unread.delivery)}
    assert [message.body for message in kept.mine["leaf"]] == [body]
    assert [tuple(row) for row in rows] == [(body, 1, False), ("", 0, True)]
    assert list(sent) == [body, body]
