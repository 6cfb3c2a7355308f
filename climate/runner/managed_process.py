"""A process of the stack: start, stop and restart."""

import os
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from climate.embedded.spawn import Program, kill_group, start

LEAST_FREE = 64 * 1024**2
"""Free bytes below which a disk counts as full: Postgres starts with a new segment of 16 MB of its log."""


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Restart policy: how often and how soon a process that dies is restarted.

    Only deaths after less than `short` seconds count: `deaths` of them within `window` seconds, or
    `first_deaths` before the stack was ready once, are too many.  The pause doubles from `pause` to `longest`.
    """

    short: float = 3.0
    deaths: int = 10
    first_deaths: int = 3
    window: float = 60.0
    pause: float = 0.1
    longest: float = 5.0


@dataclass(eq=False)
class Child:
    """A program with its present process, if it has one.  Times are of the runner's monotonic clock, in seconds."""

    program: Program
    number: int
    before: Callable[[], None] | None = None
    once: bool = False
    """Whether it runs once and is not restarted."""
    process: subprocess.Popen[bytes] | None = None
    begun_at: float = 0.0
    next_at: float | None = None
    """Time of the next start."""
    kill_at: float | None = None
    """Time of the kill, set with the stop signal."""

    def __post_init__(self) -> None:
        self._deaths: deque[float] = deque()

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.returncode is None

    @property
    def result(self) -> int | None:
        """Return the exit status of the last process, or minus its signal."""
        return self.process.returncode if self.process else None

    @property
    def ended(self) -> str:
        """Return in words how the last process ended."""
        result = self.result or 0
        return f"was ended by {signal.Signals(-result).name}" if result < 0 else f"ended with status {result}"

    def begin(self, now: float) -> int:
        """Start the process and return the file with its output."""
        if self.before:
            self.before()
        reader, writer = os.pipe()
        try:
            self.process = start(self.program, writer)
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        os.set_blocking(reader, False)
        self.begun_at, self.next_at, self.kill_at = now, None, None
        return reader

    def reap(self) -> bool:
        """Reap the process if it has ended, and kill the rest of its group; return whether it has ended."""
        if self.process is None or self.process.poll() is None:
            return False
        kill_group(self.process.pid)
        return True

    def request_stop(self, now: float) -> None:
        """Send the stop signal and set the time at which the process is killed."""
        if self.alive and self.process:
            self.kill_at = now + self.program.stop_seconds
            self.process.send_signal(self.program.stop_signal)

    def kill(self) -> None:
        """Kill the process and its group."""
        if self.alive and self.process:
            kill_group(self.process.pid)

    @property
    def is_out_of_space(self) -> bool:
        """Return whether the disk of its data is full."""
        try:
            return self.program.data is not None and shutil.disk_usage(self.program.data).free < LEAST_FREE
        except OSError:
            return False

    def died(self, now: float, patience: RestartPolicy, *, ready: bool) -> bool:
        """Record a crash and set the time of the next start; return False after too many crashes.

        A store whose disk has become full is tried until there is space.
        """
        while self._deaths and self._deaths[0] < now - patience.window:
            self._deaths.popleft()
        if now - self.begun_at >= patience.short:
            self._deaths.clear()
        else:
            self._deaths.append(now)
        quick = len(self._deaths)
        self.next_at = now + (min(patience.pause * 2 ** (quick - 1), patience.longest) if quick else 0.0)
        return quick < (patience.deaths if ready else patience.first_deaths) or (ready and self.is_out_of_space)
