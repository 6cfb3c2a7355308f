"""`climate up --demo zones`: what is refused before anything is started, and how the deployments differ."""

import socket
from pathlib import Path

import pytest

from climate.cli import run
from climate.cli.zones_demo import TREE, DemoZone, surroundings


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
    arguments: tuple[str, ...],
    environ: dict[str, str],
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = {"CLIMATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    assert run(["up", *arguments, "--demo", "zones"], {**home, **environ}) == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_port_in_use_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        environ = {"CLIMATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
        assert run(["up", "--demo", "zones", "--port", str(port)], environ) == 1
    assert f"port {port} cannot be used" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_parents_stand_before_their_children() -> None:
    seen: list[str] = []
    for name, parent in TREE.items():
        assert parent is None or parent in seen
        seen.append(name)


def test_deployments_share_nothing_and_heed_the_environment() -> None:
    zone = DemoZone("child-1", Path("/home/zones/child-1"), 8001, "http://127.0.0.1:8001")
    given = {"OS_CLOUD": "other", "CLIMATE_HOME": "/home", "CLIMATE_PORT": "8000", "CLIMATE_WEB_PROCESSES": "3"}
    found = surroundings(given, "127.0.0.1", zone)
    assert "OS_CLOUD" not in found
    assert (found["CLIMATE_HOME"], found["CLIMATE_PORT"]) == ("/home/zones/child-1", "8001")
    assert (found["CLIMATE_ZONE_NAME"], found["CLIMATE_WEB_PROCESSES"]) == ("child-1", "3")
