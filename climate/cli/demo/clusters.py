"""Demo stack of `climate up --demo clusters`: one cluster; one of its members has a compute service of its own.

The members share the folders of images, volumes and guests, as on storage that several machines reach.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from climate.cli.connection.client import Client
from climate.cli.connection.clouds import find
from climate.cli.connection.session import Session
from climate.cli.demo import stack as demo_stack
from climate.cli.demo.stack import Stack
from climate.cli.errors import TIMEOUT, USAGE, Failure
from climate.cli.operations.journal import with_stores
from climate.embedded import spawn
from climate.settings import Settings

FOLDER = "clusters"
"""The home of this demo in CLIMATE_HOME."""

NODE, NEAR, FAR, SPARE = "sum", "near", "far", "spare"
"""The cluster, and its members: NEAR and SPARE are at its own service, FAR is behind the service RACK."""
RACK = "rack-1"
SIZES = {"vcpus": 4, "memory_mb": 4096, "local_gb": 40}
"""Size of each member: MB of memory, GB of disk."""
BALANCE_PERCENT = 10
NODES_FILE = "nodes.yaml"
SHARED = ("images", "volumes", "keys", "servers", "containers", "machines", "services")
"""Folders of the cluster's home that the service of a member shares."""

SETTINGS = {
    "CLIMATE_NETWORK_DRIVER": "recording",
    "CLIMATE_SERVICE_DOWN_SECONDS": "30",
    "CLIMATE_COMPUTE_HOST": "head",
    "CLIMATE_NODES_FILE": NODES_FILE,
}
"""Addresses of a member behind another service, which are recorded only."""

SETTLE_SECONDS = 180.0
"""Timeout until the node has the size of all its members, on a slow machine."""
STOP_SECONDS = 30.0


@dataclass
class Rack:
    """The compute service of a member: a worker with its own home."""

    environ: Mapping[str, str]
    worker: "subprocess.Popen[bytes] | None" = None

    @property
    def _program(self) -> spawn.Program:
        argv = (sys.executable, "-m", "climate", "worker")
        return spawn.Program(RACK, argv, self.environ, stop_seconds=STOP_SECONDS)

    def start(self) -> None:
        """Start the worker, which ends with this process."""
        log = Path(self.environ["CLIMATE_HOME"]) / "worker.log"
        with log.open("ab") as output:
            self.worker = spawn.start(self._program, output)

    def kill(self) -> None:
        """Kill the worker and its children as `kill -9` does; its servers keep running."""
        if self.worker is not None:
            spawn.kill_group(self.worker.pid)
            self.worker.wait()

    def stop(self) -> None:
        """Stop the worker."""
        if self.worker is not None:
            spawn.stop(self.worker, self._program)


@dataclass
class Ground:
    """The home of the demo and the members of its cluster."""

    home: Path
    members: list[dict[str, object]] = field(default_factory=list)
    """The members of the cluster, as entries of the nodes file."""

    @property
    def memory_mb(self) -> int:
        """Return the memory of all members in MB."""
        return SIZES["memory_mb"] * len(self.members)

    def furnish(self) -> None:
        """Write the nodes files of both services, and share their folders."""
        self.members = [{"name": NEAR, **SIZES}, {"name": FAR, "service": RACK}]
        self._write()
        rack = self.home / RACK
        _write(rack, {"name": FAR, "cluster": NODE, **SIZES})
        for name in SHARED:
            (self.home / name).mkdir(mode=0o700, exist_ok=True)
            if not (rack / name).is_symlink():
                shutil.rmtree(rack / name, ignore_errors=True)
                (rack / name).symlink_to(Path(os.pardir, name))

    def join(self, name: str) -> None:
        """Add a member to the cluster's own service."""
        self.members.append({"name": name, **SIZES})
        self._write()

    def _write(self) -> None:
        cluster = {"name": NODE, "driver": "cluster", "balance_percent": BALANCE_PERCENT}
        _write(self.home, {**cluster, "members": self.members})


def _write(home: Path, node: Mapping[str, object]) -> None:
    """Write the nodes file of a service with one node atomically."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = home / f"{NODES_FILE}.new"
    draft.write_text(yaml.safe_dump([dict(node)], sort_keys=False), encoding="utf-8")
    draft.replace(home / NODES_FILE)


def surroundings(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the environment of the cluster's stack."""
    return {**environ, **SETTINGS, "CLIMATE_HOME": str(home)}


@contextlib.contextmanager
def running(
    environ: Mapping[str, str], waiting: Callable[[float], None] = lambda spent: None
) -> Iterator[tuple[Stack, Rack, Ground]]:
    """Run the stack of the cluster and the service of its member while the block lasts."""
    ground = Ground(Path(environ["CLIMATE_HOME"]))
    ground.furnish()
    with demo_stack.running(environ, waiting) as stack:
        rack = Rack(_environ_of_rack(environ, ground.home / RACK))
        rack.start()
        try:
            yield stack, rack, ground
        finally:
            rack.stop()


def _environ_of_rack(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    stores = with_stores(Settings.from_env(environ))
    own = {"CLIMATE_HOME": str(home), "CLIMATE_COMPUTE_HOST": RACK, "CLIMATE_NODES_FILE": NODES_FILE}
    urls = {"CLIMATE_DATABASE_URL": stores.database_url, "CLIMATE_REDIS_URL": stores.redis_url}
    return {**environ, **own, **urls, "CLIMATE_WORKER_QUEUES": "compute", "CLIMATE_WORKER_PROCESSES": "1"}


def run(session: Session, port: int | None) -> int:
    """Run the cluster until a signal asks for the end."""
    settings = session.settings
    if settings.database_url or settings.redis_url:
        raise Failure(
            "the demo has stores of its own, but CLIMATE_DATABASE_URL or CLIMATE_REDIS_URL is set", USAGE, "unset them"
        )
    home = settings.home.absolute() / FOLDER
    demo_stack.check_port(settings.host, port or settings.port)
    given = {**session.environ, "CLIMATE_PORT": str(port or settings.port), "CLIMATE_PUBLIC_URL": ""}
    session.say(f"starting a cluster at http://{settings.host}:{port or settings.port}, in {home}")
    with (
        contextlib.suppress(SystemExit, KeyboardInterrupt),
        running(surroundings(given, home)) as (stack, _, ground),
    ):
        _settle(stack, ground)
        session.say(f"the cluster is ready; try: CLIMATE_HOME={home} climate node list")
        threading.Event().wait()
    session.say("the cluster is stopped")
    return 0


def memory_mb(admin: Client) -> int:
    """Return the memory of the cluster's node in its last report in MB; 0 before the first report."""
    listed = admin.json("compute", "GET", "/os-hypervisors/detail")["hypervisors"]
    return next((int(one["memory_mb"]) for one in listed if one["hypervisor_hostname"] == NODE), 0)


def _settle(stack: Stack, ground: Ground) -> None:
    """Wait until the node has the size of all its members."""
    pause = threading.Event()
    admin = Client(find("climate", stack.environ, ground.home))
    try:
        for _ in range(int(SETTLE_SECONDS / 0.5)):
            if memory_mb(admin) == ground.memory_mb:
                return
            pause.wait(0.5)
    finally:
        admin.close()
    log = ground.home / RACK / "worker.log"
    raise Failure(f"{FAR} was not reported within {SETTLE_SECONDS:g} s", TIMEOUT, f"see {log}")
