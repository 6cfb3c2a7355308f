"""Migration route between QEMUs of two machines over TLS; the sender only controls its own monitor.

The waiting QEMU stays paused with the complete guest until the destination's service lets it run. That service does so
only after the sender recorded in the database that the source has ended. So a network partition cannot make the guest
run twice.
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
from climate.compute.virt.qemu.migration_ports import PortRange, connected
from climate.compute.virt.qemu.migration_tls import CLIENT, SERVER, Credentials

OFFERED, ARRIVED = "offered", "arrived"
"""Marker files at the source: the token of the offer, and the token under which the guest arrived."""

_STREAM, _COPY_OF_CONFIG = "climate-memory", "config-copy"
_ANNOUNCED: Mapping[str, Any] = {"initial": 50, "max": 550, "rounds": 10, "step": 100}
"""Milliseconds: repeated announcements, so that switches learn the new port of the MACs despite lost packets."""

_LATE = "late-block-activate"
"""QEMU activates its disks only when the guest runs, not during their copy."""

_SETTLE_SECONDS = 5.0
"""Longest time from when the source's QEMU is told that all has arrived until the other says so itself."""


@dataclass(frozen=True)
class RouteBetweenMachines:
    """Route from the folder `home` to the ports of a QEMU at `address`."""

    home: Path
    address: str
    memory_port: int
    disk_port: int
    credentials: Credentials
    disks: Sequence[str]
    seconds: float
    """Timeout in seconds of one monitor command."""

    confirms = True

    @property
    def since(self) -> float:
        return (self.home / OFFERED).stat().st_mtime

    def is_begun(self) -> bool:
        return self._says(BEGUN)

    def begin(self) -> None:
        self._announce(BEGUN)

    def copy_disks(self, monitor: qmp.Monitor) -> None:
        for node in self.disks:
            with connected(self.address, self.disk_port) as stream:
                disk_mirror.copy(monitor, node, stream, self.credentials.name)

    def prepare(self, monitor: qmp.Monitor) -> None:
        migration_tls.configure(monitor, self.home, self.credentials, CLIENT)

    def send_memory(self) -> None:
        with connected(self.address, self.memory_port) as stream, qmp.connect(self.home, self.seconds) as ours:
            ours.execute("getfd", [stream.fileno()], fdname=_STREAM)
            ours.execute("migrate", uri=f"fd:{_STREAM}")

    def copied(self) -> None:
        """Do nothing: the destination stops its NBD server before the guest runs."""

    def arrived(self, deadline: float) -> None:
        """Record the confirmation of the target's QEMU, because the source's QEMU ends next."""
        self._announce(ARRIVED)

    def resume_guest(self) -> None:
        if not self._says(ARRIVED):
            raise VirtError("the guest has ended before all of it had arrived")

    def abort(self) -> None:
        (self.home / ARRIVED).unlink(missing_ok=True)

    def forget(self, monitor: qmp.Monitor) -> None:
        migration_tls.forget(monitor, self.home)

    def _says(self, name: str) -> bool:
        with suppress(FileNotFoundError):
            return (self.home / name).read_text(encoding="ascii") == self.credentials.token
        return False

    def _announce(self, name: str) -> None:
        draft = self.home / f"{name}.new"
        draft.write_text(self.credentials.token, encoding="ascii")
        draft.replace(self.home / name)


def open_ports(
    monitor: qmp.Monitor, waits: Path, listening: PortRange, own: Credentials, config: Path | None
) -> Mapping[str, object]:
    """Let the waiting QEMU listen for memory and disks; return the addresses for `send`.

    `config`: config drive to fill; None: there is none.
    """
    migration_tls.configure(monitor, waits, own, SERVER)
    able(monitor, {_LATE: True})
    exports = {DISK_NODE: DISK_NODE}
    if config is not None:
        file = {"driver": "file", "filename": str(config)}
        monitor.execute("blockdev-add", driver="raw", node_name=_COPY_OF_CONFIG, file=file)
        exports[CONFIG_NODE] = _COPY_OF_CONFIG
    with listening.bound() as stream:
        disk_mirror.serve(monitor, stream, exports, own.name)
        disk_port = stream.getsockname()[1]
    monitor.execute("migrate-incoming", uri=listening.uri)
    (place,) = monitor.execute("query-migrate")["socket-address"]
    ports = {"memory_port": int(place["port"]), "disk_port": int(disk_port)}
    return {"address": listening.address, **ports, "disks": list(exports)}


def settled(monitor: qmp.Monitor) -> str:
    """Return the state of a guest whose memory has been sent, once its QEMU has read the last of it."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    while (status := monitor.status()) == "inmigrate" and time.monotonic() < deadline:
        time.sleep(STEP_SECONDS)
    return status


def take_over(monitor: qmp.Monitor, waits: Path, *, running: bool) -> None:
    """Let an arrived guest run, if `running`, and announce its MACs; do nothing if it runs.

    Raise VirtError if it has not arrived.
    """
    status = settled(monitor)
    if status not in ("paused", "running"):
        raise VirtError(f"QEMU says {status} of a guest that should have arrived")
    if status == "paused":
        disk_mirror.stop_serving(monitor)
        if any(node["node-name"] == _COPY_OF_CONFIG for node in monitor.execute("query-named-block-nodes", flat=True)):
            monitor.execute("blockdev-del", node_name=_COPY_OF_CONFIG)
        if running:
            monitor.execute("cont")
    with suppress(VirtError, OSError):  # a slow monitor must not end a guest that goes on
        monitor.execute("announce-self", **_ANNOUNCED)
        able(monitor, {_LATE: False})
        migration_tls.forget(monitor, waits)
