"""Servers of a cell two levels below, seen and changed at the top, over real brokers and processes."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from climate.compute import Compute
from climate.compute.cells import neighbours, removal
from climate.compute.cells.builds import start
from climate.compute.cells.servers import proxy
from climate.compute.cells.state import state
from climate.compute.models.server import DELETE, STOP, Server
from climate.compute.nodes import services
from climate.compute.servers import actions, create
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.servers.tasks import task_worker
from climate.compute.store.cells import changes
from climate.compute.store.cells import servers as cell_servers
from climate.compute.store.projects import flavors
from climate.compute.virt.in_memory import MemoryDriver
from tests.compute import network_factory
from tests.compute.cloud_factory import TINY, node, request
from tests.system.stack import await_so
from tests.workers.cell_stacks import PATIENCE, CellStack, cell_stacks
from workers import cells as cells_process

BY = {"project_id": "demo", "user_id": "dora", "request_id": "req-1"}
LEAF = "top!right!leaf"


class Tree:
    """Three cells at work, of which the leaf has nodes."""

    def __init__(self, stacks: dict[str, CellStack]) -> None:
        self.stacks = stacks

    @property
    def top(self) -> Compute:
        return self.stacks["top"].compute

    @property
    def leaf(self) -> Compute:
        return self.stacks["leaf"].compute

    def at_top(self, server_id: str) -> Server | None:
        with self.top.engine.connect() as conn:
            return cell_servers.get(conn, server_id)

    def agree(self, server_id: str) -> bool:
        """Return whether the top shows a server as its cell has it."""
        with self.leaf.engine.connect() as conn:
            there, _ = changes.read(conn, [server_id])
        found = self.at_top(server_id)
        if found is None or not there:
            return found is None and not there
        return (found.status, found.task, found.addresses) == (there[0].status, there[0].task, there[0].addresses)

    def is_busy(self, server_id: str) -> bool:
        """Return whether the top shows a task of a server, which the leaf may just have received."""
        found = self.at_top(server_id)
        return found is not None and found.task is not None

    def settle(self, *server_ids: str) -> None:
        """Run the tasks of servers in the leaf until the top agrees and shows none."""

        def done() -> bool:
            for _, server_id in task_worker.unfinished(self.leaf, wait=0, again=0):
                task_worker.run_task(self.leaf, server_id)
            return all(self.agree(server_id) and not self.is_busy(server_id) for server_id in server_ids)

        await_so(done, PATIENCE, "the top to agree with the leaf")


def furnish(stack: CellStack) -> None:
    """Flavors and a network, and in the leaf two nodes that only pretend."""
    specs = [node("n1"), node("n2")] if stack.compute.cells.name == "leaf" else []
    compute = replace(stack.compute, driver=MemoryDriver(specs), cast=lambda host, *servers: None)
    stack.deployment = replace(stack.deployment, compute=compute)
    services.refresh(compute)
    with compute.engine.begin() as conn:
        network_factory.network(conn, "private", "10.10.0.0/26")
        flavors.insert(conn, TINY)


@pytest.fixture(scope="module")
def tree(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tree]:
    with cell_stacks(make_database, cloud_template, tmp_path_factory.mktemp("cells")) as stacks:
        for stack in stacks.values():
            furnish(stack)
            stack.start(cells_process.handlers(stack.deployment))
        await_so(lambda: tracked(stacks["leaf"]) and tracked(stacks["right"]), PATIENCE, "changes to be noted")
        yield Tree(stacks)


def tracked(stack: CellStack) -> bool:
    with stack.compute.engine.connect() as conn:
        return changes.is_tracked(conn)


def who(server_id: str) -> Requester:
    return Requester(server_id, "demo", BY)


def test_changes_in_the_leaf_are_seen_at_the_top(tree: Tree) -> None:
    server = create.boot(tree.leaf, request())[0]
    tree.settle(server.id)
    found = tree.at_top(server.id)
    assert found is not None
    assert (found.status, found.service_host) == ("ACTIVE", LEAF)
    actions.request_task(tree.leaf, server.id, STOP)
    tree.settle(server.id)
    proxy.request_task(tree.top, who(server.id), DELETE)
    tree.settle(server.id)
    assert tree.at_top(server.id) is None
    assert not tracked(tree.stacks["top"])


def test_operations_at_the_top_act_in_the_leaf(tree: Tree) -> None:
    server = create.boot(tree.leaf, request())[0]
    tree.settle(server.id)
    proxy.request_task(tree.top, who(server.id), STOP)
    await_so(lambda: tree.agree(server.id) and _task(tree, server.id) == STOP, PATIENCE, "the command to arrive")
    tree.settle(server.id)
    assert actions.get(tree.leaf, server.id).status == "SHUTOFF"
    assert [port.addresses for port in proxy.interfaces(tree.top, who(server.id))] == [
        (actions.get(tree.leaf, server.id).addresses[0].address,)
    ]


def _task(tree: Tree, server_id: str) -> str | None:
    return actions.get(tree.leaf, server_id).task


def test_a_build_at_the_top_runs_in_the_leaf(tree: Tree) -> None:
    state.report(tree.leaf)
    await_so(lambda: _offers(tree), PATIENCE, "the capacities of the leaf to reach the top")
    started = start.start(tree.top, request(count=3))
    known: Callable[[], Any] = lambda: all(_placed(tree, server_id) for server_id in started.server_ids)  # noqa: E731
    await_so(known, PATIENCE, "the servers to be placed")
    tree.settle(*started.server_ids)
    found = [tree.at_top(server_id) for server_id in started.server_ids]
    assert [(one.status, one.service_host, one.name) for one in found if one] == [
        ("ACTIVE", LEAF, f"s-{place}") for place in (1, 2, 3)
    ]


def _offers(tree: Tree) -> bool:
    with tree.top.engine.connect() as conn:
        return bool(neighbours.around(conn).children["right"].capacities.get("ram_free", {}).get("total_mb"))


def _placed(tree: Tree, server_id: str) -> bool:
    found = tree.at_top(server_id)
    return found is not None and found.service_host is not None


def test_changes_while_no_cells_process_runs_are_reported_by_the_next(tree: Tree) -> None:
    server = create.boot(tree.leaf, request())[0]
    tree.settle(server.id)
    stack = tree.stacks["leaf"]
    stack.stop()
    actions.request_task(tree.leaf, server.id, STOP)
    task_worker.run_task(tree.leaf, server.id)
    found = tree.at_top(server.id)
    assert found is not None
    assert found.status == "ACTIVE"
    stack.start(cells_process.handlers(stack.deployment))
    tree.settle(server.id)
    found = tree.at_top(server.id)
    assert found is not None
    assert found.status == "SHUTOFF"


def test_a_cell_that_leaves_the_tree_notes_nothing_more(tree: Tree) -> None:
    stack = tree.stacks["leaf"]
    with stack.compute.engine.connect() as conn:
        right = neighbours.with_secrets(stack.compute, conn, "right")["right"]
    removal.remove(stack.compute, "right")
    await_so(lambda: not tracked(stack), PATIENCE, "the triggers to be gone")
    with stack.compute.engine.connect() as conn:
        assert conn.execute(text("SELECT count(*) FROM compute_cell_changes")).scalar_one() == 0
    neighbours.create(stack.compute, right)
    await_so(lambda: tracked(stack), PATIENCE, "changes to be noted again")
    server = create.boot(tree.leaf, request())[0]
    tree.settle(server.id)
