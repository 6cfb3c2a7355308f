"""Collecting responses over the in-memory transport; and answers in the name of another cell."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from uuid import uuid4

import pytest

from climate.compute import Compute
from climate.compute.cells.messaging import collecting, inbox, messages, signing
from climate.compute.cells.messaging.messages import UP, Response
from climate.compute.cells.messaging.signing import Letter
from climate.compute.store.cells import messages as cell_messages
from tests.compute.cells.collecting_suite import HANDLERS, CollectingSuite
from tests.compute.cells.tree import Tree, secret_of


@dataclass
class MemoryCells:
    cells: Tree
    below = frozenset({"top!left", "top!right", "top!right!leaf"})

    def compute(self, name: str) -> Compute:
        return self.cells[name]

    def working(self) -> AbstractContextManager[None]:
        return self.cells.running()

    def silence(self, name: str) -> None:
        self.cells.transport.away.add(name)


class TestMemory(CollectingSuite):
    @pytest.fixture
    def tree(self, cells: Tree) -> MemoryCells:
        cells.handlers = HANDLERS
        return MemoryCells(cells)


def answer_of_left(cells: Tree, uuid: str, cell_name: str, routing_path: str) -> dict[str, str]:
    """An answer that the left cell signs, with this name and path in it."""
    body = Response(cell_name, "forged").body()
    made = messages.targeted(routing_path, "top", messages.PARSE_RESPONSES, body, UP, 10)
    hops = routing_path.count("!") + 1
    message = replace(made, type="response", response_uuid=uuid, target_cell=f"{routing_path}!top", hop_count=hops)
    with cells["top"].engine.connect() as conn:
        now = cells["top"].now(conn)
    letter = Letter("left", str(uuid4()), "response", message.to_json())
    return signing.seal(secret_of("top", "left"), ("left", "top"), letter, now)


@pytest.mark.parametrize(
    ("cell_name", "routing_path"),
    [("top!right", "left"), ("top!right", "right"), ("top!right!leaf", "leaf!right"), ("top", "left")],
)
def test_answer_in_the_name_of_another_cell_is_dropped(
    cells: Tree, cell_name: str, routing_path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cells.handlers = HANDLERS
    top = cells["top"]
    asked = collecting.broadcast_call(top, "name", {}, seconds=600)
    inbox.receive(top, cells.transport, [answer_of_left(cells, asked.uuid, cell_name, routing_path)])
    cells.settle()
    said = capsys.readouterr().out
    assert "response dropped" in said or "message refused" in said
    found = collecting.wait(top, asked, 0)
    assert {one.cell_name: one.value["in"] for one in found.responses} == {
        "top!left": "left",
        "top!right": "right",
        "top!right!leaf": "leaf",
    }


def test_first_answer_of_a_cell_counts(cells: Tree) -> None:
    top = cells["top"]
    asked = collecting.broadcast_call(top, "name", {}, seconds=600)
    with top.engine.begin() as conn:
        for value in ("first", "second"):
            body = Response("top!left", value).body()
            assert cell_messages.answer(conn, asked.uuid, "top!left", body, top.now(conn))
    assert collecting.wait(top, asked, 0).values() == {"top!left": "first"}
