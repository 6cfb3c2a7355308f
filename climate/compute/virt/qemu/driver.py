"""Servers as virtual machines: one QEMU each, controlled by its monitor.

Each server has a folder with `pid` (number and start time), `prepared` (until its first start), `disk.qcow2` and
`console.log`. Beside them are `qmp` (socket of the monitor), `qemu.log` (errors), and `config.iso` (its config drive,
if any). `memory` exists while it is suspended, and `rescue.qcow2` while it is rescued. A QEMU process outlives the
service that started it.
"""

import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path

from climate.compute.errors import VirtError
from climate.compute.linux import processes
from climate.compute.models.node import NodeSpec
from climate.compute.virt import Guest, State, Wiring, config_drive, guest_volumes
from climate.compute.virt.guest_folders import CONSOLE, Homes, as_virt_error, image_of, marks
from climate.compute.virt.guest_kinds import Kind, of_machines
from climate.compute.virt.live_migrator import Limits, LiveMigrator
from climate.compute.virt.qemu import backup, disks, network_devices, qmp
from climate.compute.virt.qemu.command_line import (
    AUTO,
    DISK,
    DISK_PROGRAM,
    KVM,
    PACKAGES,
    PROGRAM,
    RESCUE_DISK,
    Machine,
    accelerator,
    command,
    program_path,
)
from climate.compute.virt.qemu.live_migration import QemuMigrator
from climate.compute.virt.qemu.migration_ports import PortRange

LOG, MEMORY = "qemu.log", "memory"
QUIT_SECONDS = 5.0
"""Seconds to wait for a QEMU to quit."""

_STEP_SECONDS = 0.01

_STATES = {
    "prelaunch": State.DEAD,  # its starter died before the first instruction
    "running": State.RUNNING,
    "paused": State.PAUSED,
    "io-error": State.PAUSED,
    "inmigrate": State.SUSPENDED,
    "shutdown": State.DEAD,
    "guest-panicked": State.DEAD,
    "internal-error": State.DEAD,
}
"""QEMU status -> state; other statuses are running, except during a migration."""

_MIGRATING = frozenset({"finish-migrate", "postmigrate"})


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """Options of a compute service for its virtual machines.

    `listening`: address for incoming live migrations; None: they are refused. `limits`: of live migrations in clusters.
    """

    accel: str = AUTO
    listening: PortRange | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True)
class QemuDriver:
    """Driver of guests in folders under `folder`.

    Timeouts in seconds: `stop_seconds` for a shutdown, `start_seconds` for the start of QEMU, `work_seconds` for a copy
    of disk or memory.
    """

    folder: Path
    accel: str = AUTO
    stop_seconds: float = 10.0
    start_seconds: float = 30.0
    work_seconds: float = 280.0
    """Shorter than the timeout of a worker's task, because a killed task would be repeated for ever."""
    look_seconds: float = 2.0
    """Seconds without an answer after which a QEMU counts as busy with another worker."""
    wired: bool = False
    """True if guests have tap devices; otherwise their interfaces are not connected."""
    listening: PortRange | None = None
    """Address for incoming live migrations; None: they are refused."""

    @property
    def homes(self) -> Homes:
        return Homes(self.folder)

    @property
    def _migrator(self) -> QemuMigrator:
        return QemuMigrator(self.homes, self.accel, self.start_seconds, self.listening)

    def nodes(self) -> Sequence[NodeSpec]:
        return ()

    def trouble(self) -> str | None:
        missing = [name for name in PACKAGES if shutil.which(name) is None]
        return f"{missing[0]} is not installed (Debian: {PACKAGES[missing[0]]})" if missing else None

    def kinds(self) -> tuple[Kind, ...]:
        return of_machines("qemu", KVM) if accelerator(self.accel) == KVM else of_machines("qemu")

    def wiring(self, node: str) -> Wiring:
        return Wiring.TAP if self.wired else Wiring.NONE

    def host_netns(self, node: str) -> str | None:
        return None

    def knows_guests(self, node: str) -> bool:
        return True

    @as_virt_error
    def prepare(self, guest: Guest) -> None:
        if self._state(guest.id) is State.PREPARED:
            return
        # Try once, so that QEMU's errors are reported now and not at the start of the lease.
        self._start(guest)
        self.homes.end(guest.id)
        self.homes.prepared(guest.id)

    @as_virt_error
    def run(self, guest: Guest) -> None:
        state = self._state(guest.id)
        if state is State.RUNNING:
            return
        if state is State.SUSPENDED:
            self.resume(guest)
            return
        if state in (State.DEAD, State.PREPARED):
            self._start(guest)
        self._resume(guest.id)

    @as_virt_error
    def stop(self, guest: Guest, *, kindly: bool = True) -> None:
        pid = self.homes.pid(guest.id)
        if pid is not None:
            with suppress(VirtError):
                self._request_shutdown(guest.id, pid, self.stop_seconds if kindly else 0)
            processes.send(pid, signal.SIGTERM)
            processes.wait_gone(pid, QUIT_SECONDS)
            self.homes.end(guest.id)
        (self.homes.of(guest.id) / MEMORY).unlink(missing_ok=True)
        self.homes.discard(guest.id, RESCUE_DISK)

    @as_virt_error
    def pause(self, guest: Guest) -> None:
        if self._among(guest, State.RUNNING, State.PAUSED) is State.RUNNING:
            with self._monitor(guest.id) as monitor:
                monitor.execute("stop")

    @as_virt_error
    def unpause(self, guest: Guest) -> None:
        if self._among(guest, State.RUNNING, State.PAUSED) is State.PAUSED:
            self._resume(guest.id)

    @as_virt_error
    def suspend(self, guest: Guest) -> None:
        state = self._among(guest, State.RUNNING, State.PAUSED, State.SUSPENDED)
        home = self.homes.of(guest.id)
        if state is not State.SUSPENDED:
            with qmp.connect(home, self.work_seconds) as monitor:
                _save_memory(monitor, home)
        self.homes.end(guest.id)

    @as_virt_error
    def resume(self, guest: Guest) -> None:
        state = self._among(guest, State.RUNNING, State.PAUSED, State.SUSPENDED)
        if state is State.RUNNING:
            return
        if state is State.SUSPENDED:
            memory = os.open(self.homes.of(guest.id) / MEMORY, os.O_RDONLY)
            try:
                self._start(guest, memory)
            finally:
                os.close(memory)
        self._resume(guest.id)

    @as_virt_error
    def rewire(self, guest: Guest) -> None:
        """Plug and unplug volumes.

        Interfaces do not change while the machine runs; it has its own DHCP clients.
        """
        if self.homes.pid(guest.id) is not None:
            with self._monitor(guest.id) as monitor:
                guest_volumes.plug(monitor, guest.volumes)

    @as_virt_error
    def snapshot(self, guest: Guest, target: Path) -> None:
        home = self.homes.of(guest.id)
        if not (home / DISK).exists():
            raise VirtError(f"server {guest.id} does not exist here")
        if self._state(guest.id) in (State.SUSPENDED, State.DEAD):
            self.homes.end(guest.id)
        draft = target.with_name(f"{target.name}.new")
        try:
            if self.homes.pid(guest.id) is None:
                disks.copy(program_path(DISK_PROGRAM), home / DISK, draft, self.work_seconds)
            else:
                disks.create(program_path(DISK_PROGRAM), draft, disks.size_of(home / DISK))
                with qmp.connect(home, self.work_seconds) as monitor:
                    backup.run(monitor, draft)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)

    @as_virt_error
    def delete(self, server_id: str) -> None:
        self._migrator.drop(server_id)
        self.homes.remove(server_id)

    @as_virt_error
    def states(self) -> Mapping[str, State]:
        processes.reap_ended()
        return {server_id: self._state(server_id) for server_id in self.homes.ids()}

    def live(self, node: str) -> LiveMigrator | None:
        return self._migrator

    @as_virt_error
    def clean_up(self) -> None:
        self.homes.trim(CONSOLE, LOG)

    @as_virt_error
    def console(self, guest: Guest, lines: int | None) -> str:
        return self.homes.console(guest.id, lines)

    def _monitor(self, server_id: str) -> AbstractContextManager[qmp.Monitor]:
        return qmp.connect(self.homes.of(server_id), self.start_seconds)

    def _state(self, server_id: str) -> State:
        home = self.homes.of(server_id)
        if self.homes.pid(server_id) is None:
            return State.SUSPENDED if (home / MEMORY).exists() else self.homes.at_rest(server_id, DISK)
        try:
            with qmp.connect(home, self.look_seconds) as monitor:
                status = monitor.status()
        except (VirtError, OSError):
            # Another worker uses it, or it has just ended.
            return State.RUNNING if self.homes.pid(server_id) else State.DEAD
        if status in _MIGRATING:
            return State.SUSPENDED if (home / MEMORY).exists() else State.PAUSED
        return _STATES.get(status, State.RUNNING)

    def _among(self, guest: Guest, *states: State) -> State:
        state = self._state(guest.id)
        if state not in states:
            raise VirtError(f"server {guest.id} is not running, it is {state.value}")
        return state

    def _start(self, guest: Guest, memory: int | None = None) -> None:
        """Start a QEMU whose guest waits at its first instruction, or where its memory was saved."""
        home = self.homes.prepare(guest.id)
        disk = home / (RESCUE_DISK if guest.rescued else DISK)
        if disk.exists():
            disks.grow(program_path(DISK_PROGRAM), disk, guest.disk_gb)
        else:
            disks.build(program_path(DISK_PROGRAM), image_of(guest), disk, guest.disk_gb, self.work_seconds)
        network_devices.write_file(home, guest)
        if memory is None:  # a resumed guest has parts of its config drive in memory, so the drive must not change
            config_drive.write_disk(home, guest)
        self._spawn(guest, home, memory)
        try:
            with qmp.connect(home, self.start_seconds if memory is None else self.work_seconds) as monitor:
                while monitor.status() == "inmigrate":
                    time.sleep(_STEP_SECONDS)
        except VirtError as error:
            self.homes.end(guest.id)
            raise VirtError(f"{error}{self.homes.last_words(guest.id, LOG)}") from error

    def _spawn(self, guest: Guest, home: Path, memory: int | None) -> None:
        environment = {"PATH": "/usr/bin:/bin", **marks(home)}
        with (
            qmp.listen(home) as monitor,
            self.homes.open_log(guest.id, LOG) as log,
            FileIO(os.devnull) as nothing,
            network_devices.opened(guest) as taps,
        ):
            machine = Machine(program_path(PROGRAM), accelerator(self.accel), home, monitor.fileno(), memory, taps)
            passed = [monitor.fileno(), *taps.values(), *(() if memory is None else (memory,))]
            number = processes.spawn(command(machine, guest), environment, nothing.fileno(), log.fileno(), passed)
        self.homes.started(guest.id, number, LOG)

    def _resume(self, server_id: str) -> None:
        # Saved memory is only valid for an unchanged disk, so delete it before the first write.
        (self.homes.of(server_id) / MEMORY).unlink(missing_ok=True)
        with self._monitor(server_id) as monitor:
            monitor.execute("cont")
            status = monitor.status()
        if status != "running":
            raise VirtError(
                f"server {server_id} does not run: QEMU says {status}{self.homes.last_words(server_id, LOG)}"
            )

    def _request_shutdown(self, server_id: str, pid: processes.Pid, seconds: float) -> None:
        if seconds and self._state(server_id) is State.RUNNING:
            with self._monitor(server_id) as monitor:
                monitor.execute("system_powerdown")
            processes.wait_gone(pid, seconds)


def _save_memory(monitor: qmp.Monitor, home: Path) -> None:
    """Save the memory of a guest to its folder, atomically; the guest is paused from then on."""
    if monitor.status() in _MIGRATING:
        monitor.execute("cont")
    monitor.execute("stop")
    draft = home / f"{MEMORY}.new"
    target = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        monitor.execute("getfd", [target], fdname=MEMORY)
    finally:
        os.close(target)
    monitor.execute("migrate-set-parameters", max_bandwidth=1 << 40)
    monitor.execute("migrate", uri=f"fd:{MEMORY}")
    while (progress := monitor.execute("query-migrate"))["status"] != "completed":
        if progress["status"] in ("failed", "cancelled"):
            raise VirtError(f"memory cannot be saved: {progress.get('error-desc', progress['status'])}")
        time.sleep(_STEP_SECONDS)
    draft.replace(home / MEMORY)
