"""Routing decisions, and whole messages through the tree of eight kernels."""

from collections.abc import Mapping
from typing import Any

import pytest

from climate.compute.cells.errors import (
    CellMaxHopCountReached,
    CellRoutingInconsistency,
    CellServiceAPIMethodNotFound,
)
from climate.compute.cells.messaging import messages, routing
from climate.compute.cells.messaging.dispatch import CellContext, Handlers
from climate.compute.cells.messaging.messages import DOWN, UP, Message, Response
from climate.compute.cells.models import Cell
from climate.compute.errors import NotFound
from tests.compute.cells.kernel_tree import KernelTree

GRANDCHILD = "api-cell!child-cell2!grandchild-cell1"


class Log:
    """Handlers that remember the routing paths by which they were reached."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def note(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> Any:
        self.paths.append(message.routing_path)
        return {"seen": message.routing_path, **kwargs}

    def fail(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> Any:
        raise NotFound("no such server")

    def handlers(self) -> Handlers:
        known = {"note": self.note, "fail": self.fail}
        return Handlers(known, known, upward=frozenset({"note"}))


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def tree(log: Log) -> KernelTree:
    return KernelTree(log.handlers())


def to(target: str, me: str = "api-cell") -> Message:
    return messages.targeted(me, target, "note", {}, DOWN, 10)


def test_ce_2_next_hop_of_a_new_message(tree: KernelTree) -> None:
    message = to(GRANDCHILD)
    assert (message.routing_path, message.hop_count) == ("api-cell", 1)
    assert routing.next_hop(tree.context("api-cell"), message) == Cell("child-cell2")


def test_ce_4_target_as_the_state_of_a_neighbour(tree: KernelTree) -> None:
    assert to("child-cell2").target_cell == "api-cell!child-cell2"
    mine = to("api-cell")
    assert mine.target_cell == "api-cell"
    assert routing.next_hop(tree.context("api-cell"), mine) is None


def test_ce_5_method_sees_the_whole_path_and_answers(tree: KernelTree, log: Log) -> None:
    response = tree.call("api-cell", GRANDCHILD, "note", word="hello")
    assert log.paths == [GRANDCHILD]
    assert response.value_or_raise() == {"seen": GRANDCHILD, "word": "hello"}
    assert response.cell_name == GRANDCHILD


def test_ce_5_exception_is_raised_at_the_source(tree: KernelTree) -> None:
    response = tree.call("api-cell", GRANDCHILD, "fail")
    assert response.failure == {"type": "NotFound", "message": "no such server"}
    with pytest.raises(NotFound, match="no such server"):
        response.value_or_raise()


def test_call_to_this_cell_itself_is_answered(tree: KernelTree, log: Log) -> None:
    assert tree.call("api-cell", "api-cell", "note").value == {"seen": "api-cell"}


def test_unknown_method_is_a_failed_response(tree: KernelTree) -> None:
    with pytest.raises(CellServiceAPIMethodNotFound, match="no method 'eval'"):
        tree.call("api-cell", GRANDCHILD, "eval").value_or_raise()


@pytest.mark.parametrize("target", ["api-cell!child-cell2!grandchild-cell4", "unknown-cell!child-cell2"])
def test_ce_7_unknown_cell_is_a_failed_response(tree: KernelTree, target: str) -> None:
    with pytest.raises(CellRoutingInconsistency):
        tree.call("api-cell", target, "note").value_or_raise()


@pytest.mark.parametrize(
    ("target", "path"), [("a", "a!b"), ("a!c", "a!b"), ("a!c!d", "a!b"), ("x!b", "a!b"), ("b!c", "a")]
)
def test_path_that_does_not_lead_to_the_target_is_refused(target: str, path: str) -> None:
    tree = KernelTree(Handlers())
    message = messages.Message("targeted", "note", {}, DOWN, "u", path, path.count("!") + 1, 10, target_cell=target)
    with pytest.raises(CellRoutingInconsistency, match=f"destination is {target} but routing_path is {path}"):
        routing.next_hop(tree.context("api-cell"), message)


def test_ce_8_broadcast_down_reaches_every_cell_once(tree: KernelTree, log: Log) -> None:
    tree.broadcast("api-cell", DOWN, "note", run_locally=True)
    assert sorted(path.rpartition("!")[2] for path in log.paths) == sorted(tree.children)
    assert len(log.paths) == 8


def test_ce_8_broadcast_without_the_source(tree: KernelTree, log: Log) -> None:
    tree.broadcast("api-cell", DOWN, "note")
    assert len(log.paths) == 7
    assert "api-cell" not in log.paths


def test_ce_8_broadcast_up_reaches_the_cells_above(tree: KernelTree, log: Log) -> None:
    tree.broadcast("grandchild-cell3", UP, "note", run_locally=True)
    assert set(log.paths) == {
        "grandchild-cell3",
        "grandchild-cell3!child-cell3",
        "grandchild-cell3!child-cell3!api-cell",
    }


def test_targeted_message_fails_at_the_hop_limit(log: Log) -> None:
    tree = KernelTree(log.handlers(), max_hop_count=2)
    assert tree.call("api-cell", "api-cell!child-cell2", "note").value is not None
    with pytest.raises(CellMaxHopCountReached, match="maximum hop count: 2"):
        tree.call("api-cell", GRANDCHILD, "note").value_or_raise()


def test_broadcast_ends_at_the_hop_limit(log: Log) -> None:
    KernelTree(log.handlers(), max_hop_count=2).broadcast("api-cell", DOWN, "note")
    assert len(log.paths) == 4


def test_smaller_hop_limit_of_a_cell_on_the_way_holds() -> None:
    assert to(GRANDCHILD).arrived("child-cell2", 2).max_hop_count == 2


def test_cycle_is_named(log: Log) -> None:
    message = messages.broadcast("a", "note", {}, DOWN, 10).arrived("b", 10)
    routing.check_arrival(message, Cell("a", is_parent=True))
    with pytest.raises(CellRoutingInconsistency, match="form a cycle: a!b!a"):
        routing.check_arrival(message.arrived("a", 10), Cell("b", is_parent=True))


def test_message_of_another_sender_is_refused() -> None:
    message = messages.broadcast("a", "note", {}, DOWN, 10).arrived("b", 10)
    with pytest.raises(CellRoutingInconsistency, match="does not lead through c"):
        routing.check_arrival(message, Cell("c", is_parent=True))


def test_message_from_the_wrong_side_is_refused() -> None:
    message = messages.broadcast("a", "note", {}, DOWN, 10).arrived("b", 10)
    with pytest.raises(CellRoutingInconsistency, match="cannot come from the child a"):
        routing.check_arrival(message, Cell("a", is_parent=False))


def test_child_can_call_only_what_is_open_to_children(tree: KernelTree, log: Log) -> None:
    def asked(method: str) -> Response:
        message = messages.targeted("child-cell1", "child-cell1!api-cell", method, {}, UP, 9).answered()
        tree.deliver("api-cell", message.arrived("api-cell", 9))
        return tree.responses[message.uuid]

    assert asked("note").value == {"seen": "child-cell1!api-cell"}
    with pytest.raises(CellServiceAPIMethodNotFound, match="cannot be called by a child cell"):
        asked("fail").value_or_raise()
