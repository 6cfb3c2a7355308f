"""The drivers under test, and how a test looks at their guests from outside."""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import psutil
import pytest

from climate.compute.clusters.cluster_spec import CLUSTER, ClusterSpec, MemberSpec
from climate.compute.linux import processes as pids
from climate.compute.models.node import NodeSpec
from climate.compute.virt import Guest, Interface, State, VirtDriver
from climate.compute.virt.containers.driver import BubblewrapContainer
from climate.compute.virt.guest_folders import MARK, Homes
from climate.compute.virt.hypervisor_cluster.driver import HypervisorClusterDriver
from climate.compute.virt.in_memory import MemoryDriver
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.compute.virt.process import ProcessDriver
from climate.compute.virt.qemu.driver import QemuDriver
from tests.compute.cloud_factory import node
from tests.compute.virt import boot_sector

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds after which a test gives up waiting for what a guest does."""

ENDING = 60.0
"""Seconds in which what has been killed is gone."""

HOSTILE = "web\n../../x; $(reboot) ,id=y,format=raw '\"\\ \u202e"


@dataclass
class Subject:
    """A driver, whatever knows its guests from outside, and an image that it understands."""

    driver: VirtDriver
    again: Callable[[], VirtDriver]
    """Another object for the same guests, as after a restart of the service."""
    homes: Homes | None = None
    """None: its guests are nowhere but in memory."""
    image: Path | None = None
    ticks: bool = False
    """Its guests print for as long as they run."""
    made: list[str] = field(default_factory=list)

    def guest(self, name: str = "web", **wanted: object) -> Guest:
        card = Interface("fa:16:3e:00:00:02", ("10.10.0.2",))
        given = {"id": str(uuid4()), "name": name, "node": "n1", "interfaces": (card,), "image": self.image}
        guest = Guest(**{**given, "ram_mb": 8, **wanted})  # type: ignore[arg-type]
        self.made.append(guest.id)
        return guest

    def state(self, guest: Guest) -> State | None:
        """What the driver finds; None: there is nothing of the guest."""
        memory = self._memory()
        return memory.guests.get(guest.id) if memory else self.driver.states().get(guest.id)

    def pid(self, guest: Guest) -> pids.Pid:
        assert self.homes is not None
        pid = self.homes.pid(guest.id)
        assert pid is not None
        return pid

    def processes(self, guest: Guest) -> list[str]:
        """The command lines of all processes that have to do with a guest: by their words, surroundings or files."""
        if self.homes is None:
            return []
        words, home = f"{MARK}={guest.id}".encode(), str(self.homes.of(guest.id))
        return [line for number in psutil.pids() if (line := _concerned(number, words, home)) is not None]

    def kill(self, guest: Guest) -> None:
        """As the system does it when memory runs out."""
        pid = self.pid(guest)
        os.kill(pid.number, signal.SIGKILL)
        assert pids.wait_gone(pid, PATIENCE)

    def left(self, guest: Guest) -> list[str]:
        """What there still is of a guest, processes and files, but for what is just ending."""
        if self.homes is None:
            return []
        home, ending = self.homes.of(guest.id), list(pids.carrying({MARK: guest.id}))
        lasting = [pid for pid in ending if not pids.wait_gone(pid, ENDING)]
        return [*map(str, lasting), *([str(home)] if home.exists() else [])]

    def said(self, guest: Guest, words: str = "boot finished") -> str:
        """The console, once it has these words."""
        return until(lambda: words in (said := self.driver.console(guest, None)) and said, f"no {words!r}")

    def goes_on(self, guest: Guest) -> None:
        """Return when the guest is seen to run."""
        if self.ticks:
            before = len(self.driver.console(guest, None))
            until(lambda: len(self.driver.console(guest, None)) > before, "it stands still")
        elif self.homes is not None:
            self.said(guest)
            assert pids.state(self.pid(guest)) not in (None, *pids.STOPPED)

    def stands_still(self, guest: Guest) -> None:
        """Return when the guest is seen not to run, though it is there."""
        if self.ticks:
            before = self.driver.console(guest, None)
            time.sleep(0.15)  # nothing can be awaited: nothing is what must happen, for two or three ticks
            assert self.driver.console(guest, None) == before
        elif self.homes is not None:
            assert pids.state(self.pid(guest)) in pids.STOPPED

    def _memory(self) -> MemoryDriver | None:
        if isinstance(self.driver, MemoryDriver):
            return self.driver
        member = self.driver.members.get("it") if isinstance(self.driver, MultiNodeDriver) else None
        return member if isinstance(member, MemoryDriver) else None


def _concerned(number: int, words: bytes, home: str) -> str | None:
    """The command line of a process that has these words in its environment, or anything in this folder."""
    folder = Path("/proc", str(number))
    try:
        line = (folder / "cmdline").read_bytes()
        links = [folder / "cwd", folder / "root", *(folder / "fd").iterdir()]
        found = words in (folder / "environ").read_bytes() or home.encode() in line
        found = found or any(os.readlink(link).startswith(home) for link in links)
    except OSError:  # it has ended, or it is the kernel's
        return None
    return line.replace(b"\0", b" ").decode(errors="replace") if found else None


def until(look: Callable[[], T], fault: str) -> T:
    """What `look` answers once it answers anything."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := look()):
        assert time.monotonic() < deadline, fault
        time.sleep(0.01)
    return answer


def memory(folder: Path) -> Subject:
    driver = MemoryDriver([node("n1")])
    return Subject(driver, lambda: driver)


def process(folder: Path) -> Subject:
    def make() -> ProcessDriver:
        return ProcessDriver(folder / "servers", stop_seconds=2)

    return Subject(make(), make, make().homes)


def clustered(member: Subject) -> Subject:
    def make(driver: VirtDriver) -> MultiNodeDriver:
        return MultiNodeDriver(lambda: [node("n1", driver="it")], {"it": driver})

    return Subject(make(member.driver), lambda: make(member.again()), member.homes, member.image, member.ticks)


def cluster_of_memory(folder: Path) -> Subject:
    return clustered(memory(folder))


def cluster_of_processes(folder: Path) -> Subject:
    return clustered(process(folder))


def summed(member: Subject, folder: Path) -> Subject:
    """Guests of a node that is a cluster of two members."""
    sizes = {"driver": "it", "vcpus": 8, "memory_mb": 8192, "local_gb": 100}
    members = (MemberSpec("left", **sizes), MemberSpec("right", **sizes))  # type: ignore[arg-type]

    def make(driver: VirtDriver) -> MultiNodeDriver:
        specs = [NodeSpec("n1", 0, 0, 0, driver=CLUSTER, cluster=ClusterSpec(members))]
        drivers = {"it": driver}
        summing = HypervisorClusterDriver(lambda: specs, drivers, folder)
        return MultiNodeDriver(lambda: specs, {**drivers, CLUSTER: summing})

    return Subject(make(member.driver), lambda: make(member.again()), member.homes, member.image, member.ticks)


def one_node_of_memory(folder: Path) -> Subject:
    return summed(memory(folder), folder)


def one_node_of_processes(folder: Path) -> Subject:
    return summed(process(folder), folder)


def one_node_of_machines(folder: Path) -> Subject:
    return summed(qemu(folder), folder)


def one_node_of_containers(folder: Path) -> Subject:
    return summed(container(folder), folder)


def qemu(folder: Path) -> Subject:
    image = folder / "boot-sector"
    image.write_bytes(boot_sector.image())
    home = folder / "deep, and with a comma" / ("x" * 100) / "machines"

    def make() -> QemuDriver:
        return QemuDriver(home, accel="tcg", stop_seconds=5)

    return Subject(make(), make, make().homes, image, ticks=True)


def container(folder: Path) -> Subject:
    def make() -> ProcessDriver:
        return ProcessDriver(folder / "containers", BubblewrapContainer(), stop_seconds=2)

    return Subject(make(), make, make().homes)


MAKERS = (
    *(memory, process, cluster_of_memory, cluster_of_processes, qemu, container),
    *(one_node_of_memory, one_node_of_processes, one_node_of_machines, one_node_of_containers),
)
SUBJECTS = {one.__name__: one for one in MAKERS}


def cannot(reason: str) -> None:
    """Skip the test, unless every driver is required to work here."""
    if os.environ.get("CLIMATE_TEST_DRIVERS") == "required":
        pytest.fail(reason)
    pytest.skip(reason)
