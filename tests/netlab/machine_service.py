"""A compute service of a machine of its own, spoken to by lines of JSON.

It is started in the network of a lab's host, and in a view of the files in which the homes of others are empty.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import structlog

from climate import compute
from climate.compute import Compute
from climate.compute.clusters.cluster_spec import CLUSTER
from climate.compute.clusters.remote_members import RemoteMembers
from climate.compute.nodes import services
from climate.compute.nodes.nodes_file import NodesFile
from climate.compute.servers import sync_states
from climate.compute.servers.tasks import task_worker
from climate.compute.virt.hypervisor_cluster.driver import Find, HypervisorClusterDriver, nowhere
from climate.compute.virt.live_migrator import Limits
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.compute.virt.qemu.driver import QemuDriver
from climate.compute.virt.qemu.migration_ports import PortRange
from climate.identity.keys import KeyRing
from climate.sealed_secrets import Vault
from climate.store.engine import connect

LIMITS, LOOK_SECONDS = Limits(seconds=120, stall_seconds=8), 0.05

NODE = "- {{name: {}, driver: qemu, vcpus: 4, memory_mb: 4096, local_gb: 20}}\n"


ROOT = Path(__file__).parents[2]


@dataclass
class MachineService:
    """The service as a test sees it: `name` is that of its host in the lab, of its node and of itself."""

    name: str
    home: Path
    again: Callable[[], subprocess.Popen[str]] = field(repr=False)
    """Starts its process."""
    process: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        self.process = self.again()

    def ask(self, verb: str, *words: str) -> Any:
        """Have it do something; its answer."""
        self.tell(verb, *words)
        return self.answer()

    def tell(self, verb: str, *words: str) -> None:
        """Have it begin something."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([verb, *words]) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """What it answers to the last that it was told."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the service of {self.name} has ended"
        return json.loads(line)

    def end(self) -> None:
        """End it by force."""
        self.process.kill()
        self.process.communicate()

    def disk(self, server_id: str) -> Path:
        return self.home / "machines" / server_id / "disk.qcow2"


def start(name: str, home: Path, hidden: Path, shared: Path, database: str, address: str) -> MachineService:
    """Start a service in the network of the host `name`; the folder `hidden` is empty for it."""
    own = ("-m", "tests.netlab.machine_service", name, str(home), str(shared), database, address)
    script = 'mount -t tmpfs tmpfs "$0" && exec "$@"'
    words = ("ip", "netns", "exec", name, "sh", "-c", script, str(hidden), sys.executable, *own)

    def again() -> subprocess.Popen[str]:
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    return MachineService(name, home, again)


@dataclass
class Rings:
    """A doorbell that only remembers."""

    rung: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, service_host: str, /, *server_ids: str) -> None:
        self.rung += [(service_host, server_id) for server_id in server_ids]


def driver(home: Path, address: str | None = None, find: Find = nowhere) -> MultiNodeDriver:
    """The driver of a service; `address`: where it takes guests of other machines; `find`: members of its clusters."""
    listening = None if address is None else PortRange.of(address)
    machines = QemuDriver(home / "machines", "tcg", stop_seconds=1, listening=listening)
    read = NodesFile(home, "nodes.yaml").nodes
    summing = HypervisorClusterDriver(read, {"qemu": machines}, home, find_elsewhere=find, live_limits=LIMITS)
    return MultiNodeDriver(read, {"qemu": machines, CLUSTER: summing})


def vault(shared: Path) -> Vault:
    """The vault that all services of the cloud open."""
    return Vault(KeyRing(shared / "keys", name="secret").fernet)


def serve(own: Compute) -> None:
    """Carry out what clusters order of this service, until the process ends."""
    while True:
        for host, order in task_worker.unfinished(own, wait=0):
            if host == own.service_host:
                task_worker.run_task(own, order)
        time.sleep(LOOK_SECONDS)


def main(name: str, home: Path, shared: Path, database: str, address: str) -> None:
    """Do what is asked until nothing more comes."""
    # Answers are all that is on the standard output.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    engine, rings = connect(database, pool_size=4), Rings()
    elsewhere = RemoteMembers(engine, home.resolve(), name, lambda: None, 60.0, vault=vault(shared))
    made = compute.build(engine, home=home, service_host=name, cast=rings, driver=driver(home, address, elsewhere.find))
    own = replace(made, vault=vault(shared), live_limits=LIMITS)
    for line in sys.stdin:
        verb, *words = json.loads(line)
        if verb == "refresh":
            services.refresh(own)
        elif verb == "reconcile":
            sync_states.reconcile(own)
        elif verb == "serve":
            threading.Thread(target=serve, args=(own,), daemon=True).start()
        elif verb == "carry out":
            task_worker.run_task(own, words[0])
        states = {server: state.value for server, state in own.driver.states().items()}
        sys.stdout.write(json.dumps({"rung": rings.rung, "states": states}) + "\n")
        sys.stdout.flush()
        rings.rung.clear()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], sys.argv[5])
