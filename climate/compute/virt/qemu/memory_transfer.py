"""Transfer of a machine's memory, and of its disk if that is not shared, from one QEMU to another.

Each check opens the monitors anew, so that others can use them in between. All state is read from the two QEMUs and
from the route's files, so another worker can continue the transfer at any point.
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
from climate.compute.virt.live_migrator import Limits, MigrationCommand, Progress, Watch
from climate.compute.virt.qemu import disk_mirror, qmp

BEGUN = "begun"
"""Marker file that exists while memory is transferred."""

STEP_SECONDS = 0.05

_FAILED = frozenset({"failed", "cancelled"})
_NOT_UNDER_WAY = frozenset({"none", "completed", *_FAILED})
_COPYING = frozenset({"none", "setup", "active", "pre-switchover"})
"""States of a migration in which the disk copy still follows writes."""
_BANDWIDTH = 1 << 40
"""Bandwidth limit in bytes per second: none."""

_ORDINARY = {"auto-converge": False, "pause-before-switchover": False, "return-path": False}
"""Migration capabilities of a QEMU whose memory is saved to a file."""


class Route(Protocol):
    """Route between the two QEMUs. All methods are idempotent and raise VirtError."""

    @property
    def since(self) -> float:
        """Return when the migration was agreed upon, in seconds since the epoch (UTC)."""

    @property
    def disks(self) -> Sequence[str]:
        """Return the source QEMU's block nodes that are copied."""

    @property
    def confirms(self) -> bool:
        """Return whether the source's QEMU must wait until the target confirms that all has arrived."""

    def is_begun(self) -> bool:
        """Return whether the transfer of memory has begun."""

    def begin(self) -> None:
        """Record that the transfer of memory has begun."""

    def copy_disks(self, monitor: qmp.Monitor) -> None:
        """Start the copies of the disks."""

    def prepare(self, monitor: qmp.Monitor) -> None:
        """Configure the source's QEMU for the route."""

    def send_memory(self) -> None:
        """Start the transfer of memory."""

    def copied(self) -> None:
        """Stop the target's receipt of disks."""

    def arrived(self, deadline: float) -> None:
        """Wait until the target has all memory, until `deadline` of the monotonic clock."""

    def resume_guest(self) -> None:
        """Let the guest run at the target; its source has ended."""

    def abort(self) -> None:
        """Ensure that the guest never runs at the target."""

    def forget(self, monitor: qmp.Monitor) -> None:
        """Revert `prepare`."""


@dataclass(frozen=True)
class Handover:
    """Handover from the QEMU `source`, with its monitor in `home`, to the other end of `route`."""

    home: Path
    source: Pid
    route: Route
    running: bool
    """True if the guest shall run at once; otherwise it was paused before, and stays paused."""
    limits: Limits
    seconds: float
    """Timeout in seconds of one monitor command."""

    def run(self, watch: Watch) -> None:
        """Hand over. After VirtError the guest never starts at the target, and continues at the source if it lives.

        Exceptions of `watch` are passed on, and the transfer is left as it is.
        """
        try:
            if processes.state(self.source) is not None:
                self._move(_Stalled(watch, self.limits.stall_seconds))
                self.route.arrived(time.monotonic() + self.seconds)
                kill([self.source])
            self.route.resume_guest()
        except (VirtError, OSError) as error:
            with suppress(VirtError, OSError):
                self._back_out()
            raise VirtError(f"the live migration has failed: {error}") from error

    def _move(self, watch: "_Stalled") -> None:
        # The timeout runs from the agreement, also for a worker that takes over from a crashed one.
        deadline = time.monotonic() + seconds_left(self.limits.seconds, self.route.since, time.time())
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
                disk_mirror.cancel(ours)
                self.route.copy_disks(ours)
        ready = False
        while not ready:
            with qmp.connect(self.home, self.seconds) as ours:
                disk = disk_mirror.progress(ours, self.route.disks)
            ready = disk.ready
            self._obey(watch(Progress(disk_total=disk.total, disk_processed=disk.done, disk_remaining=disk.remaining)))
            in_time(deadline, self.limits.seconds)

    def _settings(self) -> None:
        wanted = {"auto-converge": True, "pause-before-switchover": bool(self.route.disks)}
        with qmp.connect(self.home, self.seconds) as ours:
            able(ours, {**wanted, "return-path": self.route.confirms})
            ours.execute("migrate-set-parameters", downtime_limit=self.limits.downtime_ms, max_bandwidth=_BANDWIDTH)
            self.route.prepare(ours)

    def _is_sent(self, watch: "_Stalled") -> bool:
        with qmp.connect(self.home, self.seconds) as ours:
            result = ours.execute("query-migrate")
            status = result.get("status", "none")
            is_copied = bool(self.route.disks) and status in _COPYING
            disk = disk_mirror.progress(ours, self.route.disks) if is_copied else disk_mirror.Copied()
            if status == "pre-switchover":
                self._finish_disks(ours)
        if status in _FAILED:
            raise VirtError(result.get("error-desc", f"QEMU says {status}"))
        if status == "completed":
            watch(_progress(result.get("ram", {}), disk))
            return True
        self._obey(watch(_progress(result.get("ram", {}), disk)))
        return False

    def _finish_disks(self, monitor: qmp.Monitor) -> None:
        """Complete the copies while the guest is paused, and let the memory follow."""
        disk_mirror.finish(monitor, self.route.disks)
        self.route.copied()
        monitor.execute("migrate-continue", state="pre-switchover")

    def _obey(self, order: MigrationCommand) -> None:
        if order is MigrationCommand.ABORT:
            raise VirtError("it was aborted")
        if order is MigrationCommand.COMPLETE:
            with qmp.connect(self.home, self.seconds) as ours:
                ours.execute("stop")
        time.sleep(STEP_SECONDS)

    def _back_out(self) -> None:
        self.route.abort()
        if processes.state(self.source) is None:
            return
        with qmp.connect(self.home, self.seconds) as ours:
            if ours.execute("query-migrate").get("status", "none") not in _NOT_UNDER_WAY:
                ours.execute("migrate_cancel")
            while ours.execute("query-migrate").get("status", "none") not in _NOT_UNDER_WAY:
                time.sleep(STEP_SECONDS)
            # Resume the guest first, because cancelling copies may wait for a broken network.
            if self.running and ours.status() != "running":
                ours.execute("cont")
            disk_mirror.cancel(ours)
            able(ours, _ORDINARY)
            self.route.forget(ours)


@dataclass
class _Stalled:
    """Watch that fails without progress for `seconds`."""

    watch: Watch
    seconds: float
    seen: Progress | None = None
    last: float = 0.0

    def __call__(self, progress: Progress) -> MigrationCommand:
        now = time.monotonic()
        if progress != self.seen:
            self.seen, self.last = progress, now
        if now - self.last > self.seconds:
            raise VirtError(f"no progress at the destination for {self.seconds:g} s")
        return self.watch(progress)


def able(monitor: qmp.Monitor, capabilities: dict[str, bool]) -> None:
    """Set migration capabilities of a QEMU."""
    states = [{"capability": name, "state": on} for name, on in capabilities.items()]
    monitor.execute("migrate-set-capabilities", capabilities=states)


def seconds_left(limit: float, since: float, now: float) -> float:
    """Return what is left of a limit that began at `since`; a clock that was set back never adds to the limit."""
    return limit - max(0.0, now - since)


def in_time(deadline: float, seconds: float) -> None:
    """Check `deadline` of the monotonic clock. Raise VirtError with the timeout of `seconds`."""
    if time.monotonic() > deadline:
        raise VirtError(f"timeout after {seconds:g} s")


def _progress(memory: dict[str, Any], disk: disk_mirror.Copied) -> Progress:
    remaining, total = memory.get("remaining", 0), memory.get("total", 0)
    return Progress(total, memory.get("transferred", 0), remaining, disk.total, disk.done, disk.remaining)
