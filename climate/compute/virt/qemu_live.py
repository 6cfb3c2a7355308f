"""Live migration of virtual machines between two QEMUs on one machine.

The destination's QEMU waits in the folder `incoming` of the server's folder, which holds its
`pid`, its monitor `qmp`, and `nbd`, the socket over which it gets the disk.  The sender
speaks to both monitors, and connects them by a pair of sockets that has no name, so that
nobody else can read or write a guest's memory.

A QEMU that has got all memory stands still until it is told to go on.  It is told so only
after the other has ended: at no moment do both run, and until then the other can go on.
"""

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Any
from uuid import uuid4

from climate.compute.errors import VirtError
from climate.compute.linux import processes
from climate.compute.virt import Guest, Interface, cables, config_drive, disks, qmp
from climate.compute.virt.handover import Handover
from climate.compute.virt.homes import PID, PREPARED, Homes, as_virt_error, kill
from climate.compute.virt.live import Limits, Watch
from climate.compute.virt.machine import (
    DISK,
    DISK_NODE,
    DISK_PROGRAM,
    PROGRAM,
    Machine,
    accelerator,
    command,
    program_path,
)

INCOMING, TOKEN, COPY, LOG = "incoming", "offered", "copy", "qemu.log"
"""`COPY` is in the folder of a QEMU that waits for its disk too."""

WAITS_IN = "CLIMATE_INCOMING"
"""In the environment of a QEMU that waits: the server's folder, so that it is found without its pid file."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class QemuMigrator:
    """Moves guests from and to the folders of `homes`; a monitor answers within `seconds`."""

    homes: Homes
    accel: str
    seconds: float

    @as_virt_error
    def offer(self, guest: Guest) -> Mapping[str, Any]:
        home, pid = self.homes.of(guest.id), self.homes.pid(guest.id)
        if pid is None:
            raise VirtError(f"server {guest.id} has no process: only one that is running or paused is migrated live")
        with qmp.connect(home, self.seconds) as monitor:
            status = monitor.status()
            cards = [card["main-mac"] for card in monitor.ask("query-rx-filter")]
            nodes = monitor.ask("query-named-block-nodes", flat=True)
        if status not in ("running", "paused"):
            raise VirtError(f"server {guest.id} is in state {status} of QEMU: it must be running or paused")
        token = str(uuid4())
        (home / TOKEN).write_text(token, encoding="ascii")
        size = next(int(one["image"]["virtual-size"]) for one in nodes if one["node-name"] == DISK_NODE)
        told = {"token": token, "machine": _machine(), "pid": str(pid), "running": status == "running"}
        drive = home / config_drive.DISK
        return {**told, "macs": cards, "disk_bytes": size, "config_drive": str(drive) if drive.exists() else None}

    @as_virt_error
    def receive(self, guest: Guest, offer: Mapping[str, Any]) -> Mapping[str, Any]:
        if offer["machine"] != _machine():
            raise VirtError("the two nodes are on different machines, between which there is only cold migration")
        self.drop(guest.id)
        home = self.homes.of(guest.id)
        shared = _token(home) == offer["token"]
        if not shared and self.homes.pid(guest.id) is not None:
            raise VirtError(f"server {guest.id} is running here already")
        waits = home / INCOMING
        waits.mkdir(mode=0o700, parents=True)
        if not shared:
            (waits / COPY).touch()
            (home / DISK).unlink(missing_ok=True)
            disks.create(program_path(DISK_PROGRAM), home / DISK, offer["disk_bytes"])
            # Byte for byte: the guest goes on with the parts of it that it has in memory.
            (home / config_drive.DISK).unlink(missing_ok=True)
            if offer["config_drive"] is not None:
                shutil.copy(offer["config_drive"], home / config_drive.DISK)
        wanted = replace(guest, interfaces=_as_sent(guest.interfaces, offer["macs"]))
        cables.write_file(home, wanted)
        self._spawn(wanted, home, processes.parsed(offer["pid"]))
        try:
            with qmp.connect(waits, self.seconds) as monitor:
                monitor.status()
        except VirtError as error:
            words = self.homes.last_words(guest.id, LOG)
            self.drop(guest.id)
            raise VirtError(f"{error}{words}") from error
        return {**offer, "home": str(home), "shared": shared}

    @as_virt_error
    def send(self, guest: Guest, arrangement: Mapping[str, Any], limits: Limits, watch: Watch) -> None:
        theirs = Path(arrangement["home"])
        source, target = processes.parsed(arrangement["pid"]), processes.read(theirs / INCOMING / PID)
        if source is None or target is None:
            raise VirtError(f"the machine that waits for server {guest.id} cannot be found")
        Handover(
            self.homes.of(guest.id),
            theirs / INCOMING,
            source,
            target,
            running=arrangement["running"],
            copied=not arrangement["shared"],
            limits=limits,
            seconds=self.seconds,
        ).run(watch)

    @as_virt_error
    def keep(self, guest: Guest) -> None:
        home = self.homes.of(guest.id)
        waits = home / INCOMING
        if waits.is_dir():
            if (waits / PID).exists() and processes.state(processes.read(waits / PID)) is None:
                raise VirtError(f"server {guest.id} has ended{self.homes.last_words(guest.id, LOG)}")
            # The process last: from then on the monitor of the folder is taken for its own.
            for name in (qmp.SOCKET, PID):
                if (waits / name).exists():
                    (waits / name).replace(home / name)
            for name in (TOKEN, PREPARED):
                (home / name).unlink(missing_ok=True)
            shutil.rmtree(waits)
        if self.homes.pid(guest.id) is None:
            raise VirtError(f"server {guest.id} has ended{self.homes.last_words(guest.id, LOG)}")

    @as_virt_error
    def drop(self, server_id: str) -> None:
        home = self.homes.of(server_id)
        waits, ordinary = home / INCOMING, self.homes.pid(server_id)
        recorded = processes.read(waits / PID)
        found = [*((recorded,) if recorded else ()), *processes.carrying({WAITS_IN: str(home)})]
        kill(pid for pid in found if pid != ordinary)
        if (waits / COPY).exists() and ordinary is None:
            self.homes.remove(server_id)
        elif waits.is_dir():
            shutil.rmtree(waits)

    @as_virt_error
    def clear(self, guest: Guest, arrangement: Mapping[str, Any]) -> None:
        if not arrangement["shared"]:
            self.homes.remove(guest.id)

    @as_virt_error
    def waiting(self) -> Collection[str]:
        return [server_id for server_id in self.homes.ids() if (self.homes.of(server_id) / INCOMING).is_dir()]

    def _spawn(self, guest: Guest, home: Path, source: processes.Pid | None) -> None:
        environment, waits = {"PATH": "/usr/bin:/bin", WAITS_IN: str(home)}, home / INCOMING
        with (
            qmp.listen(waits) as monitor,
            self.homes.open_log(guest.id, LOG) as log,
            FileIO(os.devnull) as nothing,
            cables.opened(guest, beside=source.number if source else None) as taps,
        ):
            kind = accelerator(self.accel)
            machine = Machine(program_path(PROGRAM), kind, home, monitor.fileno(), taps=taps, incoming=True)
            passed = [monitor.fileno(), *taps.values()]
            number = processes.spawn(command(machine, guest), environment, nothing.fileno(), log.fileno(), passed)
        pid = processes.of(number)
        if pid is None:
            raise VirtError(f"the machine that was to wait ended at once{self.homes.last_words(guest.id, LOG)}")
        processes.write(waits / PID, pid)


def _as_sent(interfaces: Sequence[Interface], macs: Sequence[str]) -> tuple[Interface, ...]:
    """The interfaces that the guest was started with: those of later hang on it only after its next start."""
    there = {one.mac: one for one in interfaces}
    return tuple(there.get(mac, Interface(mac)) for mac in macs)


def _machine() -> str:
    """The machine, until it is started again."""
    return _BOOT_ID.read_text(encoding="ascii").strip()


def _token(home: Path) -> str | None:
    try:
        return (home / TOKEN).read_text(encoding="ascii")
    except FileNotFoundError:
        return None
