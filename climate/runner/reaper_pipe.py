"""Runner's end of the pipe to the reaper (climate.embedded.reaper): reports children, and ends the reaper last."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from climate.embedded import reaper
from climate.embedded.spawn import PLAIN_ENVIRON, Program


class Lifeline:
    """A reaper process at the other end of a pipe that no other process holds open.

    It also holds the lock on the home, so that a home is free only after everything in it has ended.
    """

    def __init__(self, home: Path, lock: int) -> None:
        self._home = home
        self._lock = lock
        self._guard = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - fixed words
            [sys.executable, "-I", reaper.__file__, str(self._home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=PLAIN_ENVIRON,
            start_new_session=True,
            pass_fds=(self._lock,),
            bufsize=0,
        )

    @property
    def pid(self) -> int:
        return self._guard.pid

    def began(self, pid: int, program: Program) -> None:
        """Report a new child to the reaper."""
        self._send(f"+ {pid} {reaper.started_at(pid) or '-'} {int(program.stop_signal)}\n")

    def ended(self, pid: int) -> None:
        """Report to the reaper that a child and its group have ended."""
        self._send(f"- {pid}\n")

    def renew(self, living: Iterable[tuple[int, Program]]) -> bool:
        """Restart the reaper if it was killed; return whether that was necessary."""
        if self._guard.poll() is None:
            return False
        self._close()
        self._guard = self._start()
        for pid, program in living:
            self.began(pid, program)
        return True

    def cut(self) -> None:
        """Close the pipe, and wait until the reaper has cleaned up."""
        self._close()
        self._guard.wait()

    def _send(self, line: str) -> None:
        if self._guard.stdin:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._guard.stdin.fileno(), line.encode())

    def _close(self) -> None:
        if self._guard.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._guard.stdin.close()
