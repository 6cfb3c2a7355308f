"""Commands that a cell refuses: what the top cell has noted for them is taken back."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from climate.compute.cells.servers import proxy, sync
from climate.compute.models.server import Server
from climate.compute.servers.rebuild import Rebuilt
from climate.compute.store.servers import tasks
from tests.compute.cells.server_tree import LEAF_PATH, ServerTree, server_tree, who
from tests.compute.cells.tree import CellDatabases


@pytest.fixture(scope="module")
def standing(cell_databases: CellDatabases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerTree]:
    with server_tree(cell_databases, tmp_path_factory.mktemp("cells")) as found:
        yield found


@pytest.fixture
def cells(standing: ServerTree) -> ServerTree:
    """One tree for all tests here, without servers."""
    standing.clear()
    return standing


def refused_rebuild(cells: ServerTree, server: Server) -> None:
    """Ask for a rebuild from an image that the cell does not have."""
    words = {"name": "again", "metadata": {"new": "yes"}, "description": "made anew"}
    proxy.rebuild(cells.top, who(server), Rebuilt(str(uuid4()), **words))  # type: ignore[arg-type]
    assert cells.seen(server.id).name == "again"


def words_of(server: Server) -> tuple[Any, ...]:
    return server.name, server.image_id, dict(server.metadata), server.description


def test_rebuild_that_the_cell_refuses_leaves_nothing_at_the_top(cells: ServerTree) -> None:
    server = cells.boot(metadata={"old": "yes"})
    refused_rebuild(cells, server)
    cells.settle()
    found, there = cells.seen(server.id), cells.leaf.look(server.id)
    assert words_of(found) == words_of(server) == words_of(there)
    assert (found.task, found.status) == (None, "ACTIVE")
    with cells.top.engine.connect() as conn:
        assert tasks.notes(conn, server.id)[0]["message"] == "Error"


def test_words_that_were_changed_since_a_refused_rebuild_stay(cells: ServerTree) -> None:
    server = cells.boot(metadata={"old": "yes"})
    refused_rebuild(cells, server)
    proxy.describe(cells.top, who(server), {"name": "newest"})
    cells.settle()
    found = cells.seen(server.id)
    assert words_of(found) == ("newest", server.image_id, {"old": "yes"}, server.description)
    assert cells.leaf.look(server.id).name == "newest"


@pytest.mark.parametrize(
    ("cell", "noted"),
    [
        ("top!left", {"name": {"from": "stolen", "to": "mine"}}),
        (LEAF_PATH, {"name": {"from": "stolen", "to": "other"}}),
        (LEAF_PATH, {"project_id": {"from": "stolen", "to": "demo"}}),
        (LEAF_PATH, {"name": {"from": 7, "to": "mine"}}),
        (LEAF_PATH, {"name": "stolen"}),
        (LEAF_PATH, ["name"]),
    ],
)
def test_only_what_was_noted_for_a_command_of_this_cell_is_taken_back(cells: ServerTree, cell: str, noted: Any) -> None:
    server = cells.boot(name="mine")
    assert not sync.take_back(cells.top, cell, server.id, noted)
    found = cells.seen(server.id)
    assert (found.name, found.project_id) == ("mine", "demo")
