"""One service, many nodes: each verb goes to the driver of the node, whatever nodes there are at the moment."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
import structlog

from climate.compute.errors import VirtError
from climate.compute.models.node import NodeSpec
from climate.compute.virt import Guest, State, Wiring
from climate.compute.virt.in_memory import MemoryDriver
from climate.compute.virt.multi_node import MultiNodeDriver
from tests.compute.cloud_factory import node


class Broken(MemoryDriver):
    """A driver that cannot work here."""

    def trouble(self) -> str | None:
        return "its program is missing"


def test_nodes_come_and_go_and_unknown_ones_do_not_exist() -> None:
    nodes: list[NodeSpec] = []
    memory = MemoryDriver()
    cluster = MultiNodeDriver(lambda: nodes, {"memory": memory})
    guest = Guest(str(uuid4()), "x", "a")
    with pytest.raises(VirtError, match=r"^The resource a does not exist$"):
        cluster.prepare(guest)
    nodes.append(node("a"))
    cluster.prepare(guest)
    assert memory.guests == {guest.id: State.PREPARED}
    nodes.clear()
    with pytest.raises(VirtError, match=r"^The resource a does not exist$"):
        cluster.run(guest)
    cluster.delete(guest.id)
    assert memory.guests == {}


def test_each_verb_goes_to_the_driver_of_the_node() -> None:
    one, two = MemoryDriver(), MemoryDriver()
    cluster = MultiNodeDriver(lambda: [node("a", driver="one"), node("b", driver="two")], {"one": one, "two": two})
    guest = Guest(str(uuid4()), "x", "b")
    for verb in ("prepare", "run", "pause", "unpause", "suspend", "resume"):
        getattr(cluster, verb)(guest)
    cluster.stop(guest, kindly=False)
    assert one.calls == []
    assert [verb for verb, _ in two.calls] == ["prepare", "run", "pause", "unpause", "suspend", "resume", "stop"]


def test_a_node_that_cannot_work_is_left_out_and_the_log_says_why_once() -> None:
    nodes = [node("a"), node("b", driver="broken"), node("c", driver="hyper")]
    cluster = MultiNodeDriver(lambda: nodes, {"memory": MemoryDriver(), "broken": Broken()})
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            assert [spec.name for spec in cluster.nodes()] == ["a"]
    assert [(line["node"], line["reason"]) for line in logs] == [
        ("b", "its program is missing"),
        ("c", "there is no driver 'hyper', only broken, memory"),
    ]
    nodes.pop(1)
    cluster.nodes()
    nodes.append(node("b", driver="broken"))
    with structlog.testing.capture_logs() as logs:
        cluster.nodes()
    assert [line["node"] for line in logs] == ["b"]


class Read(tuple[NodeSpec, ...]):
    """Nodes that count how often they are all gone through."""

    times = 0

    def __iter__(self) -> Iterator[NodeSpec]:
        self.times += 1
        return super().__iter__()


def test_asking_about_each_of_many_nodes_goes_through_them_once() -> None:
    nodes = Read(node(f"n{place}") for place in range(50))
    cluster = MultiNodeDriver(lambda: nodes, {"memory": MemoryDriver()})
    assert {cluster.wiring(spec.name) for spec in list(nodes)} == {Wiring.NONE}
    assert nodes.times == 2, "once by the test itself"
