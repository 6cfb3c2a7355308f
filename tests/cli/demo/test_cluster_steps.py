"""The demo of a cluster: what it furnishes, what it refuses, and that it never calls a broken promise kept."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from climate.cli import run
from climate.cli.demo import cluster_steps, clusters
from climate.cli.demo.actors import Unseen
from climate.cli.demo.cluster_steps import ClusterPlay
from climate.cli.demo.clusters import FAR, NEAR, NODE, RACK, SHARED, SIZES, SPARE, Ground, Rack
from climate.compute.models.node import NodeSpec
from climate.compute.nodes import nodes_file
from climate.settings import Settings

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    made = Ground(tmp_path)
    made.furnish()
    return made


def test_the_nodes_of_both_services_are_understood(ground: Ground) -> None:
    cluster = nodes_file.read(ground.home)[0].cluster
    assert cluster is not None
    assert [(one.name, one.service) for one in cluster.members] == [(NEAR, None), (FAR, RACK)]
    assert nodes_file.read(ground.home / RACK) == [NodeSpec(FAR, 4, 4096, 40, joins=NODE)]
    assert ground.memory_mb == 2 * SIZES["memory_mb"]
    ground.join(SPARE)
    cluster = nodes_file.read(ground.home)[0].cluster
    assert cluster is not None
    assert [one.name for one in cluster.members] == [NEAR, FAR, SPARE]


def test_the_services_share_their_folders_and_a_second_run_begins_anew(ground: Ground) -> None:
    ground.join(SPARE)
    ground.furnish()
    assert len(ground.members) == 2
    for name in SHARED:
        (ground.home / name / "seen").touch()
        assert (ground.home / RACK / name / "seen").exists()


def test_the_settings_that_the_steps_count_on_are_not_the_users(tmp_path: Path) -> None:
    environ = clusters.surroundings({"CLIMATE_NETWORK_DRIVER": "linux", "CLIMATE_NODES_FILE": "own"}, tmp_path)
    settings = Settings.from_env(environ)
    assert (settings.network_driver, settings.nodes_file, settings.home) == ("recording", nodes_file.FILE, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "environ", "says"),
    [
        (("web",), {}, "whole deployments"),
        (("--scale", "worker=2"), {}, "whole deployments"),
        ((), {"CLIMATE_DATABASE_URL": "postgresql://nowhere/x"}, "stores of its own"),
        ((), {"CLIMATE_REDIS_URL": "redis://nowhere"}, "stores of its own"),
    ],
)
def test_what_cannot_be_a_demo_is_refused(
    arguments: tuple[str, ...],
    environ: dict[str, str],
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home = {"CLIMATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    assert run(["up", *arguments, "--demo", "clusters"], {**home, **environ}) == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_port_in_use_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        environ = {"CLIMATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
        assert run(["up", "--demo", "clusters", "--port", str(port)], environ) == 1
    assert f"port {port} cannot be used" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


class Sleeping(Rack):
    """A rack whose worker does nothing."""

    @property
    def _program(self) -> Any:
        return clusters.spawn.Program(RACK, SLEEPER, self.environ)


def test_a_rack_that_is_killed_can_be_started_again_and_ends_with_the_demo(ground: Ground) -> None:
    rack = Sleeping({**os.environ, "CLIMATE_HOME": str(ground.home / RACK)})
    rack.start()
    first = rack.worker
    rack.kill()
    rack.start()
    second = rack.worker
    rack.stop()
    assert first is not None
    assert second is not None
    assert first.returncode == -9
    assert second.returncode is not None


class Staged(ClusterPlay):
    """A play in which servers are where a test says."""

    def __init__(self, ground: Ground, where: dict[str, str], numbers: dict[str, list[int]]) -> None:
        self.ground, self.rack, self.servers = ground, Rack({}), sorted(where)
        self.where, self.numbers, self.later = where, numbers, dict(numbers)
        self.statuses = {("ACTIVE", NODE)}

    def members(self) -> dict[str, str]:
        return self.where

    def processes(self) -> dict[str, list[int]]:
        found, self.numbers = self.numbers, self.later
        return found

    def server_statuses(self) -> set[tuple[str, str]]:
        return self.statuses

    def until(self, what: str, look: Any, reached: Any, seconds: float = 30.0) -> Any:
        self.where = dict.fromkeys(self.where, NEAR)
        return look()


@pytest.fixture
def staged(ground: Ground) -> Staged:
    play = Staged(ground, {"a": NEAR, "b": FAR}, {"a": [1], "b": [2]})
    play.later = {"a": [1], "b": [3]}
    for one in play.servers:
        play.disk(one).parent.mkdir(parents=True)
        play.disk(one).write_text(f"{cluster_steps.WORD}: {one}")
    return play


def test_a_restart_as_it_should_be_is_seen(staged: Staged) -> None:
    assert "1 servers were started on near" in cluster_steps.member_fails(staged)


@pytest.mark.parametrize(
    ("later", "status", "disk", "why"),
    [
        ({"a": [1], "b": [2, 3]}, "ACTIVE", "", "their processes are"),
        ({"a": [4], "b": [3]}, "ACTIVE", "", "2 servers were started anew"),
        ({"a": [1], "b": [2]}, "ACTIVE", "", "0 servers were started anew"),
        ({"a": [1], "b": [3]}, "SHUTOFF", "", "they were seen as"),
        ({"a": [1], "b": [3]}, "ACTIVE", "another", "1 servers have lost their disks"),
    ],
)
def test_a_restart_that_breaks_a_promise_is_seen(
    staged: Staged, later: dict[str, list[int]], status: str, disk: str, why: str
) -> None:
    staged.later, staged.statuses = later, {(status, NODE)}
    if disk:
        staged.disk("b").write_text(disk)
    with pytest.raises(Unseen, match=why):
        cluster_steps.member_fails(staged)


def test_the_processes_of_servers_are_found() -> None:
    env = {"CLIMATE_SERVER": "11111111-2222-4333-8444-555555555555"}
    with subprocess.Popen(SLEEPER, env=env) as process:
        try:
            deadline = time.monotonic() + 60
            while (process.pid, env["CLIMATE_SERVER"]) not in cluster_steps._processes():
                assert time.monotonic() < deadline
        finally:
            process.kill()


def test_each_step_has_a_title() -> None:
    titles = [step.__doc__ or "" for step in cluster_steps.STEPS]
    assert all(titles)
    assert len(set(titles)) == len(titles)
