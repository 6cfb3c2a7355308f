"""Talking to a QEMU over its monitor: one question at a time, each with a deadline."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from climate.compute.errors import VirtError

SOCKET = "qmp"
_WAITING = 16
_BLOCK = 1 << 16


class Monitor:
    """A connection to a monitor that serves one client at a time, for as long as it lasts."""

    def __init__(self, stream: socket.socket, seconds: float) -> None:
        self._stream = stream
        self._deadline = time.monotonic() + seconds
        self._read = b""
        self._events: list[Mapping[str, Any]] = []
        self._next()
        self.ask("qmp_capabilities")

    def ask(self, command: str, fds: Sequence[int] = (), **arguments: Any) -> Any:
        """The answer to a command, handing over open files; `_` in names stands for `-`.  VirtError when refused."""
        body = {name.replace("_", "-"): value for name, value in arguments.items()}
        question = json.dumps({"execute": command, "arguments": body}).encode()
        self._in_time()
        if fds:
            socket.send_fds(self._stream, [question], fds)
        else:
            self._stream.sendall(question)
        while "return" not in (answer := self._next()):
            if "error" in answer:
                raise VirtError(f"QEMU refuses {command}: {answer['error'].get('desc')}")
            self._events.append(answer)
        return answer["return"]

    def event(self, fits: Callable[[Mapping[str, Any]], bool], *names: str) -> Mapping[str, Any]:
        """The data of the first event of these names that fits, past or to come."""
        while True:
            for event in self._events:
                if event.get("event") in names and fits(event["data"]):
                    return dict(event["data"])
            self._events = [self._next()]

    def status(self) -> str:
        """What QEMU calls the state of its guest."""
        return str(self.ask("query-status")["status"])

    def _next(self) -> dict[str, Any]:
        while b"\n" not in self._read:
            self._in_time()
            block = self._stream.recv(_BLOCK)
            if not block:
                raise VirtError("QEMU has ended")
            self._read += block
        line, _, self._read = self._read.partition(b"\n")
        return dict(json.loads(line))

    def _in_time(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(0, "QEMU does not answer in time")
        self._stream.settimeout(left)


def listen(home: Path) -> socket.socket:
    """A monitor's socket in a folder, to be handed to a QEMU: whoever connects from now on waits for it."""
    return bound(home, SOCKET, _WAITING)


def bound(folder: Path, name: str, waiting: int) -> socket.socket:
    """A socket of that name in a folder, at which so many may wait."""
    (folder / name).unlink(missing_ok=True)
    stream = socket.socket(socket.AF_UNIX)
    try:
        with short(folder, name) as path:
            stream.bind(path)
        stream.listen(waiting)
    except OSError:
        stream.close()
        raise
    return stream


@contextmanager
def connect(home: Path, seconds: float) -> Iterator[Monitor]:
    """The monitor in a folder; everything that is done with it together takes at most `seconds`.  VirtError."""
    with socket.socket(socket.AF_UNIX) as stream:
        try:
            with short(home, SOCKET) as path:
                stream.connect(path)
            yield Monitor(stream, seconds)
        except TimeoutError as error:
            raise VirtError(f"QEMU does not answer within {seconds:g} s") from error
        except ConnectionError as error:
            raise VirtError("QEMU has ended") from error


@contextmanager
def short(folder: Path, name: str) -> Iterator[str]:
    """The path of a socket, however deep its folder: the system takes 107 bytes."""
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{name}"
    finally:
        os.close(handle)
