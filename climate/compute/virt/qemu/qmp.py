"""QEMU monitor protocol (QMP): one command at a time, each with a deadline."""

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
    """Connection to a monitor, which serves one client at a time."""

    def __init__(self, stream: socket.socket, seconds: float) -> None:
        self._stream = stream
        self._deadline = time.monotonic() + seconds
        self._read = b""
        self._events: list[Mapping[str, Any]] = []
        self._next()
        self.execute("qmp_capabilities")

    def execute(self, command: str, fds: Sequence[int] = (), **arguments: Any) -> Any:
        """Run a command with file descriptors; `_` in names stands for `-`. Return its result. Raise VirtError if
        refused.
        """
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
        """Return the data of the first matching event of these names, past or future."""
        while True:
            for event in self._events:
                if event.get("event") in names and fits(event["data"]):
                    return dict(event["data"])
            self._events = [self._next()]

    def status(self) -> str:
        """Return QEMU's status of the guest."""
        return str(self.execute("query-status")["status"])

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
    """Return the listening monitor socket of a folder, to be passed to a QEMU; clients may connect at once."""
    return bound(home, SOCKET, _WAITING)


def bound(folder: Path, name: str, waiting: int) -> socket.socket:
    """Return a listening socket of that name in a folder, with this backlog."""
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
    """Connect to the monitor in a folder for at most `seconds` in total. Raise VirtError."""
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
    """Yield a path of a socket below the kernel's limit of 107 bytes, however deep its folder."""
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{name}"
    finally:
        os.close(handle)
