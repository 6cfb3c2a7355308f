"""`climate up --demo zones` as a child of the tests: four deployments, one of which may be killed and begun again."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.system.caller import Api
from tests.system.stack import CLIMATE, ROOT, await_so

START_SECONDS = 900.0
SECONDS = 300.0
"""Longest time until something is done, on a busy machine."""
C = "/compute/v2.1"
ZONES = ("parent", "child-1", "child-2", "grandchild")


@dataclass
class ZoneTree:
    """The tree, its output, and deployments that were begun again."""

    home: Path
    port: int
    process: "subprocess.Popen[bytes]"
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
            self.apis[key] = Api(self.home / "zones" / zone, cloud)
        return self.apis[key]

    def active(self) -> dict[str, int]:
        """The children of the parent that have answered a poll and are active: their ids by name."""
        zones = self.api("parent").read(f"{C}/zones/detail")["zones"]
        return {zone["name"]: zone["id"] for zone in zones if zone["is_active"] and zone["name"]}

    def database_url(self, zone: str) -> str:
        """The database of a deployment, as it is in this moment."""
        path = self.home / "zones" / zone / "stores.json"
        return str(json.loads(path.read_text(encoding="utf-8"))["database_url"])

    def run(self, zone: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """A `climate` command against a deployment."""
        environ = {**self.environ, "CLIMATE_HOME": str(self.home / "zones" / zone)}
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
        top = self._top(zone)
        environ = top.environ()
        family = [top, *top.children(recursive=True)]
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(family, 60)
        return environ

    def begin(self, environ: Mapping[str, str]) -> None:
        """Begin a deployment again that was killed."""
        with (self.home / "again.log").open("ab") as log:
            words = [*CLIMATE, "up", "--demo"]
            started = subprocess.Popen(words, env=dict(environ), stdout=log, stderr=log, start_new_session=True)
        self.restarted.append(started)

    def _top(self, zone: str) -> psutil.Process:
        home = str(self.home / "zones" / zone)
        begun = [psutil.Process(one.pid) for one in self.restarted if one.poll() is None]
        known = [*psutil.Process(self.process.pid).children(), *begun]
        found = [one for one in known if _home(one) == home]
        assert len(found) == 1, (zone, found)
        return found[0]


def _home(process: psutil.Process) -> str:
    try:
        return process.environ().get("CLIMATE_HOME", "")
    except psutil.Error:
        return ""


def environ_of(home: Path, port: int) -> dict[str, str]:
    """Return the environment of commands that work with the tree."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CLIMATE_", "OS_"))}
    path = os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", "")))
    own = {"CLIMATE_HOME": str(home), "CLIMATE_PORT": str(port), "CLIMATE_ZONE_POLL_SECONDS": "1"}
    return {**kept, **own, "PATH": path, "NO_COLOR": "1"}


def free_ports(count: int) -> int:
    """The first of so many free ports in a row."""
    for first in range(21000, 60000, 10):
        with suppress(OSError):
            for port in range(first, first + count):
                socket.create_server(("127.0.0.1", port)).close()
            return first
    raise AssertionError("there are no free ports in a row")


@contextmanager
def zone_tree(home: Path) -> Iterator[ZoneTree]:
    """The tree while the block lasts; in the end it stops by itself and leaves no process."""
    port = free_ports(len(ZONES))
    with (home / "demo.log").open("wb") as log:
        process = subprocess.Popen(
            [*CLIMATE, "up", "--demo", "zones"],
            env=environ_of(home, port),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    tree = ZoneTree(home, port, process)
    try:
        await_so(lambda: _is_ready(tree), START_SECONDS, "the start of the zones")
        yield tree
    finally:
        for api in tree.apis.values():
            api.close()
        for one in (*tree.restarted, process):
            one.send_signal(signal.SIGTERM)
        results: list[Any] = [one.wait(300) for one in (*tree.restarted, process)]
    assert results[-1] == 0, tree.output.read_text()
    assert not [one for one in psutil.process_iter() if _home(one).startswith(str(home / "zones"))]


def _is_ready(tree: ZoneTree) -> bool:
    assert tree.process.poll() is None, tree.output.read_text()
    return "the zones are ready" in tree.output.read_text()
