"""The runner's end of the guard (climate.embedded.reaper): tells it who is there, and ends it last."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from climate.embedded import reaper
from climate.embedded.spawn import PLAIN_ENVIRON, Program


class Lifeline:
    """A guard process at the other end of a pipe that nobody else holds open.

    It holds the lock on the home too: a home is free only when everything in it is gone.
    """

    def __init__(self, home: Path, lock: int) -> None:
        self._home = home
        self._lock = lock
        self._guard = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - words of ours
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
        """Tell the guard of a new child."""
        self._tell(f"+ {pid} {reaper.started_at(pid) or '-'} {int(program.stop_signal)}\n")

    def ended(self, pid: int) -> None:
        """Tell the guard that a child is gone with its group."""
        self._tell(f"- {pid}\n")

    def renew(self, living: Iterable[tuple[int, Program]]) -> bool:
        """Put a new guard in the place of one that was killed; whether that was necessary."""
        if self._guard.poll() is None:
            return False
        self._close()
        self._guard = self._start()
        for pid, program in living:
            self.began(pid, program)
        return True

    def cut(self) -> None:
        """Let the guard clean up what is left, and wait for its end."""
        self._close()
        self._guard.wait()

    def _tell(self, line: str) -> None:
        if self._guard.stdin:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._guard.stdin.fileno(), line.encode())

    def _close(self) -> None:
        if self._guard.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._guard.stdin.close()
