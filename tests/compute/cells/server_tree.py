"""A tree of cells whose servers are reported to the top: messages move when somebody lets them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import text

from climate.compute import Compute
from climate.compute.cells.builds.scheduler import CellScheduler
from climate.compute.cells.servers import methods, sync
from climate.compute.cells.state import inventory, state
from climate.compute.models.server import DELETE, Server
from climate.compute.nodes import services
from climate.compute.servers import actions
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.store.cells import servers
from tests.compute.cells.tree import CellDatabases, Tree, stepping, tree
from tests.compute.cloud_factory import Place, node

TOP, LEAF = "top", "leaf"
LEAF_PATH = "top!right!leaf"
BY = {"project_id": "demo", "user_id": "dora", "request_id": "req-1"}


@dataclass
class ServerTree:
    """Cells top, right below it and leaf below right; right and leaf have nodes."""

    tree: Tree

    @property
    def top(self) -> Compute:
        return self.tree[TOP]

    @property
    def leaf(self) -> Place:
        return self.tree.places[LEAF]

    def step(self) -> int:
        done = sum(methods.report_changes(self.tree[name]) for name in self.tree.places if name != TOP)
        return done + self.tree.step()

    def settle(self) -> None:
        """Let messages move until none is left, and none waits for another."""
        while self.step() or self._waiting():
            pass

    def _waiting(self) -> int:
        return sum(place.count("compute_cell_inbox", "due_at IS NOT NULL") for place in self.tree.places.values())

    def clear(self) -> None:
        """Delete all servers, and what the top knows of them."""
        for place in self.tree.places.values():
            with place.compute.engine.connect() as conn:
                left = list(conn.execute(text("SELECT id::text FROM compute_servers")).scalars())
            for server_id in left:
                actions.request_task(place.compute, server_id, DELETE)
            services.refresh(place.compute)  # a service that was not heard of for a minute is down
        self.settle()
        with self.top.engine.begin() as conn:
            for table in ("compute_cell_servers", "compute_quotas", "compute_actions"):
                conn.execute(text(f"DELETE FROM {table}"))

    def at_top(self, server_id: str) -> Server | None:
        with self.top.engine.connect() as conn:
            return servers.get(conn, server_id)

    def seen(self, server_id: str) -> Server:
        found = self.at_top(server_id)
        assert found is not None
        return found

    def boot(self, **wanted: Any) -> Server:
        """A server of the leaf, known at the top."""
        made = self.leaf.boot_one(**wanted)
        self.settle()
        return self.seen(made.id)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the cells at work in a thread, for callers that wait for a response."""
        with stepping(self.step):
            yield


def who(server: Server, project_id: str | None = "demo") -> Requester:
    return Requester(server.id, project_id, BY)


@contextmanager
def server_tree(databases: CellDatabases, home: Path, **options: Any) -> Iterator[ServerTree]:
    """The tree of tests; changes of servers are noted in all cells but the top."""
    nodes = {"right": [node("r1")], LEAF: [node("n1"), node("n2")]}
    with tree(databases, home, {TOP: ("right",), "right": (LEAF,), LEAF: ()}, nodes, **options) as found:
        found.handlers = methods.HANDLERS.joined(state.HANDLERS).joined(CellScheduler().handlers())
        found.handlers = found.handlers.joined(inventory.HANDLERS)
        below = [name for name in found.places if name != TOP]
        for name in below:
            sync.follow(found[name], wanted=True)
        made = ServerTree(replace(found))
        try:
            yield made
        finally:
            for name in below:
                sync.follow(found[name], wanted=False)
