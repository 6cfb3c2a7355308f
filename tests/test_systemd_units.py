"""The systemd units run what the Procfile runs, as `climate up` does."""

from pathlib import Path

import pytest

from climate.runner.procfile import RELEASE, parse
from climate.runner.stack import STOP_SECONDS
from tests.systemd_units import ANALYZE, PREFIX, ROOT, UNITS, install, read, verify

PROCFILE = parse((ROOT / "Procfile").read_text(encoding="utf-8"), {})
PROCESSES = [name for name in PROCFILE if name != RELEASE]
SERVICES = {path.stem.removeprefix("climate-"): read(path.read_text("utf-8")) for path in UNITS.glob("*.service")}
SANDBOX = ("Private", "Protect", "ReadOnly", "ReadWrite", "RestrictNamespaces", "SystemCallFilter")
"""Beginnings of the options that would bind the servers of a worker too."""

needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")


def test_each_process_type_has_a_unit() -> None:
    assert {*SERVICES} == {*PROCFILE}


@pytest.mark.parametrize("name", PROCESSES)
def test_the_unit_runs_the_command_of_the_procfile(name: str) -> None:
    assert SERVICES[name]["Service"]["ExecStart"] == [f"{PREFIX}/bin/{' '.join(PROCFILE[name])}"]


def test_the_release_migrates_and_prepares_as_the_runner_does() -> None:
    migrate, prepare = SERVICES[RELEASE]["Service"]["ExecStart"]
    assert migrate.startswith(f"{PREFIX}/bin/{' '.join(PROCFILE[RELEASE])} --wait ")
    assert prepare == f"/bin/sh -c 'exec {PREFIX}/bin/python -m climate.runner.first_run >/dev/null'", (
        "it has a password"
    )
    assert SERVICES[RELEASE]["Service"]["Type"] == ["oneshot"]


@pytest.mark.parametrize("name", PROCESSES)
def test_a_process_begins_after_the_release_and_belongs_to_the_target(name: str) -> None:
    unit = SERVICES[name]["Unit"]
    assert unit["Requires"] == ["climate-release.service"]
    assert "climate-release.service" in unit["After"][0].split()
    assert unit["PartOf"] == ["climate.target"]
    assert SERVICES[name]["Install"]["WantedBy"] == ["climate.target"]


@pytest.mark.parametrize("name", PROCESSES)
def test_a_process_has_the_time_to_stop_that_the_runner_gives(name: str) -> None:
    assert float(SERVICES[name]["Service"]["TimeoutStopSec"][0]) >= STOP_SECONDS.get(name, 10.0)
    assert SERVICES[name]["Service"]["Restart"] == ["always"]
    assert SERVICES[name]["Unit"]["StartLimitIntervalSec"] == ["0"]


def test_servers_outlive_the_worker_and_have_no_sandbox_of_it() -> None:
    worker = SERVICES["worker"]["Service"]
    assert worker["KillMode"] == ["process"]
    assert [key for key in worker if key.startswith(SANDBOX)] == []
    assert all(SERVICES[name]["Service"]["KillMode"] == ["mixed"] for name in PROCESSES if name != "worker")


@pytest.mark.parametrize("name", SERVICES)
def test_logs_go_to_the_journal_alone(name: str) -> None:
    service = SERVICES[name]["Service"]
    assert service["StandardError"] == ["journal"]
    assert service["StandardOutput"] == ["journal"]
    assert not [key for key in service if key.startswith("LogsDirectory")]


@needs_systemd
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    assert verify(install(tmp_path)) == ""


@needs_systemd
def test_systemd_would_complain(tmp_path: Path) -> None:
    units = install(tmp_path)
    (web,) = (unit for unit in units if unit.name == "climate-web.service")
    web.write_text(web.read_text("utf-8").replace("ProtectHome=yes", "ProtectHomes=yes"), encoding="utf-8")
    assert "ProtectHomes" in verify(units)
