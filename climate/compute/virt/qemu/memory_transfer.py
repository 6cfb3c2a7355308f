"""Moving the memory, and where it is not shared the disk, of a machine from one QEMU to another.

Each look connects to the monitors anew, so that others may speak to them in between.  All
that is known is read from the two QEMUs and from what the route has written down:
whoever takes the work over goes on where it is.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from climate.compute.errors import VirtError
from climate.compute.linux import processes
from climate.compute.linux.processes import Pid
from climate.compute.virt.guest_folders import kill
from climate.compute.virt.live_migrator import Limits, Order, Progress, Watch
from climate.compute.virt.qemu import disk_mirror, qmp

BEGUN = "begun"
"""The file that is there from when memory is being moved."""

STEP_SECONDS = 0.05

_FAILED = frozenset({"failed", "cancelled"})
_NOT_UNDER_WAY = frozenset({"none", "completed", *_FAILED})
_COPYING = frozenset({"none", "setup", "active", "pre-switchover"})
"""States of a migration in which the copy of the disk is still kept up to date."""
_BANDWIDTH = 1 << 40
"""Bytes a second: as much as there is."""

_ORDINARY = {"auto-converge": False, "pause-before-switchover": False, "return-path": False}
"""The capabilities of a QEMU whose memory is kept in a file."""


class Route(Protocol):
    """The way between the two QEMUs.  All verbs may be repeated, and raise VirtError."""

    @property
    def since(self) -> float:
        """When the migration was agreed upon, in seconds since the epoch (UTC)."""

    @property
    def disks(self) -> Sequence[str]:
        """The block nodes that are copied, as the source's QEMU calls them."""

    @property
    def confirms(self) -> bool:
        """Whether the source's QEMU is to wait until the target has said that all has arrived."""

    def is_begun(self) -> bool:
        """Whether memory is being moved."""

    def begin(self) -> None:
        """Write down that memory is being moved."""

    def copy_disks(self, ours: qmp.Monitor) -> None:
        """Have the disks copied."""

    def prepare(self, ours: qmp.Monitor) -> None:
        """Give the source's QEMU what it needs for the way."""

    def send_memory(self) -> None:
        """Have the memory sent."""

    def copied(self) -> None:
        """Have the target take no more of the disks."""

    def arrived(self, deadline: float) -> None:
        """Return once the target has all of the memory, before `deadline` of the monotonic clock."""

    def go_on(self) -> None:
        """See to it that the guest goes on at the target; its source has ended."""

    def give_up(self) -> None:
        """See to it that the guest never goes on at the target."""

    def forget(self, ours: qmp.Monitor) -> None:
        """Take back what `prepare` gave."""


@dataclass(frozen=True)
class Handover:
    """From the QEMU `source`, with its monitor in `home`, to the other end of `route`."""

    home: Path
    source: Pid
    route: Route
    running: bool
    """Whether the guest goes on at once; otherwise it was paused before, and stays so."""
    limits: Limits
    seconds: float
    """Longest time for one answer of a monitor."""

    def run(self, watch: Watch) -> None:
        """Hand over; VirtError after which the guest never begins at the target, and goes on at the source if it lives.

        What `watch` raises is raised, with everything left as it is then.
        """
        try:
            if processes.state(self.source) is not None:
                self._move(_Stalled(watch, self.limits.stall_seconds))
                self.route.arrived(time.monotonic() + self.seconds)
                kill([self.source])
            self.route.go_on()
        except (VirtError, OSError) as error:
            with suppress(VirtError, OSError):
                self._back_out()
            raise VirtError(f"the live migration has failed: {error}") from error

    def _move(self, watch: "_Stalled") -> None:
        # From the agreement on: who succeeds a sender that died has what is left of the time.
        deadline = time.monotonic() + self.limits.seconds - (time.time() - self.route.since)
        self._obey(watch(Progress()))
        in_time(deadline, self.limits.seconds)
        if not self.route.is_begun():
            self._settings()
            if self.route.disks:
                self._copy_disks(watch, deadline)
            self.route.begin()
            self.route.send_memory()
        while not self._is_sent(watch):
            in_time(deadline, self.limits.seconds)

    def _copy_disks(self, watch: "_Stalled", deadline: float) -> None:
        with qmp.connect(self.home, self.seconds) as ours:
            if not disk_mirror.under_way(ours, self.route.disks):
                disk_mirror.give_up(ours)
                self.route.copy_disks(ours)
        ready = False
        while not ready:
            with qmp.connect(self.home, self.seconds) as ours:
                disk = disk_mirror.look(ours, self.route.disks)
            ready = disk.ready
            self._obey(watch(Progress(disk_total=disk.total, disk_processed=disk.done, disk_remaining=disk.remaining)))
            in_time(deadline, self.limits.seconds)

    def _settings(self) -> None:
        wanted = {"auto-converge": True, "pause-before-switchover": bool(self.route.disks)}
        with qmp.connect(self.home, self.seconds) as ours:
            able(ours, {**wanted, "return-path": self.route.confirms})
            ours.ask("migrate-set-parameters", downtime_limit=self.limits.downtime_ms, max_bandwidth=_BANDWIDTH)
            self.route.prepare(ours)

    def _is_sent(self, watch: "_Stalled") -> bool:
        with qmp.connect(self.home, self.seconds) as ours:
            found = ours.ask("query-migrate")
            status = found.get("status", "none")
            is_copied = bool(self.route.disks) and status in _COPYING
            disk = disk_mirror.look(ours, self.route.disks) if is_copied else disk_mirror.Copied()
            if status == "pre-switchover":
                self._finish_disks(ours)
        if status in _FAILED:
            raise VirtError(found.get("error-desc", f"QEMU says {status}"))
        if status == "completed":
            watch(_progress(found.get("ram", {}), disk))
            return True
        self._obey(watch(_progress(found.get("ram", {}), disk)))
        return False

    def _finish_disks(self, ours: qmp.Monitor) -> None:
        """Everything stands still now: the copies are completed, and the memory may follow."""
        disk_mirror.finish(ours, self.route.disks)
        self.route.copied()
        ours.ask("migrate-continue", state="pre-switchover")

    def _obey(self, order: Order) -> None:
        if order is Order.ABORT:
            raise VirtError("it was aborted")
        if order is Order.COMPLETE:
            with qmp.connect(self.home, self.seconds) as ours:
                ours.ask("stop")
        time.sleep(STEP_SECONDS)

    def _back_out(self) -> None:
        self.route.give_up()
        if processes.state(self.source) is None:
            return
        with qmp.connect(self.home, self.seconds) as ours:
            if ours.ask("query-migrate").get("status", "none") not in _NOT_UNDER_WAY:
                ours.ask("migrate_cancel")
            while ours.ask("query-migrate").get("status", "none") not in _NOT_UNDER_WAY:
                time.sleep(STEP_SECONDS)
            # The guest first: what is left of the copies may wait for a network that is gone.
            if self.running and ours.status() != "running":
                ours.ask("cont")
            disk_mirror.give_up(ours)
            able(ours, _ORDINARY)
            self.route.forget(ours)


@dataclass
class _Stalled:
    """A watch that fails when nothing has moved for `seconds`."""

    watch: Watch
    seconds: float
    seen: Progress | None = None
    last: float = 0.0

    def __call__(self, progress: Progress) -> Order:
        now = time.monotonic()
        if progress != self.seen:
            self.seen, self.last = progress, now
        if now - self.last > self.seconds:
            raise VirtError(f"nothing has arrived at the destination for {self.seconds:g} s")
        return self.watch(progress)


def able(monitor: qmp.Monitor, capabilities: dict[str, bool]) -> None:
    """Set capabilities of a QEMU's migrations."""
    states = [{"capability": name, "state": on} for name, on in capabilities.items()]
    monitor.ask("migrate-set-capabilities", capabilities=states)


def in_time(deadline: float, seconds: float) -> None:
    """Return before `deadline` of the monotonic clock; VirtError names the `seconds` that there were."""
    if time.monotonic() > deadline:
        raise VirtError(f"it takes longer than {seconds:g} s")


def _progress(memory: dict[str, Any], disk: disk_mirror.Copied) -> Progress:
    remaining, total = memory.get("remaining", 0), memory.get("total", 0)
    return Progress(total, memory.get("transferred", 0), remaining, disk.total, disk.done, disk.remaining)
