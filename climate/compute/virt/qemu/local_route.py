"""Migration route between two QEMUs of one machine, whose monitors are both reachable.

Memory goes through an unnamed socket pair, so no other process can access it; the disk goes through a socket in the
folder of the waiting QEMU.
"""

import shutil
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from climate.compute.errors import VirtError
from climate.compute.linux.processes import Pid
from climate.compute.virt.guest_folders import CONSOLE, PID, kill
from climate.compute.virt.qemu import disk_mirror, qmp
from climate.compute.virt.qemu.command_line import DISK_NODE
from climate.compute.virt.qemu.memory_transfer import BEGUN, STEP_SECONDS, in_time

_STREAM = "climate-memory"
_WAITING = 4


@dataclass(frozen=True)
class RouteOnOneMachine:
    """Route from the folder `home` to the QEMU `target`, which waits with its monitor in `waits`."""

    home: Path
    waits: Path
    target: Pid
    running: bool
    is_copied: bool
    """True if the disk is copied too."""
    seconds: float
    """Timeout in seconds of one monitor command."""

    confirms = False

    @property
    def since(self) -> float:
        return (self.waits / PID).stat().st_mtime

    @property
    def disks(self) -> Sequence[str]:
        return (DISK_NODE,) if self.is_copied else ()

    def is_begun(self) -> bool:
        return (self.waits / BEGUN).exists()

    def begin(self) -> None:
        (self.waits / BEGUN).touch()

    def copy_disks(self, monitor: qmp.Monitor) -> None:
        with (
            qmp.connect(self.waits, self.seconds) as theirs,
            qmp.bound(self.waits, disk_mirror.SOCKET, _WAITING) as listening,
            socket.socket(socket.AF_UNIX) as stream,
            qmp.short(self.waits, disk_mirror.SOCKET) as path,
        ):
            disk_mirror.serve(theirs, listening, {DISK_NODE: DISK_NODE})
            stream.connect(path)
            disk_mirror.copy(monitor, DISK_NODE, stream)

    def prepare(self, monitor: qmp.Monitor) -> None:
        """Do nothing: both monitors are reachable."""

    def send_memory(self) -> None:
        ours_end, theirs_end = socket.socketpair()
        with ours_end, theirs_end:
            with qmp.connect(self.waits, self.seconds) as theirs:
                theirs.execute("getfd", [theirs_end.fileno()], fdname=_STREAM)
                theirs.execute("migrate-incoming", uri=f"fd:{_STREAM}")
            with qmp.connect(self.home, self.seconds) as ours:
                ours.execute("getfd", [ours_end.fileno()], fdname=_STREAM)
                ours.execute("migrate", uri=f"fd:{_STREAM}")

    def copied(self) -> None:
        with qmp.connect(self.waits, self.seconds) as theirs:
            disk_mirror.stop_serving(theirs)

    def arrived(self, deadline: float) -> None:
        while self._status() == "inmigrate":
            in_time(deadline, self.seconds)
            time.sleep(STEP_SECONDS)

    def resume_guest(self) -> None:
        if (status := self._status()) not in ("paused", "running"):
            raise VirtError(f"the guest has ended, and what was to take it over is {status}")
        if status == "paused" and self.is_copied and (self.home / CONSOLE).exists():
            shutil.copyfile(self.home / CONSOLE, self.waits.parent / CONSOLE)
        if self.running:
            with qmp.connect(self.waits, self.seconds) as theirs:
                theirs.execute("cont")

    def abort(self) -> None:
        kill([self.target])

    def forget(self, monitor: qmp.Monitor) -> None:
        """Do nothing: nothing was configured."""

    def _status(self) -> str:
        with qmp.connect(self.waits, self.seconds) as theirs:
            return theirs.status()
