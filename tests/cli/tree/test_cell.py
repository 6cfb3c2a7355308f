"""Cells, from the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from climate import bootstrap
from climate.cli.tree.cell import lines
from climate.compute.cells import neighbours
from climate.compute.store.tables import metadata
from climate.settings import Settings
from tests.cli import forked_command
from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire
from tests.cli.forked_command import Ended

CELLS = "/compute/v2.1/os-cells"
ROOM = {"ram_free": {"total_mb": 2048, "units_by_mb": {}}}
CHILD: dict[str, Any] = {
    "name": "left",
    "type": "child",
    "state": "up",
    "age": 3.5,
    "messages": {"waiting": 2, "oldest_age": 1.0},
    "last_error": None,
    "children": [{"name": "leaf", "state": "mute", "age": None, "capacities": {}, "children": []}],
}


@pytest.fixture
def answering(wire: Wire) -> Wire:
    """A wire that answers each request for cells by its path."""
    wire.cells = {
        f"{CELLS}/detail": {"cells": [CHILD]},
        f"{CELLS}/info": {"cell": {"name": "top"}},
        f"{CELLS}/left/capacities": {"cell": {"capacities": ROOM}},
        f"{CELLS}/capacities": {"cell": {"capacities": ROOM}},
    }
    return wire


def test_list_shows_state_and_age(cli: Cli, answering: Wire) -> None:
    (row,) = cli("cell", "list", "-f", "json").data
    assert (row["name"], row["state"], row["age"], row["free_ram_mb"], row["messages"]) == ("left", "up", 3.5, 2048, 2)


def test_tree_shows_all_levels(cli: Cli, answering: Wire) -> None:
    assert cli("cell", "tree").out.splitlines() == [
        "top",
        "└─ left  up  2048 MB free  3.5 s",
        "   └─ leaf  mute  0 MB free  never heard",
    ]


def test_lines_of_siblings() -> None:
    several = [
        {"name": "a", "state": "up", "age": 1, "children": CHILD["children"]},
        {"name": "b", "state": "up", "age": 2},
    ]
    assert [line.split("  ")[0] for line in lines(several)] == ["├─ a", "│", "└─ b"]


def test_add_asks_for_secrets(environ: dict[str, str], answering: Wire) -> None:
    words = (
        *("cell", "add", "left", "--child", "--host", "10.0.0.2", "--port", "6379", "--database", "3"),
        *("--username", "broker", "--ask", "password", "--ask", "secret", "--weight-offset", "5"),
    )
    ran = forked_command.run(words, environ, "pass\nsixteen letters or more\n")
    assert ran.returncode == 0, ran.stderr
    assert "sixteen" not in ran.stdout + ran.stderr
    assert answering.sent("POST", CELLS).body == {
        "cell": {
            "name": "left",
            "type": "child",
            "rpc_host": "10.0.0.2",
            "rpc_port": 6379,
            "rpc_virtual_host": "3",
            "username": "broker",
            "password": "pass",
            "secret": "sixteen letters or more",
            "weight_offset": 5.0,
        }
    }


def test_add_needs_a_side(cli: Cli, answering: Wire) -> None:
    for sides in ((), ("--parent", "--child")):
        assert cli("cell", "add", "left", *sides).code == 2


def test_set_sends_only_what_is_given(cli: Cli, answering: Wire) -> None:
    assert cli("cell", "set", "left", "--port", "7000").code == 0
    assert answering.sent("PUT", f"{CELLS}/left").body == {"cell": {"rpc_port": 7000}}


def test_delete_sync_and_capacities(cli: Cli, answering: Wire) -> None:
    assert cli("cell", "delete", "left").code == 0
    assert answering.sent("DELETE", f"{CELLS}/left")
    assert cli("cell", "delete", "left", "--force").code == 0
    assert answering.sent("DELETE", f"{CELLS}/left").query == {"force": "true"}
    assert cli("cell", "sync", "--project", "p").code == 0
    assert answering.sent("POST", f"{CELLS}/sync_instances").body == {"project_id": "p"}
    assert cli("cell", "capacities", "-f", "json").data == ROOM


def add_here(environ: dict[str, str], secret: str = "sixteen letters or more", **more: str) -> Ended:
    words = ("cell", "add", "api-cell", "--parent", "--local", "--host", "10.0.0.1", "--ask", "secret", "-f", "json")
    return forked_command.run(words, {**environ, **more}, f"{secret}\n")


def test_neighbour_is_added_without_an_api(
    environ: dict[str, str], answering: Wire, database_url: str, tmp_path: Path
) -> None:
    given = {"CLIMATE_DATABASE_URL": database_url, "CLIMATE_CELLS_ENABLE": "true", "CLIMATE_CELL_NAME": "child-cell1"}
    deployment = bootstrap.build(Settings.from_env({**environ, **given}))
    metadata.create_all(deployment.compute.engine)
    ran = add_here(environ, **given)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"name": "api-cell", "type": "parent"}
    assert not [asked for asked in answering.asked if CELLS in asked.path]
    with deployment.compute.engine.connect() as conn:
        found = neighbours.with_secrets(deployment.compute, conn, "api-cell")["api-cell"]
    deployment.compute.engine.dispose()
    assert (found.is_parent, found.broker.host, found.broker.secret) == (True, "10.0.0.1", "sixteen letters or more")
    again = add_here(environ, **given)
    assert (again.returncode, "is a neighbour already" in again.stderr) == (1, True)
    short = add_here(environ, secret="too short", **given | {"CLIMATE_CELL_NAME": "other"})
    assert (short.returncode, "at least 16 characters" in short.stderr) == (1, True)
    assert "sixteen" not in ran.stdout + ran.stderr + again.stderr
    off = add_here(environ, **given | {"CLIMATE_CELLS_ENABLE": "false"})
    assert (off.returncode, "CLIMATE_CELLS_ENABLE" in off.stderr) == (1, True)


def test_doctor_looks_at_each_neighbour(cli: Cli, answering: Wire) -> None:
    mute = {**CHILD, "name": "silent", "state": "mute", "age": 400.0}
    gone = {**CHILD, "name": "gone", "state": "unreachable", "last_error": "its broker is away"}
    answering.cells[f"{CELLS}/detail"] = {"cells": [CHILD, mute, gone]}
    found = {one["check"]: one for one in cli("doctor", "-f", "json").data if one["check"].startswith("cell ")}
    assert {check: one["is"] for check, one in found.items()} == {
        "cell left": "good",
        "cell silent": "fair",
        "cell gone": "BAD",
    }
    assert found["cell left"]["says"] == "child, last message 4 s ago, 2 messages wait"
    assert "its broker is away" in found["cell gone"]["says"]


def test_doctor_says_nothing_of_cells_where_there_are_none(cli: Cli, answering: Wire) -> None:
    answering.cells[f"{CELLS}/detail"] = {"cells": []}
    assert not [one for one in cli("doctor", "-f", "json").data if one["check"].startswith("cell")]
