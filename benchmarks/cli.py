"""Time of one command of the command line beside an empty Python and the OpenStack client, against an idle stack."""

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import processes, scratch
from benchmarks.figures import head, line, spread, step, timed

CLOUD = "climate-demo"


def main(short: bool) -> None:
    times = 15 if short else 101
    head(f"Command line: elapsed time of one command, {times} runs each by turns, an idle stack")
    with scratch.place(broker=True) as place:
        settings = processes.with_port(place.settings)
        processes.prepare(settings)
        with processes.running(settings, "web", "poller", "worker"):
            environ = {**processes.environ(settings), "HOME": str(settings.home), "OS_CLOUD": CLOUD}
            environ |= {"OS_CLIENT_CONFIG_FILE": str(settings.home / "clouds.yaml")}
            measured = _measured(environ, times)
    for name, seconds in measured.items():
        line(name, spread(seconds), "< 250 ms" if name == "climate lease list" else "")


def _measured(environ: Mapping[str, str], times: int) -> dict[str, list[float]]:
    """Return the times of all commands, which run by turns, so that a busy moment meets all of them."""
    commands = _commands()
    with step("first runs"):
        for command in commands.values():
            _run(command, environ)
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            taken[name] += timed(lambda command=command: _run(command, environ), 1)  # type: ignore[misc]
    return taken


def _commands() -> dict[str, Sequence[str]]:
    climate = [sys.executable, "-m", "climate"]
    commands: dict[str, Sequence[str]] = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "climate --version": [*climate, "--version"],
        "climate lease list": [*climate, "lease", "list"],
        "climate token, which signs in": [*climate, "token"],
    }
    beside = Path(sys.executable).with_name("openstack")
    openstack = str(beside) if beside.exists() else shutil.which("openstack")
    return {**commands, "openstack token issue": [openstack, "token", "issue"]} if openstack else commands


def _run(command: Sequence[str], environ: Mapping[str, str]) -> None:
    subprocess.run(command, env=dict(environ), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
