"""Cells, from the command line."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from climate.cli.cell import lines
from tests.cli.conftest import Cli
from tests.cli.wire import Wire

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
    root = str(Path(__file__).parents[2])
    ran = subprocess.run(
        [sys.executable, "-m", "climate", *words],
        input="pass\nsixteen letters or more\n",
        env={**environ, "PYTHONPATH": root},
        capture_output=True,
        text=True,
        timeout=60,
    )
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
