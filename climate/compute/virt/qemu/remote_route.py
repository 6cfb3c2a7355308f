"""The way between QEMUs of two machines, under TLS; the sender speaks to its own monitor alone.

The QEMU that waits stands still with all of the guest until the service of the destination
tells it to go on.  That service does so only once the sender has written into the database
that the source has ended: so nobody who is cut off from the other can make it run twice.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climate.compute.errors import VirtError
from climate.compute.virt.qemu import disk_mirror, migration_tls, qmp
from climate.compute.virt.qemu.command_line import CONFIG_NODE, DISK_NODE
from climate.compute.virt.qemu.memory_transfer import BEGUN, STEP_SECONDS, able
from climate.compute.virt.qemu.migration_ports import Listening, connected
from climate.compute.virt.qemu.migration_tls import CLIENT, SERVER, Credentials

OFFERED, ARRIVED = "offered", "arrived"
"""Files in the folder of a guest at the source: the token of its offer; the one under which it has arrived."""

_STREAM, _COPY_OF_CONFIG = "climate-memory", "config-copy"
_ANNOUNCED: Mapping[str, Any] = {"initial": 50, "max": 550, "rounds": 10, "step": 100}
"""In milliseconds: switches learn the new place of its MACs although a packet is lost."""

_LATE = "late-block-activate"
"""A QEMU takes its disks only when its guest goes on, and not while they are being copied."""

_SETTLE_SECONDS = 5.0
"""Longest time from when the source's QEMU is told that all has arrived until the other says so itself."""


@dataclass(frozen=True)
class RouteBetweenMachines:
    """From the folder `home` to the ports of a QEMU at `address`."""

    home: Path
    address: str
    memory_port: int
    disk_port: int
    credentials: Credentials
    disks: Sequence[str]
    seconds: float
    """Longest time for one answer of a monitor."""

    confirms = True

    @property
    def since(self) -> float:
        return (self.home / OFFERED).stat().st_mtime

    def is_begun(self) -> bool:
        return self._says(BEGUN)

    def begin(self) -> None:
        self._say(BEGUN)

    def copy_disks(self, ours: qmp.Monitor) -> None:
        for node in self.disks:
            with connected(self.address, self.disk_port) as stream:
                disk_mirror.copy(ours, node, stream, self.credentials.name)

    def prepare(self, ours: qmp.Monitor) -> None:
        migration_tls.give(ours, self.home, self.credentials, CLIENT)

    def send_memory(self) -> None:
        with connected(self.address, self.memory_port) as stream, qmp.connect(self.home, self.seconds) as ours:
            ours.ask("getfd", [stream.fileno()], fdname=_STREAM)
            ours.ask("migrate", uri=f"fd:{_STREAM}")

    def copied(self) -> None:
        """Nothing: the destination stops it before the guest goes on."""

    def arrived(self, deadline: float) -> None:
        """Write down what the source's QEMU has been told by the other: it ends next, and could not be asked."""
        self._say(ARRIVED)

    def go_on(self) -> None:
        if not self._says(ARRIVED):
            raise VirtError("the guest has ended before all of it had arrived")

    def give_up(self) -> None:
        (self.home / ARRIVED).unlink(missing_ok=True)

    def forget(self, ours: qmp.Monitor) -> None:
        migration_tls.forget(ours, self.home)

    def _says(self, name: str) -> bool:
        with suppress(FileNotFoundError):
            return (self.home / name).read_text(encoding="ascii") == self.credentials.token
        return False

    def _say(self, name: str) -> None:
        draft = self.home / f"{name}.new"
        draft.write_text(self.credentials.token, encoding="ascii")
        draft.replace(self.home / name)


def open_ports(
    monitor: qmp.Monitor, waits: Path, listening: Listening, own: Credentials, config: Path | None
) -> Mapping[str, Any]:
    """Have the QEMU that waits listen for memory and disks; where, as `send` is told.

    `config`: its config drive, to be filled; None: it has none.
    """
    migration_tls.give(monitor, waits, own, SERVER)
    able(monitor, {_LATE: True})
    exports = {DISK_NODE: DISK_NODE}
    if config is not None:
        file = {"driver": "file", "filename": str(config)}
        monitor.ask("blockdev-add", driver="raw", node_name=_COPY_OF_CONFIG, file=file)
        exports[CONFIG_NODE] = _COPY_OF_CONFIG
    with listening.bound() as stream:
        disk_mirror.serve(monitor, stream, exports, own.name)
        disk_port = stream.getsockname()[1]
    monitor.ask("migrate-incoming", uri=listening.uri)
    (place,) = monitor.ask("query-migrate")["socket-address"]
    ports = {"memory_port": int(place["port"]), "disk_port": int(disk_port)}
    return {"address": listening.address, **ports, "disks": list(exports)}


def settled(monitor: qmp.Monitor) -> str:
    """Return the state of a guest whose memory has been sent, once its QEMU has read the last of it."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    while (status := monitor.status()) == "inmigrate" and time.monotonic() < deadline:
        time.sleep(STEP_SECONDS)
    return status


def take_over(monitor: qmp.Monitor, waits: Path, *, running: bool) -> None:
    """Have a guest that has arrived go on, when `running`, and tell its switches where it is; nothing when it runs.

    Raises VirtError when it has not arrived.
    """
    status = settled(monitor)
    if status not in ("paused", "running"):
        raise VirtError(f"QEMU says {status} of a guest that should have arrived")
    if status == "paused":
        disk_mirror.stop_serving(monitor)
        if any(node["node-name"] == _COPY_OF_CONFIG for node in monitor.ask("query-named-block-nodes", flat=True)):
            monitor.ask("blockdev-del", node_name=_COPY_OF_CONFIG)
        if running:
            monitor.ask("cont")
    with suppress(VirtError, OSError):  # a slow monitor must not end a guest that goes on
        monitor.ask("announce-self", **_ANNOUNCED)
        able(monitor, {_LATE: False})
        migration_tls.forget(monitor, waits)
