"""`climate up --demo zones` or `cells` as a child of the tests: four deployments, each can be killed and restarted."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.system.api_client import Api
from tests.system.stack import CLIMATE, ROOT, await_so

START_SECONDS = 900.0
SECONDS = 300.0
"""Longest time until something is done, on a busy machine."""
PATIENT = {"CLIMATE_ZONE_TIMEOUT_SECONDS": "60"}
"""A child on a busy machine answers late; without its answer a build places nothing there."""
C = "/compute/v2.1"
ZONES = ("parent", "child-1", "child-2", "grandchild")


@dataclass
class ZoneTree:
    """The tree, its output, and deployments that were begun again."""

    home: Path
    port: int
    process: "subprocess.Popen[bytes]"
    folder: str = "zones"
    """Folder of the homes of the deployments."""
    words: dict[str, list[str]] = field(default_factory=dict)
    """Home of a deployment that was killed -> the words that it was begun with."""
    apis: dict[str, Api] = field(default_factory=dict)
    restarted: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @property
    def output(self) -> Path:
        return self.home / "demo.log"

    @property
    def environ(self) -> dict[str, str]:
        return environ_of(self.home, self.port)

    def api(self, zone: str, cloud: str = "climate") -> Api:
        """An administrator of a zone, or with `climate-demo` a member."""
        key = f"{zone}:{cloud}"
        if key not in self.apis:
            self.apis[key] = Api(self.home_of(zone), cloud)
        return self.apis[key]

    def home_of(self, zone: str) -> Path:
        """The home of a deployment."""
        return self.home / self.folder / zone

    def active(self) -> dict[str, int]:
        """The children of the parent that have answered a poll and are active: their ids by name."""
        zones = self.api("parent").read(f"{C}/zones/detail")["zones"]
        return {zone["name"]: zone["id"] for zone in zones if zone["is_active"] and zone["name"]}

    def database_url(self, zone: str) -> str:
        """The database of a deployment, as it is in this moment."""
        path = self.home_of(zone) / "stores.json"
        return str(json.loads(path.read_text(encoding="utf-8"))["database_url"])

    def run(self, zone: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """A `climate` command against a deployment."""
        environ = {**self.environ, "CLIMATE_HOME": str(self.home_of(zone))}
        return subprocess.run(
            [*CLIMATE, *words], env=environ, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
        )

    def is_ready(self, zone: str) -> bool:
        """Return whether a deployment answers."""
        try:
            return self.api(zone).http.get("/readyz").status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self, zone: str) -> Mapping[str, str]:
        """Kill all processes of a deployment at once; return the environment that it ran in."""
        top = self.runner(zone)
        environ = top.environ()
        self.words[environ["CLIMATE_HOME"]] = top.cmdline()
        family = [top, *top.children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        await_so(lambda: all(_is_dead(process) for process in family), 60, f"the end of {zone}")
        return environ

    def begin(self, environ: Mapping[str, str]) -> None:
        """Begin a deployment again that was killed."""
        with (self.home / "again.log").open("ab") as log:
            words = self.words[environ["CLIMATE_HOME"]]
            started = subprocess.Popen(words, env=dict(environ), stdout=log, stderr=log, start_new_session=True)
        self.restarted.append(started)

    def runner(self, zone: str) -> psutil.Process:
        """The `climate up` of a deployment."""
        home = str(self.home_of(zone))
        begun = [psutil.Process(one.pid) for one in self.restarted if one.poll() is None]
        found = [*psutil.Process(self.process.pid).children(), *begun]
        alive = [one for one in found if _home(one) == home and one.status() != psutil.STATUS_ZOMBIE]
        assert len(alive) == 1, (zone, alive)
        return alive[0]

    def kill_all(self) -> None:
        """Kill the process that runs the tree; return when nothing of it is left."""
        self.process.kill()
        self.process.wait(60)
        await_so(lambda: not self.left(), 120, "the end of all deployments")

    def begin_all(self) -> None:
        """Begin the tree again."""
        self.process = _begun(self.home, self.folder, self.port)
        await_so(lambda: _is_ready(self), START_SECONDS, f"the start of the {self.folder}")

    def left(self) -> list[psutil.Process]:
        """Processes of the deployments that there are."""
        return [one for one in psutil.process_iter() if _home(one).startswith(str(self.home / self.folder))]


def _is_dead(process: psutil.Process) -> bool:
    """Return whether a process is gone; one that its parent has not asked for does nothing any more."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _home(process: psutil.Process) -> str:
    try:
        return process.environ().get("CLIMATE_HOME", "")
    except psutil.Error:
        return ""


def environ_of(home: Path, port: int) -> dict[str, str]:
    """Return the environment of commands that work with the tree."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLIMATE_", "OS_"))}
    path = os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", "")))
    own = {"CLIMATE_HOME": str(home), "CLIMATE_PORT": str(port), "CLIMATE_ZONE_POLL_SECONDS": "1", **PATIENT}
    return {**kept, **own, "PATH": path, "NO_COLOR": "1"}


def free_ports(count: int) -> int:
    """The first of so many free ports in a row.

    Each process of a test run looks among ports of its own: a tree takes its ports one by one while it starts.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    for first in range(21000 + 1000 * worker, 22000 + 1000 * worker, 10):
        with suppress(OSError):
            for port in range(first, first + count):
                socket.create_server(("127.0.0.1", port)).close()
            return first
    raise AssertionError("there are no free ports in a row")


def zone_tree(home: Path) -> AbstractContextManager[ZoneTree]:
    """The tree of zones while the block lasts."""
    return demo_tree(home, "zones", free_ports(len(ZONES)))


@contextmanager
def demo_tree(home: Path, folder: str, port: int) -> Iterator[ZoneTree]:
    """A tree while the block lasts; in the end it stops by itself and leaves no process."""
    tree = ZoneTree(home, port, _begun(home, folder, port), folder)
    try:
        await_so(lambda: _is_ready(tree), START_SECONDS, f"the start of the {folder}")
        yield tree
    finally:
        for api in tree.apis.values():
            api.close()
        running = (*tree.restarted, tree.process)
        for one in running:
            one.send_signal(signal.SIGTERM)
        results: list[Any] = [one.wait(300) for one in running]
    assert results[-1] == 0, tree.output.read_text()
    await_so(lambda: not tree.left(), 60, "the end of all processes")


def _begun(home: Path, folder: str, port: int) -> "subprocess.Popen[bytes]":
    with (home / "demo.log").open("wb") as log:
        return subprocess.Popen(
            [*CLIMATE, "up", "--demo", folder],
            env=environ_of(home, port),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _is_ready(tree: ZoneTree) -> bool:
    assert tree.process.poll() is None, tree.output.read_text()
    return f"the {tree.folder} are ready" in tree.output.read_text()
