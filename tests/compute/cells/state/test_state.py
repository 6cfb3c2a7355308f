"""Reports of cells: capabilities, capacities and offers bubble up to the top."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from climate.compute.cells import neighbours
from climate.compute.cells.errors import CellNotFound
from climate.compute.cells.messaging import send
from climate.compute.cells.messaging.messages import UP
from climate.compute.cells.models import Broker, Cell
from climate.compute.cells.state import state
from tests.compute.cells.tree import CellDatabases, Tree, tree
from tests.compute.cloud_factory import node

NODES = {"left": [node("n1")], "leaf": [node("n2"), node("n3")], "right": [], "top": []}


@pytest.fixture
def cells(cell_databases: CellDatabases, tmp_path: Path) -> Iterator[Tree]:
    with tree(cell_databases, tmp_path, nodes=NODES, reserve_percent=0.0) as found:
        found.handlers = state.HANDLERS
        yield found


def with_capabilities(cells: Tree, name: str, **words: tuple[str, ...]) -> None:
    place = cells.places[name]
    place.compute = replace(place.compute, cells=replace(place.compute.cells, capabilities=words))


def report_of(name: str, at: str = "2026-01-01T00:00:00Z", children: Any = ()) -> dict[str, Any]:
    return {
        "cell_name": name,
        "reported_at": at,
        "capabilities": {},
        "capacities": {"ram_free": {"units_by_mb": {"512": 10**6}}},
        "children": list(children),
    }


def units(cells: Tree, name: str, of: str | None = None) -> Any:
    return state.capacities_of(cells[name], of).get("ram_free", {}).get("units_by_mb")


def capabilities(cells: Tree, name: str) -> Mapping[str, tuple[str, ...]]:
    with cells[name].engine.begin() as conn:
        return state.total(cells[name], conn).capabilities


def test_capacities_bubble_up_two_levels(cells: Tree) -> None:
    assert units(cells, "top") is None
    state.report(cells["leaf"])
    state.report(cells["left"])
    cells.settle()
    assert units(cells, "right") == {"512": 32, "4096": 4}
    assert units(cells, "top") == {"512": 48, "4096": 6}


def test_ce_19_capacities_of_a_named_cell(cells: Tree) -> None:
    state.report(cells["left"])
    cells.settle()
    assert units(cells, "top", "left") == {"512": 16, "4096": 2}
    assert units(cells, "top", "right") is None
    with pytest.raises(CellNotFound, match="nowhere"):
        state.capacities_of(cells["top"], "nowhere")


def test_capabilities_are_the_union(cells: Tree) -> None:
    with_capabilities(cells, "leaf", hypervisor=("xen", "kvm"))
    with_capabilities(cells, "right", hypervisor=("kvm",), os=("linux",))
    state.report(cells["leaf"])
    cells.settle()
    assert capabilities(cells, "top") == {"hypervisor": ("kvm", "xen"), "os": ("linux",)}


def test_mute_child_has_no_part_in_the_capabilities(cells: Tree) -> None:
    with_capabilities(cells, "left", os=("linux",))
    state.report(cells["left"])
    cells.settle()
    with cells["top"].engine.begin() as conn:
        conn.execute(text("UPDATE compute_cells SET last_seen = now() - interval '301 s'"))
    assert capabilities(cells, "top") == {}


def test_offers_are_those_of_cells_with_nodes(cells: Tree) -> None:
    state.report(cells["leaf"])
    cells.settle()
    right = neighbours.get(cells["top"], "right")
    assert right.offers["flavors"] == ("half", "tiny")
    assert right.offers["reservations"] == ()


def test_start_asks_children_to_report(cells: Tree) -> None:
    state.request_reports(cells["right"])
    cells.settle()
    assert units(cells, "top") == {"512": 32, "4096": 4}


def test_return_of_a_broker_is_noticed_although_nothing_else_is_sent(cells: Tree) -> None:
    with cells["top"].engine.begin() as conn:
        conn.execute(text("UPDATE compute_cells SET failures = 3, last_error = 'away', retry_at = now()"))
        conn.execute(text("UPDATE compute_cells SET failures = 0 WHERE name = 'right'"))
    state.request_missed_reports(cells["top"])
    cells.settle()
    left = neighbours.get(cells["top"], "left")
    assert (left.failures, left.last_error) == (0, None)
    assert units(cells, "top", "left") is not None
    assert units(cells, "top", "right") is None, "only unreachable children are asked"


def test_tree_is_known_at_the_top(cells: Tree) -> None:
    state.report(cells["leaf"])
    cells.settle()
    (leaf,) = neighbours.get(cells["top"], "right").children
    assert (leaf["name"], leaf["state"], leaf["children"]) == ("leaf", "up", [])
    assert leaf["age"] >= 0


def test_report_of_another_cell_is_refused(cells: Tree) -> None:
    kwargs = report_of("right")
    with cells["left"].engine.begin() as conn:
        send.cast(cells["left"], conn, "top", state.UPDATE, kwargs, UP)
    cells.settle()
    assert units(cells, "top") is None


def test_report_from_two_levels_below_is_refused(cells: Tree) -> None:
    kwargs = report_of("leaf")
    with cells["leaf"].engine.begin() as conn:
        send.cast(cells["leaf"], conn, "leaf!right!top", state.UPDATE, kwargs, UP)
    cells.settle()
    assert units(cells, "top") is None


def test_cycle_of_cells_is_named_and_counts_nothing(cells: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    broker = Broker(secret="secret of leaf and top")
    neighbours.create(cells["leaf"], Cell("top", broker=broker))
    neighbours.create(cells["top"], Cell("leaf", is_parent=True, broker=broker))
    for _ in range(3):
        for name in ("leaf", "right", "top"):
            state.report(cells[name])
        cells.settle()
    assert units(cells, "top") is None
    assert "The cells form a cycle: top is below its child right." in capsys.readouterr().out


def test_moved_neighbour_loses_its_state(cells: Tree) -> None:
    state.report(cells["left"])
    cells.settle()
    neighbours.change(cells["top"], "left", {"is_parent": True}, {})
    assert neighbours.get(cells["top"], "left").capacities == {}


def tell(cells: Tree, name: str, kwargs: dict[str, Any]) -> None:
    with cells[name].engine.begin() as conn:
        send.cast(cells[name], conn, "top", state.UPDATE, kwargs, UP)
    cells.settle()


def test_report_that_was_overtaken_changes_nothing(cells: Tree) -> None:
    tell(cells, "left", report_of("left", "2026-01-02T00:00:00Z"))
    tell(cells, "left", report_of("left", "2026-01-01T00:00:00Z") | {"capacities": {}})
    assert units(cells, "top") == {"512": 10**6}


@pytest.mark.parametrize(
    "change",
    [
        {"capacities": []},
        {"capacities": {"ram_free": 5}},
        {"capacities": {"ram_free": {"total_mb": "much"}}},
        {"capacities": {"ram_free": {"total_mb": 1e300}}},
        {"capacities": {"ram_free": {"total_mb": None}}},
        {"capacities": {"ram_free": {"units_by_mb": {"512": True}}}},
        {"capacities": {"ram_free": {"units_by_mb": {"5!2": 1}}}},
        {"capacities": {"hosts": {"total_mb": 1}}},
        {"capabilities": {"a": "b"}},
        {"capabilities": {"a": [1]}},
        {"capabilities": {"a": ["\x1b[2J"]}},
        {"capabilities": {"a\n": ["b"]}},
        {"capabilities": {"a": ["b" * 2000]}},
        {"reported_at": "yesterday"},
        {"children": [[]]},
        {"children": {}},
        {"children": [{"name": "a!b", "state": "up"}]},
        {"children": [{"name": "\x1b[2J", "state": "up"}]},
        {"children": [{"name": "a", "state": "\x1b[2J"}]},
        {"children": [{"name": "a", "state": "up", "age": "old"}]},
        {"children": [{"name": "a", "state": "up", "capacities": {"ram_free": []}}]},
        {"children": [{"name": "a", "state": "up", "children": [{"name": 7, "state": "up"}]}]},
        {"offers": {"flavors": None}},
    ],
)
def test_malformed_report_is_refused(cells: Tree, change: dict[str, Any]) -> None:
    tell(cells, "left", report_of("left") | change)
    assert units(cells, "top") is None


def test_age_of_a_cell_further_below_grows_while_its_parent_is_silent(cells: Tree) -> None:
    cells.handlers = state.HANDLERS
    for name in ("leaf", "right"):
        state.report(cells[name])
        cells.settle()
    top = cells["top"]
    with top.engine.begin() as conn:
        conn.execute(text("UPDATE compute_cells SET last_seen = last_seen - interval '400 seconds'"))
        now = top.now(conn)
    (right,) = [cell for cell in neighbours.listed(top) if cell.name == "right"]
    told = state.described(top, right, now)
    (leaf,) = told["children"]
    assert (told["state"], leaf["state"]) == ("mute", "mute")
    assert told["age"] >= 400
    assert leaf["age"] >= told["age"]


def test_names_of_images_may_have_any_characters(cells: Tree) -> None:
    """A blank that does not break, or a mark of direction, is no reason to believe a cell no more."""
    offers = {"images": ["debian\u00a012", "\u200fמערכת"]}
    tell(cells, "left", report_of("left") | {"offers": offers})
    assert neighbours.get(cells["top"], "left").offers["images"] == tuple(offers["images"])


def test_cell_that_has_promised_more_than_it_has_is_believed(cells: Tree) -> None:
    room = {"ram_free": {"total_mb": -512, "units_by_mb": {"512": 0}}}
    tell(cells, "left", report_of("left") | {"capacities": room})
    assert neighbours.get(cells["top"], "left").capacities == room
