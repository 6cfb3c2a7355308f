"""Builds through a tree of cells: chosen level by level, booted once."""

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from climate.compute.cells import neighbours
from climate.compute.cells.builds import request as build_request
from climate.compute.cells.builds import scheduler
from climate.compute.cells.builds import start as build_start
from climate.compute.cells.builds.candidates import Candidate
from climate.compute.cells.builds.request import Build
from climate.compute.cells.builds.scheduler import CellScheduler
from climate.compute.cells.errors import BadMessage
from climate.compute.cells.messaging import send
from climate.compute.cells.messaging.dispatch import CellContext, Handlers
from climate.compute.cells.messaging.messages import Message
from climate.compute.cells.state import state
from climate.compute.errors import BadRequest
from climate.compute.metadata import config_drives, guest_metadata
from climate.compute.models import keypair
from climate.compute.models.server import ACTIVE
from climate.compute.store.projects import flavors, keypairs
from tests.compute.cells.tree import CellDatabases, Tree, tree
from tests.compute.cloud_factory import HALF, HUGE, TINY, node, request

NODES = {"left": [node("n1")], "leaf": [node("n2"), node("n3")], "right": [], "top": []}


class Faults:
    """The top cell's method that puts servers into ERROR."""

    def __init__(self) -> None:
        self.told: dict[str, list[tuple[str, str]]] = {}

    def handlers(self) -> Handlers:
        return Handlers(broadcast={scheduler.FAULT: self.note}, upward=frozenset({scheduler.FAULT}))

    def note(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> None:
        for server_id in kwargs["instances"]:
            self.told.setdefault(server_id, []).append((context.name, kwargs["message"]))

    def at_top(self, server_id: str) -> list[str]:
        return [reason for name, reason in self.told.get(server_id, []) if name == "top"]


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def cells(cell_databases: CellDatabases, tmp_path: Path, faults: Faults) -> Iterator[Tree]:
    with tree(cell_databases, tmp_path, nodes=NODES, scheduler_retries=2) as found:
        found.handlers = state.HANDLERS.joined(CellScheduler().handlers()).joined(faults.handlers())
        for name in ("leaf", "left"):
            state.report(found[name])
        found.settle()
        yield found


def start(cells: Tree, flavor: Any = TINY, **wanted: Any) -> build_start.Started:
    return build_start.start(cells["top"], request(flavor, **wanted))


def where(cells: Tree) -> dict[str, list[str]]:
    """Servers by cell."""
    found = {}
    for name, place in cells.places.items():
        with place.compute.engine.connect() as conn:
            found[name] = list(conn.execute(text("SELECT id::text FROM compute_servers ORDER BY name")).scalars())
    return {name: servers for name, servers in found.items() if servers}


def all_due(cells: Tree) -> None:
    """Let postponed messages be due now, and process them."""
    for place in cells.places.values():
        with place.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_cell_inbox SET due_at = now() WHERE due_at IS NOT NULL"))
    cells.settle()


def test_ce_16_child_with_most_room_boots_the_servers_with_the_given_ids(cells: Tree, faults: Faults) -> None:
    started = start(cells, count=2)
    cells.settle()
    assert where(cells) == {"leaf": list(started.server_ids)}
    server = cells.places["leaf"].look(started.server_ids[0])
    assert (server.status, server.build_id, server.name) == (ACTIVE, started.build_id, "s-1")
    assert faults.told == {}


def test_guest_of_a_cell_reads_what_was_asked_of_the_top(cells: Tree) -> None:
    public, other = keypair.generate("top").public, keypair.generate("leaf").public
    for name, key in (("top", public), ("leaf", other)):
        with cells[name].engine.begin() as conn:
            keypairs.add(conn, "dora", "laptop", key, keypair.fingerprint(key))
    script = base64.b64encode(b"#!/bin/sh").decode()
    started = start(cells, key_name="laptop", metadata={"a": "b"}, user_data=script, config_drive=True)
    cells.settle()
    assert where(cells) == {"leaf": list(started.server_ids)}
    leaf = cells["leaf"]
    with leaf.engine.connect() as conn:
        own = guest_metadata.gathered(leaf, conn, cells.places["leaf"].look(started.server_ids[0]))
    assert (own.key, own.user_data, own.server.metadata) == (("laptop", public), b"#!/bin/sh", {"a": "b"})
    drive = config_drives.of_server(leaf, own.server)
    assert json.loads(drive[config_drives.META_DATA])["public_keys"] == {"laptop": public}


def test_build_of_an_earlier_release_has_no_key_of_the_cell(cells: Tree) -> None:
    public = keypair.generate("leaf").public
    with cells["leaf"].engine.begin() as conn:
        keypairs.add(conn, "dora", "laptop", public, keypair.fingerprint(public))
    ids = ("c11a7e00-0000-4000-8000-0000000000ab",)
    build = Build("r-2", ids, 1, "demo", "dora", "s", "tiny", 512, key_name="laptop")
    assert "public_key" not in build.to_kwargs()["build"]
    scheduler.run_here(cells["leaf"], build)
    with cells["leaf"].engine.connect() as conn:
        assert guest_metadata.gathered(cells["leaf"], conn, cells.places["leaf"].look(ids[0])).key is None
    with pytest.raises(BadMessage, match="no usable public key"):
        build_request.read({"build": build.to_kwargs()["build"] | {"public_key": 5}})


def test_ce_16_cell_without_children_boots_itself(cells: Tree) -> None:
    build = Build("r-1", ("c11a7e00-0000-4000-8000-0000000000aa",), 1, "demo", "dora", "s", "tiny", 512)
    seen: list[Build] = []

    def run(compute: Any, wanted: Build) -> tuple[str, ...]:
        seen.append(wanted)
        return wanted.server_ids

    with cells["left"].engine.connect() as conn:
        around = neighbours.around(conn)
    context = CellContext(cells["left"], "left", Handlers(), around.parents, around.children)
    CellScheduler(run).schedule_run_instance(context, None, build.to_kwargs())  # type: ignore[arg-type]
    assert seen == [build]


@pytest.mark.parametrize(("last_first", "chosen"), [(False, "left"), (True, "right")])
def test_c9_equal_cells_take_turns_by_chance(cells: Tree, last_first: bool, chosen: str) -> None:
    children = [Candidate("left"), Candidate("right")]

    def shuffle(found: list[Candidate]) -> None:
        found.sort(key=lambda one: one.name, reverse=last_first)

    build = Build("r-1", ("id",), 1, "demo", "dora", "s", "tiny", 512)
    assert CellScheduler(shuffle=shuffle)._chosen(cells["top"], build, children) == chosen


def test_message_that_comes_twice_makes_one_server(cells: Tree) -> None:
    """Even if another cell would be the better one at the second time."""
    started = start(cells)
    cells.settle()
    neighbours.change(cells["top"], "left", {"weight_offset": 1e9}, {})
    build = Build(started.build_id, started.server_ids, 1, "demo", "dora", "s", "tiny", 512)
    for name in ("top", "right", "leaf"):
        with cells[name].engine.begin() as conn:
            send.cast(cells[name], conn, name, scheduler.RUN_INSTANCE, build.to_kwargs())
    cells.settle()
    assert where(cells) == {"leaf": list(started.server_ids)}


def test_ce_17_retries_then_servers_fail(cells: Tree, faults: Faults) -> None:
    with cells["top"].engine.begin() as conn:
        conn.execute(text("DELETE FROM compute_cells"))
    started = start(cells)
    for attempt in range(3):
        assert faults.told == {}, f"failed at attempt {attempt}"
        all_due(cells)
    assert faults.at_top(started.server_ids[0]) == ["No cells available matching scheduling criteria."]
    all_due(cells)
    assert len(faults.at_top(started.server_ids[0])) == 1


def test_ce_17_other_error_is_not_tried_again(cells: Tree, faults: Faults) -> None:
    for name in ("left", "leaf"):
        with cells[name].engine.begin() as conn:
            conn.execute(text("DELETE FROM compute_flavors"))
    started = start(cells)
    cells.settle()
    assert faults.at_top(started.server_ids[0]) == ["The cell has no flavor 'tiny'."]
    assert where(cells) == {}


def test_cell_that_lacks_the_flavor_is_skipped(cells: Tree) -> None:
    with cells["left"].engine.begin() as conn:
        flavors.insert(conn, HUGE)
    state.report(cells["left"])
    cells.settle()
    started = start(cells, HUGE)
    cells.settle()
    assert where(cells) == {"left": list(started.server_ids)}


def test_no_cell_has_the_flavor(cells: Tree, faults: Faults) -> None:
    started = start(cells, HUGE)
    for _ in range(3):
        all_due(cells)
    (reason,) = faults.at_top(started.server_ids[0])
    assert "left: it has no flavor 'huge'; right: it has no flavor 'huge'" in reason


def test_fewer_servers_than_asked_for_are_reported(cells: Tree, faults: Faults) -> None:
    started = start(cells, HALF, count=9, least=1)
    cells.settle()
    there = where(cells)["leaf"]
    assert 1 <= len(there) < 9
    assert {server_id for server_id in started.server_ids if faults.at_top(server_id)} == {*started.server_ids} - {
        *there
    }


def test_administrator_names_the_cell(cells: Tree) -> None:
    started = start(cells, hints={"target_cell": "top!left"}, admin=True)
    cells.settle()
    assert where(cells) == {"left": list(started.server_ids)}
    assert cells.places["left"].look(started.server_ids[0]).hints == {}


def test_hint_of_others_is_ignored(cells: Tree) -> None:
    start(cells, hints={"target_cell": "top!left"})
    cells.settle()
    assert list(where(cells)) == ["leaf"]


@pytest.mark.parametrize("target", ["top!nowhere", "top!right!nowhere", "other", "a!!b", ["top"], "left"])
def test_unknown_target_cell_is_a_fault(cells: Tree, faults: Faults, target: Any) -> None:
    started = start(cells, hints={"target_cell": target}, admin=True)
    cells.settle()
    (reason,) = faults.at_top(started.server_ids[0])
    assert "could not be found" in reason
    assert where(cells) == {}


@pytest.mark.parametrize("hint", ["group", "same_host", "different_host"])
def test_hint_of_another_cell_is_refused_at_once(cells: Tree, hint: str) -> None:
    with pytest.raises(BadRequest, match=f"hint '{hint}' cannot be used with cells"):
        start(cells, hints={hint: "c11a7e00-0000-4000-8000-000000000001"})


def test_networks_are_found_by_label(cells: Tree) -> None:
    with cells["top"].engine.connect() as conn:
        network = conn.execute(text("SELECT id::text FROM compute_networks")).scalar_one()
    started = start(cells, networks=(network,))
    cells.settle()
    assert where(cells) == {"leaf": list(started.server_ids)}
    assert cells.places["leaf"].count("compute_addresses", "server_id IS NOT NULL") == 1


def test_unknown_network_is_refused_at_once(cells: Tree) -> None:
    with pytest.raises(BadRequest, match="c11a7e00-0000-4000-8000-000000000001 could not be found"):
        start(cells, networks=("c11a7e00-0000-4000-8000-000000000001",))


def test_build_waits_for_a_broker_that_is_away(cells: Tree) -> None:
    cells.transport.away.add("right")
    started = start(cells)
    cells.settle()
    assert where(cells) == {}
    cells.transport.away.clear()
    with cells["top"].engine.begin() as conn:
        conn.execute(text("UPDATE compute_cells SET retry_at = NULL"))
    cells.settle()
    assert where(cells) == {"leaf": list(started.server_ids)}


@pytest.mark.parametrize("kwargs", [{}, {"build": []}, {"build": {"other": 1}}, {"build": {"server_ids": [1]}}])
def test_malformed_build_is_refused(cells: Tree, kwargs: Any) -> None:
    with cells["top"].engine.begin() as conn:
        send.cast(cells["top"], conn, "left", scheduler.RUN_INSTANCE, kwargs)
    cells.settle()
    assert where(cells) == {}
