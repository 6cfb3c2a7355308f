"""Healing: reports that were lost are sent again, a few at a time or on demand."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from climate.compute.cells.messaging import send
from climate.compute.cells.messaging.messages import DOWN
from climate.compute.cells.servers import healing, methods
from climate.compute.cells.servers.healing import Healer
from climate.compute.models.server import DELETE, STOP
from climate.compute.servers import actions
from tests.compute.cells.server_tree import ServerTree, server_tree
from tests.compute.cells.tree import CellDatabases

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def standing(cell_databases: CellDatabases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerTree]:
    with server_tree(cell_databases, tmp_path_factory.mktemp("cells")) as found:
        yield found


@pytest.fixture
def cells(standing: ServerTree) -> ServerTree:
    standing.clear()
    forget(standing)
    return standing


def forget(cells: ServerTree) -> None:
    with cells.leaf.compute.engine.begin() as conn:
        conn.execute(text("DELETE FROM compute_cell_versions"))


def lose(cells: ServerTree) -> None:
    """Lose all that was noted and not reported."""
    with cells.leaf.compute.engine.begin() as conn:
        conn.execute(text("DELETE FROM compute_cell_changes"))


def heal(cells: ServerTree, healer: Healer) -> list[str]:
    compute = cells.leaf.compute
    return healer.run(compute, methods.teller(compute))


def test_ce_22_each_run_reports_the_next_servers_and_fills_the_list_once(cells: ServerTree) -> None:
    ids = sorted(cells.leaf.boot_one().id for _ in range(3))
    healer = Healer(HOUR, 2, shuffle=list.sort)
    assert heal(cells, healer) == [ids[0], ids[1]]
    assert heal(cells, healer) == [ids[2], ids[0]]
    assert heal(cells, healer) == [ids[1], ids[2]]
    lose(cells)
    cells.settle()
    assert [cells.seen(server_id).status for server_id in ids] == ["ACTIVE"] * 3


def test_ce_22_only_servers_that_changed_lately_are_reported(cells: ServerTree) -> None:
    old, new = cells.leaf.boot_one().id, cells.leaf.boot_one().id
    with cells.leaf.compute.engine.begin() as conn:
        conn.execute(
            text("UPDATE compute_servers SET updated_at = now() - interval '2 hours' WHERE id = CAST(:id AS uuid)"),
            {"id": old},
        )
    assert heal(cells, Healer(HOUR, 5)) == [new]
    assert sorted(heal(cells, Healer(timedelta(), 5))) == sorted([old, new])


def test_ce_22_the_top_cell_reports_nothing(cells: ServerTree) -> None:
    cells.boot()
    assert Healer(HOUR, 5).run(cells.top, methods.teller(cells.top)) == []


def test_servers_that_are_gone_are_reported_as_gone(cells: ServerTree) -> None:
    server = cells.boot()
    actions.request_task(cells.leaf.compute, server.id, DELETE)
    cells.leaf.settle()
    methods.report_changes(cells.leaf.compute)
    with cells.leaf.compute.engine.begin() as conn:
        conn.execute(text("DELETE FROM compute_cell_outbox"))
    assert cells.at_top(server.id) is not None
    assert heal(cells, Healer(HOUR, 5)) == [server.id]
    cells.settle()
    assert cells.at_top(server.id) is None


def test_a_lost_report_is_healed(cells: ServerTree) -> None:
    server = cells.boot()
    actions.request_task(cells.leaf.compute, server.id, STOP)
    cells.leaf.settle()
    lose(cells)
    cells.settle()
    assert cells.seen(server.id).status == "ACTIVE"
    heal(cells, Healer(HOUR, 1))
    cells.settle()
    assert cells.seen(server.id).status == "SHUTOFF"


@pytest.mark.parametrize(
    ("wanted", "healed"),
    [
        ({}, True),
        ({"project_id": "demo"}, True),
        ({"project_id": "other"}, False),
        ({"updated_since": "2020-01-01T00:00:00+00:00"}, True),
        ({"updated_since": "2100-01-01T00:00:00+00:00"}, False),
    ],
    ids=str,
)
def test_sync_instances_has_each_cell_report_what_was_asked_for(
    cells: ServerTree, wanted: dict[str, str], *, healed: bool
) -> None:
    server = cells.boot()
    actions.request_task(cells.leaf.compute, server.id, STOP)
    cells.leaf.settle()
    lose(cells)
    with cells.top.engine.begin() as conn:
        send.broadcast(cells.top, conn, DOWN, methods.SYNC, wanted)
    cells.settle()
    assert (cells.seen(server.id).status == "SHUTOFF") is healed


def test_a_cell_that_lost_its_versions_is_believed_all_the_same(cells: ServerTree) -> None:
    server = cells.boot()
    forget(cells)
    actions.request_task(cells.leaf.compute, server.id, STOP)
    cells.leaf.settle()
    cells.settle()
    assert cells.seen(server.id).status == "SHUTOFF"


def test_what_was_deleted_long_ago_is_forgotten_in_both_cells(cells: ServerTree) -> None:
    server = cells.boot()
    actions.request_task(cells.leaf.compute, server.id, DELETE)
    cells.leaf.settle()
    cells.settle()
    leaf, top = cells.leaf.compute, cells.top
    assert healing.forget(leaf) == healing.forget(top) == 0
    for compute, table, column in (
        (leaf, "compute_cell_versions", "gone_at"),
        (top, "compute_cell_servers", "deleted_at"),
    ):
        with compute.engine.begin() as conn:
            conn.execute(text(f"UPDATE {table} SET {column} = :then"), {"then": datetime(2020, 1, 1, tzinfo=UTC)})
        assert healing.forget(compute) == 1
