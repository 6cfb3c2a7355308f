"""Calls: the asking cell repeats its question until it is answered, so that cells on the way store nothing of it."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text, update

from climate.compute.cells.errors import CellRoutingInconsistency
from climate.compute.cells.messaging import inbox, messages, outbox, send
from climate.compute.cells.messaging.dispatch import CellContext, Handlers
from climate.compute.cells.messaging.messages import TYPES, Message
from climate.compute.cells.messaging.transport import Envelope
from climate.compute.store.cells.messages import ASK_AGAIN, MOST_UNCONFIRMED
from climate.compute.store.tables import cells as tables
from tests.compute.cells.hands import Hands, statements_of
from tests.compute.cells.tree import Tree

LEAF = "top!right!leaf"


class Calls:
    def __init__(self) -> None:
        self.read: list[int] = []
        self.done: list[int] = []

    def ask(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> int:
        self.read.append(kwargs["number"])
        return int(kwargs["number"])

    def act(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> int:
        self.done.append(kwargs["number"])
        return int(kwargs["number"])


@pytest.fixture
def calls(cells: Tree) -> Calls:
    found = Calls()
    cells.handlers = Handlers({"ask": found.ask, "act": found.act}, queries={"ask": lambda kwargs: True})
    return found


@pytest.fixture
def hands(cells: Tree, calls: Calls) -> dict[str, Hands]:
    """The pipeline of each cell."""
    return {name: Hands(cells[name], cells.handlers) for name in cells.places}


def ask(cells: Tree, method: str, target: str = LEAF, number: int = 1) -> str:
    return send.start_call(cells["top"], target, method, {"number": number}, 60)


def sent(cells: Tree, name: str, to: str) -> list[Envelope]:
    """Return the envelopes that a cell sends from its outbox to a neighbour."""
    outbox.send(cells[name], cells.transport, to)
    return cells.transport.receive(to)


def receive(cells: Tree, hands: Mapping[str, Hands], name: str, envelopes: list[Envelope] | None = None) -> int:
    """Receive in a cell, and send what results."""
    found = cells.transport.receive(name) if envelopes is None else envelopes
    new = inbox.receive(cells[name], cells.transport, found, hands[name])
    hands[name].work()
    hands[name].publish(cells)
    return new


def rows(cells: Tree, name: str, what: str) -> list[tuple[Any, ...]]:
    with cells[name].engine.begin() as conn:
        return [tuple(row) for row in conn.execute(text(what))]


def make_due(cells: Tree, name: str = "top") -> None:
    with cells[name].engine.begin() as conn:
        conn.execute(text("UPDATE compute_cell_outbox SET due_at = now()"))
        conn.execute(text("UPDATE compute_cell_inbox SET due_at = now() WHERE due_at IS NOT NULL"))


def test_question_and_answer_cost_a_cell_on_the_way_no_statement(cells: Tree, hands: dict[str, Hands]) -> None:
    uuid = ask(cells, "ask")
    question = sent(cells, "top", "right")
    with statements_of(hands["right"]) as statements:
        assert receive(cells, hands, "right", question) == 1
        with statements_of(hands["leaf"]) as at_leaf:
            assert receive(cells, hands, "leaf") == 1
        assert receive(cells, hands, "right") == 1
    assert (statements, at_leaf) == ([], [])
    receive(cells, hands, "top")
    assert send.wait(cells["top"], uuid, 0) == 1
    assert [hands[name].confirmed for name in ("top", "right", "leaf")] == [[], [], []]
    assert [place.count("compute_cell_outbox") for place in cells.places.values()] == [0, 0, 0, 0]


@pytest.mark.parametrize("lost", ["question to right", "in right", "question to leaf", "in leaf", "answer to right"])
def test_question_whose_way_ends_anywhere_is_asked_again(cells: Tree, hands: dict[str, Hands], lost: str) -> None:
    """A broker loses its content, or a cell is killed between receiving and sending on."""
    uuid = ask(cells, "ask")
    question = sent(cells, "top", "right")
    if lost != "question to right":
        inbox.receive(cells["right"], cells.transport, question, hands["right"])
        (hands["right"].crash if lost == "in right" else lambda: hands["right"].publish(cells))()
    envelopes = cells.transport.receive("leaf")
    if lost in ("in leaf", "answer to right"):
        inbox.receive(cells["leaf"], cells.transport, envelopes, hands["leaf"])
        (hands["leaf"].crash if lost == "in leaf" else hands["leaf"].work)()
        hands["leaf"].publish(cells)
    cells.transport.queues.clear()
    assert rows(cells, "top", "SELECT tries, repeats FROM compute_cell_outbox") == [(1, True)]
    make_due(cells)
    receive(cells, hands, "right", sent(cells, "top", "right"))
    for name in ("leaf", "right", "top"):
        receive(cells, hands, name)
    assert send.wait(cells["top"], uuid, 0) == 1


def test_question_is_sent_again_soon_and_not_once_it_is_answered(cells: Tree, hands: dict[str, Hands]) -> None:
    ask(cells, "ask", "top!right")
    for seconds in (ASK_AGAIN, 2 * ASK_AGAIN):
        question = sent(cells, "top", "right")
        (row,) = rows(cells, "top", "SELECT extract(epoch FROM due_at - now()) FROM compute_cell_outbox")
        assert seconds / 2 < row[0] <= seconds
        make_due(cells)
    receive(cells, hands, "right", question)
    receive(cells, hands, "top")
    assert sent(cells, "top", "right") == []


def test_command_that_is_asked_again_runs_once(cells: Tree, hands: dict[str, Hands], calls: Calls) -> None:
    uuid = ask(cells, "act")
    for _ in range(3):
        receive(cells, hands, "right", sent(cells, "top", "right"))
        receive(cells, hands, "leaf")
        make_due(cells)
    assert calls.done == [1]
    # The answer of a command is kept until the next cell confirms it: the command does not run again for it.
    for name in ("leaf", "right"):
        assert rows(cells, name, "SELECT kind, repeats FROM compute_cell_outbox") == [("response", False)]
    cells.transport.queues.clear()
    make_due(cells, "right")
    cells.settle()
    assert send.wait(cells["top"], uuid, 0) == 1


def test_only_the_cell_that_runs_a_method_says_whether_it_only_reads(cells: Tree, hands: dict[str, Hands]) -> None:
    hands["right"].handlers = replace(cells.handlers, queries={})
    ask(cells, "ask", "top!right")
    receive(cells, hands, "right", sent(cells, "top", "right"))
    assert rows(cells, "right", "SELECT due_at IS NULL FROM compute_cell_inbox") == [(True,)]


def test_replayed_question_is_refused_and_logged(
    cells: Tree, hands: dict[str, Hands], calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(cells, "ask")
    question = sent(cells, "top", "right")
    assert receive(cells, hands, "right", question) == 1
    onward = cells.transport.receive("leaf")
    assert receive(cells, hands, "leaf", onward) == 1
    assert [receive(cells, hands, "right", question), receive(cells, hands, "leaf", onward)] == [0, 0]
    assert (calls.read, len(cells.transport.receive("leaf"))) == ([1], 0)
    assert capsys.readouterr().out.count("duplicate message of a cell") == 2


def test_question_waits_for_a_broker_that_is_away(cells: Tree, hands: dict[str, Hands]) -> None:
    uuid = ask(cells, "ask")
    cells.transport.away.add("leaf")
    receive(cells, hands, "right", sent(cells, "top", "right"))
    stored = "SELECT repeats, expires_at IS NOT NULL FROM compute_cell_outbox"
    assert rows(cells, "right", stored) == [(False, True)]
    cells.transport.away.clear()
    receive(cells, hands, "leaf", sent(cells, "right", "leaf"))
    # Custody has passed to the cells on the way: the answer is stored too.
    assert rows(cells, "leaf", "SELECT kind FROM compute_cell_outbox") == [("response",)]
    cells.settle()
    assert send.wait(cells["top"], uuid, 0) == 1


@pytest.mark.parametrize("away", ["leaf", "top"])
def test_nothing_is_passed_on_to_a_neighbour_that_was_away(cells: Tree, hands: dict[str, Hands], away: str) -> None:
    uuid = ask(cells, "ask", LEAF if away == "leaf" else "top!right")
    question = sent(cells, "top", "right")
    rows(cells, "right", f"UPDATE compute_cells SET failures = 1 WHERE name = '{away}' RETURNING name")
    inbox.receive(cells["right"], cells.transport, question, hands["right"])
    hands["right"].work()
    assert hands["right"].passed == []
    assert rows(cells, "right", "SELECT cell FROM compute_cell_outbox") == [(away,)]
    cells.settle()
    assert send.wait(cells["top"], uuid, 0) == 1


def test_question_beyond_the_room_waits_in_the_database(cells: Tree, hands: dict[str, Hands], calls: Calls) -> None:
    uuids = [ask(cells, "ask", "top!right", number) for number in range(3)]
    assert inbox.receive(cells["right"], cells.transport, sent(cells, "top", "right"), hands["right"]) == 3
    assert len(hands["right"].tasks) == 1
    hands["right"].work()
    hands["right"].publish(cells)
    cells.settle()
    assert [send.wait(cells["top"], uuid, 0) for uuid in uuids] == [0, 1, 2]


def test_unanswered_questions_hold_up_no_other_message(cells: Tree, hands: dict[str, Hands], calls: Calls) -> None:
    rows(
        cells,
        "top",
        "INSERT INTO compute_cell_outbox (cell, kind, body, tries, repeats, due_at) "
        f"SELECT 'right', 'targeted', '', 1, true, now() + interval '1 hour' "
        f"FROM generate_series(1, {MOST_UNCONFIRMED}) RETURNING id",
    )
    with cells["top"].engine.begin() as conn:
        send.cast(cells["top"], conn, "right", "act", {"number": 7})
    cells.settle()
    assert calls.done == [7]


def test_refusal_of_a_cell_on_the_way_is_an_answer(cells: Tree, hands: dict[str, Hands]) -> None:
    uuid = ask(cells, "ask", "top!right!nowhere")
    receive(cells, hands, "right", sent(cells, "top", "right"))
    receive(cells, hands, "top")
    with pytest.raises(CellRoutingInconsistency, match="Unknown child nowhere"):
        send.wait(cells["top"], uuid, 0)


def test_message_of_an_older_release_is_stored(cells: Tree, hands: dict[str, Hands], calls: Calls) -> None:
    """A cell on the way whose release knows no repeated questions drops the mark, and confirms what it stores."""
    uuid = ask(cells, "ask")
    (body,) = rows(cells, "top", "SELECT body FROM compute_cell_outbox")[0]
    older = body.replace(',"repeats":true', "")
    assert older != body
    assert messages.from_json(older).repeats is False
    with cells["top"].engine.begin() as conn:
        conn.execute(update(tables.outbox).values(body=older))
    receive(cells, hands, "right", sent(cells, "top", "right"))
    assert [name for name, _ in hands["right"].confirmed] == ["top"]
    assert rows(cells, "right", "SELECT cell FROM compute_cell_outbox") == [("leaf",)]
    cells.settle()
    assert send.wait(cells["top"], uuid, 0) == 1


def test_delivery_id_stays_the_same(cells: Tree) -> None:
    """A command that is asked again by another way in this cell, stored or not, is known where it runs."""
    message = messages.targeted("top", LEAF, "act", {}, "down", 10).as_call().arrived("right", 10)
    leaf = cells_of(cells, "right")["leaf"]
    assert outbox.delivery_of(message, leaf) == outbox.delivery_of(message.stored(), leaf)
    assert outbox.delivery_of(message, leaf) != outbox.delivery_of(replace(message, uuid=str(uuid4())), leaf)


def cells_of(cells: Tree, name: str) -> Mapping[str, Any]:
    with cells[name].engine.connect() as conn:
        return inbox.read(cells[name], conn).links.around.children


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), count=st.integers(1, 4))
def test_calls_are_answered_and_commands_run_once(cells: Tree, seed: int, count: int) -> None:
    """Envelopes are lost, doubled and reordered; processes die with what they have not sent."""
    chance, calls = Random(seed), Calls()
    cells.handlers = Handlers({"ask": calls.ask, "act": calls.act}, queries={"ask": lambda kwargs: True})
    hands = {name: Hands(cells[name], cells.handlers) for name in cells.places}
    asked = [(ask(cells, method, LEAF, number), number) for number in range(count) for method in ("ask", "act")]
    for _ in range(6):
        for _ in range(8):
            for name in cells.places:
                _step(cells, hands[name], name, chance)
        for name in cells.places:
            make_due(cells, name)
    for _ in range(8):
        for name in cells.places:
            _step(cells, hands[name], name, None)
    assert [send.wait(cells["top"], uuid, 0) for uuid, _ in asked] == [number for _, number in asked]
    assert sorted(calls.done) == list(range(count))


def _step(cells: Tree, hand: Hands, name: str, chance: Random | None) -> None:
    """Send, receive and process once in a cell, with misfortune unless `chance` is None."""
    for neighbour in outbox.due(cells[name]):
        outbox.send(cells[name], cells.transport, neighbour)
    found = cells.transport.receive(name)
    if chance is not None:
        found = [envelope for envelope in found for _ in range(chance.choice((0, 1, 1, 2)))]
        chance.shuffle(found)
    inbox.receive(cells[name], cells.transport, found, hand)
    for kind in TYPES:
        inbox.work(cells[name], cells.handlers, kind, hand)
    if chance is not None and chance.random() < 0.2:
        hand.crash()
    hand.work()
    hand.publish(cells)
    hand.confirmed.clear()
