"""Network namespaces: created, entered and deleted without a helper process.

Only a short-lived thread enters one: a thread that returned to a pool would run its next work in the wrong network.
"""

import ctypes
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

FOLDER = Path("/run/netns")

_CLONE_NEWNET = 0x40000000
_MS_BIND, _MNT_DETACH = 4096, 2
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41

T = TypeVar("T")


def inside(name: str | None, work: Callable[[], T]) -> T:
    """Return the result of `work`, run by a short-lived thread in that namespace; None: in the current one.

    Programs that `work` starts are in that namespace too. FileNotFoundError if the namespace does not exist.
    """
    if name is None:
        return work()
    handle = os.open(FOLDER / name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _in_thread(lambda: _entered(handle, work))
    finally:
        os.close(handle)


def apart(work: Callable[[], T]) -> T:
    """Return the result of `work`, run by a short-lived thread in a new namespace that ends with it."""
    return _in_thread(lambda: _alone(work))


def create(name: str) -> None:
    """Create a namespace with its loopback up; nothing if it exists."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / name
    if exists(name):
        return
    path.touch()
    _in_thread(lambda: _pinned(path))


def exists(name: str) -> bool:
    """Return whether the namespace exists; a file without a mount is not one."""
    path = FOLDER / name
    with suppress(OSError):
        return path.stat().st_dev != FOLDER.stat().st_dev
    return False


def drop(name: str) -> None:
    """Delete the name of a namespace, which ends with the last process in it."""
    path = FOLDER / name
    if exists(name):
        _check(_libc().umount2(os.fsencode(path), _MNT_DETACH), path)
    path.unlink(missing_ok=True)


def names() -> list[str]:
    """Return the names of all namespaces."""
    return sorted(entry.name for entry in FOLDER.iterdir() if exists(entry.name)) if FOLDER.is_dir() else []


def _entered(handle: int, work: Callable[[], T]) -> T:
    _check(_libc().setns(handle, _CLONE_NEWNET))
    return work()


def _alone(work: Callable[[], T]) -> T:
    _check(_libc().unshare(_CLONE_NEWNET))
    return work()


def _pinned(path: Path) -> None:
    libc = _libc()
    _check(libc.unshare(_CLONE_NEWNET))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh", b"lo", _UP_AND_RUNNING).ljust(40, b"\0"))
    _check(libc.mount(b"/proc/thread-self/ns/net", os.fsencode(path), b"none", _MS_BIND, None), path)


def _in_thread(work: Callable[[], T]) -> T:
    answers: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # noqa: BLE001  (raised again where it was asked for)
            errors.append(error)

    thread = threading.Thread(target=run, name="climate-netns")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, path: Path | None = None) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), None if path is None else str(path))
