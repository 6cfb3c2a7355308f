"""Daemons: started and awaited until ready, found again, and stopped together with their child processes.

They outlive the service that starts them. A restarted service finds a daemon by its pid file, or by a mark in its
environment if that file is gone.
"""

import os
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from climate.compute.errors import NetworkError
from climate.compute.linux import netns, processes
from climate.compute.network.linux import commands

MARK = "CLIMATE_DAEMON"
_PLACE = "CLIMATE_PLACE"

END_SECONDS = 5.0
"""Seconds to wait for a daemon to terminate before it is killed."""


@dataclass(frozen=True, slots=True)
class Daemon:
    """Daemon on the interface `device` of a namespace; its files are in `home`, its own pid file is `pid`."""

    netns: str | None
    home: Path
    pid: Path
    device: str

    def process(self) -> processes.Pid | None:
        """Return the live process that wrote the pid file."""
        try:
            result = processes.of(int(self.pid.read_text(encoding="ascii")))
        except (FileNotFoundError, ValueError):
            return None
        return result if result and f"{MARK}={self.home}" in _words(result, "environ") else None

    def as_wanted(self, command: Sequence[str], environment: Mapping[str, str]) -> processes.Pid | None:
        """Return the process if it runs this command in this environment on the current interface."""
        result = self.process()
        if result is None or _words(result, "cmdline") != list(command):
            return None
        wanted = {f"{key}={value}" for key, value in self._environment(environment).items()}
        return result if wanted.issubset(_words(result, "environ")) else None

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Replace the running process; return when the new one is ready. Raise NetworkError with its reason if it is
        not.
        """
        self.stop()
        commands.run(self.netns, command, environment=self._environment(environment))
        if self.process() is None:
            raise NetworkError(f"{command[0]} for {self.device} exited immediately; see the log in {self.home}")

    def stop(self) -> None:
        """Stop the daemon and its child processes."""
        family = set(processes.carrying({MARK: str(self.home)}))
        first = self.process()
        if first is not None:
            processes.send_one(first, signal.SIGTERM)
            processes.wait_gone(first, END_SECONDS)
        for pid in family:
            # Its children end with it; files of an earlier run are kept.
            if first is None or not processes.wait_gone(pid, END_SECONDS):
                processes.send_one(pid, signal.SIGKILL)
                processes.wait_gone(pid, END_SECONDS)
        self.pid.unlink(missing_ok=True)

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        return {MARK: str(self.home), _PLACE: self._place(), **more}

    def _place(self) -> str:
        """Return the identity of the interface: one that was recreated has the same name but no program on it."""

        def work() -> str:
            return f"{os.stat('/proc/thread-self/ns/net').st_ino}/{socket.if_nametoindex(self.device)}"

        try:
            return netns.inside(self.netns, work)
        except OSError as error:
            raise NetworkError(f"there is no interface {self.device}: {error}") from error


def _words(pid: processes.Pid, name: str) -> list[str]:
    """Return the arguments or the environment of a process; nothing if it is gone or another user's."""
    try:
        text = Path(f"/proc/{pid.number}/{name}").read_bytes()
    except OSError:
        return []
    return text.decode(errors="surrogateescape").rstrip("\0").split("\0")
