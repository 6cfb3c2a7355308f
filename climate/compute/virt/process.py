"""Servers as processes, each in its own session; a RESERVED server has a folder and no process.

Each server has a folder with `pid` (number and start time), `prepared` (until its first start), `banner` and
`console.log`. Its `config` has the files of its config drive, `disk` its content, and `rescue` the content that it is
rescued with. If networks are real, each guest is in its own network namespace, with DHCP clients beside it.
"""

import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from climate.compute.errors import VirtError
from climate.compute.linux import folder_removal, netns, processes
from climate.compute.models.node import NodeSpec
from climate.compute.virt import Guest, State, Wiring, archive, config_drive, dhcp_client, guest_volumes
from climate.compute.virt.guest_folders import CONSOLE, PID, Homes, as_virt_error, image_of, marks
from climate.compute.virt.guest_kinds import Kind, of_programs
from climate.compute.virt.live_migrator import LiveMigrator

PAUSE_SECONDS = 5.0
"""Seconds for the kernel to stop or continue a process."""

DISK, RESCUE_DISK, BANNER = "disk", "rescue", "banner"

_INPUT = "input"

STILL = "still"
"""Marker file while a running guest is stopped for a copy; whoever resumes an interrupted copy continues the guest."""

# The script is constant and only prints user data. It neither forks nor execs, so that it can be paused and recognised
# at any moment. It holds its input FIFO open for writing, so it never reads end of file.
_PROGRAM = """
cd "$1" || exit 1
while IFS= read -r line; do printf '%s\\n' "$line"; done < banner
while :; do read -r _; done
"""


class ProcessKind(Protocol):
    """Process implementation of guests: plain or in a container."""

    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds of servers, which images may require."""

    def trouble(self) -> str | None:
        """Return why no guest can be built here, or None if they can."""

    def build(self, disk: Path, guest: Guest) -> None:
        """Fill the empty folder `disk` with the initial content of the guest."""

    def start(self, homes: Homes, guest: Guest, source: int) -> processes.Pid:
        """Start the process with `source` as its input; the caller records it."""

    def attach(self, home: Path, guest: Guest, pid: processes.Pid | None) -> None:
        """Ensure that a guest has exactly its volumes; `pid` is its process, if any. Raise VirtError."""

    def begun(self, pid: processes.Pid) -> None:
        """Wait until a started process works. Raise VirtError if it failed."""

    def freeze(self, pid: processes.Pid, *, stopped: bool) -> bool:
        """Stop or continue all processes of a guest; return False on timeout or if it has ended."""

    def content(self, home: Path) -> Iterable[tuple[Path, str]]:
        """Return the content of a guest's snapshot: paths, and their names in the archive."""


@dataclass(frozen=True)
class Plain:
    """Shell that prints a banner and waits, without isolation; sizes are not enforced."""

    def kinds(self) -> tuple[Kind, ...]:
        return of_programs("process")

    def trouble(self) -> str | None:
        return None

    def build(self, disk: Path, guest: Guest) -> None:
        image = image_of(guest)
        if image is None:
            return
        with image.open("rb") as file:
            content = Path(f"/dev/fd/{file.fileno()}")
            if archive.is_archive(content):
                archive.unpack(content, disk, guest.disk_gb)

    def start(self, homes: Homes, guest: Guest, source: int) -> processes.Pid:
        argv = ["/bin/sh", "-c", _PROGRAM, "climate-server", str(homes.of(guest.id))]
        environment = {"PATH": "/usr/bin:/bin", **marks(homes.of(guest.id))}
        with homes.open_log(guest.id) as log:
            number = netns.inside(guest.netns, lambda: processes.spawn(argv, environment, source, log.fileno()))
        return homes.started(guest.id, number)

    def attach(self, home: Path, guest: Guest, pid: processes.Pid | None) -> None:
        guest_volumes.link(home, guest.volumes)

    def begun(self, pid: processes.Pid) -> None:
        if processes.state(pid) is None:
            raise VirtError("the process exited immediately")

    def freeze(self, pid: processes.Pid, *, stopped: bool) -> bool:
        processes.send(pid, signal.SIGSTOP if stopped else signal.SIGCONT)
        return processes.wait_stopped(pid, stopped, PAUSE_SECONDS)

    def content(self, home: Path) -> Iterable[tuple[Path, str]]:
        yield from ((path, path.name) for path in sorted((home / DISK).iterdir()) if path.name != CONSOLE)
        if (home / CONSOLE).exists():
            yield home / CONSOLE, CONSOLE


@dataclass(frozen=True)
class ProcessDriver:
    """Driver of guests in folders under `folder`; a guest gets `stop_seconds` to shut down."""

    folder: Path
    body: ProcessKind = Plain()
    stop_seconds: float = 10.0
    wired: bool = False
    """True if each guest has its own network namespace; otherwise addresses are only recorded."""

    @property
    def homes(self) -> Homes:
        return Homes(self.folder)

    def nodes(self) -> Sequence[NodeSpec]:
        return ()

    def trouble(self) -> str | None:
        return self.body.trouble() or (dhcp_client.trouble() if self.wired else None)

    def kinds(self) -> tuple[Kind, ...]:
        return self.body.kinds()

    def wiring(self, node: str) -> Wiring:
        return Wiring.NETNS if self.wired else Wiring.NONE

    def host_netns(self, node: str) -> str | None:
        return None

    def knows_guests(self, node: str) -> bool:
        return True

    @as_virt_error
    def prepare(self, guest: Guest) -> None:
        if self._state(guest.id) is not State.PREPARED:
            dhcp_client.end(self._furnished(guest))
            self.homes.prepared(guest.id)

    @as_virt_error
    def run(self, guest: Guest) -> None:
        state = self._state(guest.id)
        if state is State.PAUSED:
            self.resume(guest)
        elif state is not State.RUNNING:
            self._spawn(guest)
        self._attach(guest)
        dhcp_client.ensure(self.homes.of(guest.id), guest)

    @as_virt_error
    def stop(self, guest: Guest, *, kindly: bool = True) -> None:
        pid = self.homes.pid(guest.id)
        if pid is not None and kindly:
            processes.send(pid, signal.SIGTERM)
            self.body.freeze(pid, stopped=False)
            processes.wait_gone(pid, self.stop_seconds)
        if pid is not None:
            self.homes.end(guest.id)
        dhcp_client.end(self.homes.of(guest.id))
        self.homes.discard(guest.id, RESCUE_DISK)

    @as_virt_error
    def pause(self, guest: Guest) -> None:
        self._freeze(guest, stopped=True)
        (self.homes.of(guest.id) / STILL).unlink(missing_ok=True)

    @as_virt_error
    def unpause(self, guest: Guest) -> None:
        self._freeze(guest, stopped=False)

    def suspend(self, guest: Guest) -> None:
        self.pause(guest)

    def resume(self, guest: Guest) -> None:
        self.unpause(guest)

    @as_virt_error
    def rewire(self, guest: Guest) -> None:
        self._attach(guest)
        dhcp_client.end(self.homes.of(guest.id))
        if self._state(guest.id) in (State.RUNNING, State.PAUSED):
            dhcp_client.ensure(self.homes.of(guest.id), guest)

    @as_virt_error
    def snapshot(self, guest: Guest, target: Path) -> None:
        home = self.homes.of(guest.id)
        if not home.is_dir():
            raise VirtError(f"server {guest.id} does not exist here")
        still = home / STILL
        if self._state(guest.id) is State.RUNNING:
            still.touch()
            self._freeze(guest, stopped=True)
        try:
            archive.pack(self.body.content(home), target)
        finally:
            if still.exists():
                self._freeze(guest, stopped=False)
                still.unlink()

    @as_virt_error
    def delete(self, server_id: str) -> None:
        dhcp_client.end(self.homes.of(server_id))
        self.homes.remove(server_id)

    @as_virt_error
    def states(self) -> Mapping[str, State]:
        processes.reap_ended()
        return {server_id: self._state(server_id) for server_id in self.homes.ids()}

    def live(self, node: str) -> LiveMigrator | None:
        return None

    @as_virt_error
    def clean_up(self) -> None:
        self.homes.trim(CONSOLE, dhcp_client.LOG)

    @as_virt_error
    def console(self, guest: Guest, lines: int | None) -> str:
        return self.homes.console(guest.id, lines)

    def _state(self, server_id: str) -> State:
        letter = processes.state(processes.read(self.homes.of(server_id) / PID))
        if letter is None:
            return self.homes.at_rest(server_id, DISK)
        return State.PAUSED if letter in processes.STOPPED else State.RUNNING

    def _attach(self, guest: Guest) -> None:
        self.body.attach(self.homes.of(guest.id), guest, self.homes.pid(guest.id))

    def _freeze(self, guest: Guest, *, stopped: bool) -> None:
        pid = self.homes.pid(guest.id)
        if pid is None:
            raise VirtError(f"server {guest.id} is not running")
        if not self.body.freeze(pid, stopped=stopped):
            raise VirtError(f"process {pid.number} does not {'stop' if stopped else 'continue'}")

    def _furnished(self, guest: Guest) -> Path:
        """Return the folder of a guest without a process, with the disk built that it boots from."""
        home = self.homes.prepare(guest.id)
        disk = boot_disk(home, guest)
        if not disk.is_dir():
            draft = disk.with_name(f"{disk.name}.new")
            folder_removal.remove(draft)
            draft.mkdir()
            self.body.build(draft, guest)
            draft.rename(disk)
        config_drive.write_folder(home, guest)
        return home

    def _spawn(self, guest: Guest) -> None:
        home = self._furnished(guest)
        (home / BANNER).write_text(_banner(guest), encoding="utf-8", errors="replace")
        source = _endless(home)
        try:
            pid = self.body.start(self.homes, guest, source)
        finally:
            os.close(source)
        try:
            self.body.begun(pid)
        except VirtError as error:
            raise VirtError(f"{error}{self.homes.last_words(guest.id)}") from error


def boot_disk(home: Path, guest: Guest) -> Path:
    """Return the folder with the content that a guest boots from."""
    return home / (RESCUE_DISK if guest.rescued else DISK)


def _endless(home: Path) -> int:
    """Return an open FIFO without data or end of file: its reader also holds it open for writing."""
    fifo = home / _INPUT
    fifo.unlink(missing_ok=True)
    os.mkfifo(fifo, 0o600)
    try:
        return os.open(fifo, os.O_RDWR)
    finally:
        fifo.unlink()


def _banner(guest: Guest) -> str:
    lines = [f"climate: server {guest.name} ({guest.id}) starts{' rescued' if guest.rescued else ''}"]
    lines += [
        f"climate: {interface.device} has address {address}"
        for interface in guest.interfaces
        for address in interface.addresses
    ]
    return "\n".join([*lines, "climate: boot finished", ""])
