"""Moving the memory, and where it is not shared the disk, of a machine from one QEMU to another.

Each look connects to the monitors anew, so that others may speak to them in between.  All
that is known is read from the two QEMUs and from the file `begun` in the folder of the one
that waits: whoever takes the work over goes on where it is.
"""

import shutil
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climate.compute.errors import VirtError
from climate.compute.linux import processes
from climate.compute.linux.processes import Pid
from climate.compute.virt import mirror, qmp
from climate.compute.virt.homes import CONSOLE, PID, kill
from climate.compute.virt.live import Limits, Order, Progress, Watch

BEGUN = "begun"

_STEP_SECONDS = 0.05
_STREAM = "climate-memory"
_FAILED = frozenset({"failed", "cancelled"})
_NOT_UNDER_WAY = frozenset({"none", "completed", *_FAILED})
_BANDWIDTH = 1 << 40
"""Bytes a second: as much as there is."""


@dataclass(frozen=True)
class Handover:
    """From the QEMU `source`, with its monitor in `home`, to `target`, which waits with its monitor in `waits`."""

    home: Path
    waits: Path
    source: Pid
    target: Pid
    running: bool
    """Whether the guest goes on at once; otherwise it was paused before, and stays so."""
    copied: bool
    """Whether the disk is moved too."""
    limits: Limits
    seconds: float
    """Longest time for one answer of a monitor."""

    def run(self, watch: Watch) -> None:
        """Hand over; VirtError after which the target has ended, and the source goes on if it has not ended by itself.

        What `watch` raises is raised, with everything left as it is then.
        """
        try:
            if processes.state(self.source) is not None:
                self._move(watch)
                self._await_arrival()
                kill([self.source])
            self._go_on()
        except (VirtError, OSError) as error:
            with suppress(VirtError, OSError):
                self._back_out()
            raise VirtError(f"the live migration has failed: {error}") from error

    def _move(self, watch: Watch) -> None:
        # From when the target began to wait: who succeeds a sender that died has what is left of the time.
        deadline = time.monotonic() + self.limits.seconds - (time.time() - (self.waits / PID).stat().st_mtime)
        self._obey(watch(Progress()))
        _in_time(deadline, self.limits.seconds)
        if not (self.waits / BEGUN).exists():
            self._settings()
            if self.copied:
                self._copy_disk(watch, deadline)
            (self.waits / BEGUN).touch()
            self._send_memory()
        while not self._is_sent(watch):
            _in_time(deadline, self.limits.seconds)

    def _copy_disk(self, watch: Watch, deadline: float) -> None:
        with qmp.connect(self.home, self.seconds) as ours, qmp.connect(self.waits, self.seconds) as theirs:
            mirror.start(ours, theirs, self.waits)
        ready = False
        while not ready:
            with qmp.connect(self.home, self.seconds) as ours:
                disk = mirror.look(ours)
            ready = disk.ready
            self._obey(watch(Progress(disk_total=disk.total, disk_processed=disk.done, disk_remaining=disk.remaining)))
            _in_time(deadline, self.limits.seconds)

    def _settings(self) -> None:
        wanted = {"auto-converge": True, "pause-before-switchover": self.copied}
        with qmp.connect(self.home, self.seconds) as ours:
            states = [{"capability": name, "state": on} for name, on in wanted.items()]
            ours.ask("migrate-set-capabilities", capabilities=states)
            ours.ask("migrate-set-parameters", downtime_limit=self.limits.downtime_ms, max_bandwidth=_BANDWIDTH)

    def _send_memory(self) -> None:
        ours_end, theirs_end = socket.socketpair()
        with ours_end, theirs_end:
            with qmp.connect(self.waits, self.seconds) as theirs:
                theirs.ask("getfd", [theirs_end.fileno()], fdname=_STREAM)
                theirs.ask("migrate-incoming", uri=f"fd:{_STREAM}")
            with qmp.connect(self.home, self.seconds) as ours:
                ours.ask("getfd", [ours_end.fileno()], fdname=_STREAM)
                ours.ask("migrate", uri=f"fd:{_STREAM}")

    def _is_sent(self, watch: Watch) -> bool:
        with qmp.connect(self.home, self.seconds) as ours:
            found = ours.ask("query-migrate")
            status = found.get("status", "none")
            disk = mirror.look(ours) if self.copied and status != "completed" else mirror.Copied()
            if status == "pre-switchover":
                self._finish_disk(ours)
        if status in _FAILED:
            raise VirtError(found.get("error-desc", f"QEMU says {status}"))
        if status == "completed":
            watch(_progress(found.get("ram", {}), disk))
            return True
        self._obey(watch(_progress(found.get("ram", {}), disk)))
        return False

    def _finish_disk(self, ours: qmp.Monitor) -> None:
        """Everything stands still now: the copy is completed, and the memory may follow."""
        mirror.finish(ours)
        with qmp.connect(self.waits, self.seconds) as theirs:
            mirror.stop_serving(theirs)
        ours.ask("migrate-continue", state="pre-switchover")

    def _obey(self, order: Order) -> None:
        if order is Order.ABORT:
            raise VirtError("it was aborted")
        if order is Order.COMPLETE:
            with qmp.connect(self.home, self.seconds) as ours:
                ours.ask("stop")
        time.sleep(_STEP_SECONDS)

    def _await_arrival(self) -> None:
        """Return once the target has all of the memory: it waits to be told to go on."""
        deadline = time.monotonic() + self.seconds
        while self._target() == "inmigrate":
            _in_time(deadline, self.seconds)
            time.sleep(_STEP_SECONDS)

    def _go_on(self) -> None:
        if (status := self._target()) not in ("paused", "running"):
            raise VirtError(f"the guest has ended, and what was to take it over is {status}")
        if status == "paused" and self.copied and (self.home / CONSOLE).exists():
            shutil.copyfile(self.home / CONSOLE, self.waits.parent / CONSOLE)
        if self.running:
            with qmp.connect(self.waits, self.seconds) as theirs:
                theirs.ask("cont")

    def _target(self) -> str:
        with qmp.connect(self.waits, self.seconds) as theirs:
            return theirs.status()

    def _back_out(self) -> None:
        kill([self.target])
        if processes.state(self.source) is None:
            return
        with qmp.connect(self.home, self.seconds) as ours:
            if ours.ask("query-migrate").get("status", "none") not in _NOT_UNDER_WAY:
                ours.ask("migrate_cancel")
            while ours.ask("query-migrate").get("status", "none") not in _NOT_UNDER_WAY:
                time.sleep(_STEP_SECONDS)
            mirror.give_up(ours)
            if self.running and ours.status() != "running":
                ours.ask("cont")


def _progress(memory: dict[str, Any], disk: mirror.Copied) -> Progress:
    remaining, total = memory.get("remaining", 0), memory.get("total", 0)
    return Progress(total, memory.get("transferred", 0), remaining, disk.total, disk.done, disk.remaining)


def _in_time(deadline: float, seconds: float) -> None:
    if time.monotonic() > deadline:
        raise VirtError(f"it takes longer than {seconds:g} s")
