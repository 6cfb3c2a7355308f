"""Trees of deployments to play with: what is refused before anything is started, and how deployments differ."""

import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from climate.cli import run
from climate.cli.demo.cells import CELLS
from climate.cli.demo.tree import DemoTree, Deployment, deployments, environ_of
from climate.cli.demo.zones import ZONES
from climate.cli.errors import Failure
from climate.configuration import cells
from climate.settings import Settings

TREES = {"zones": ZONES, "cells": CELLS}


@pytest.mark.parametrize("demo", TREES)
@pytest.mark.parametrize(
    ("arguments", "environ", "says"),
    [
        (("web",), {}, "whole deployments"),
        (("--scale", "worker=2"), {}, "whole deployments"),
        ((), {"CLIMATE_DATABASE_URL": "postgresql://nowhere/x"}, "stores of its own"),
        ((), {"CLIMATE_REDIS_URL": "redis://nowhere"}, "stores of its own"),
    ],
)
def test_what_cannot_be_a_tree_is_refused(
    demo: str,
    arguments: tuple[str, ...],
    environ: dict[str, str],
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = {"CLIMATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    assert run(["up", *arguments, "--demo", demo], {**home, **environ}) == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("demo", TREES)
def test_port_in_use_is_named(demo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        environ = {"CLIMATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
        assert run(["up", "--demo", demo, "--port", str(port)], environ) == 1
    assert f"port {port} cannot be used" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_parents_stand_before_their_children(tree: DemoTree) -> None:
    seen: list[str] = []
    for name, parent in tree.parents.items():
        assert (parent is None) == (not seen)
        assert parent is None or parent in seen
        seen.append(name)
    assert len(seen) == 4


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_deployments_share_nothing_and_heed_the_environment(tree: DemoTree) -> None:
    given = {"OS_CLOUD": "other", "CLIMATE_HOME": "/home", "CLIMATE_PORT": "8000", "CLIMATE_WEB_PROCESSES": "3"}
    found = [
        environ_of(tree, given, Deployment(name, Path("/home", name), "127.0.0.1", 8001 + place))
        for place, name in enumerate(tree.parents)
    ]
    for own in ("CLIMATE_HOME", "CLIMATE_PORT", "CLIMATE_COMPUTE_HOST"):
        assert len({environ[own] for environ in found}) == 4
    assert all("OS_CLOUD" not in environ and environ["CLIMATE_WEB_PROCESSES"] == "3" for environ in found)


def test_only_deployments_with_an_api_have_a_port(tmp_path: Path) -> None:
    def ports(tree: DemoTree) -> list[Any]:
        for first in range(20_000, 30_000, 4):
            with suppress(Failure):  # another program has one of the ports
                found = deployments(tree, tmp_path, "127.0.0.1", first)
                return [one.port and one.port - first for one in found.values()]
        raise AssertionError("no four ports in a row are free")

    assert ports(ZONES) == [0, 1, 2, 3]
    assert ports(CELLS) == [0, None, None, None]


def test_c13_cells_are_configured_as_the_two_examples() -> None:
    for name, kind in zip(CELLS.parents, ("api", "compute", "compute", "compute"), strict=True):
        environ = environ_of(CELLS, {}, Deployment(name, Path("/home", name), "127.0.0.1", 8000))
        found = cells.options(Settings.from_env(environ))
        assert (found.enabled, found.name, found.type) == (True, name, kind)
        wanted = {key for key in environ if "CELL" in key or "API" in key}
        assert wanted == {"CLIMATE_CELLS_ENABLE", "CLIMATE_CELL_NAME", "CLIMATE_CELL_TYPE", "CLIMATE_COMPUTE_API_CLASS"}
        assert environ["CLIMATE_CELL_TYPE"] == ""
