"""Tap devices: interfaces whose frames a program reads and writes, as a machine's network card does."""

import ctypes
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from climate.compute.linux import netns

_DEVICE = "/dev/net/tun"
_SET_INTERFACE, _SET_PERSISTENT = 0x400454CA, 0x400454CB
_TAP, _NO_PACKET_INFO, _VNET_HEADER = 0x0002, 0x1000, 0x4000
_GET_NAMESPACE = 0x54E3
_PIDFD_GETFD = 438
"""The number of the system call, the same on all architectures."""


def make(name: str) -> None:
    """Make a tap in the namespace of this thread that stays until it is deleted; nothing when it is there."""
    handle = _attached(name)
    try:
        fcntl.ioctl(handle, _SET_PERSISTENT, 1)
    finally:
        os.close(handle)


def open_tap(namespace: str | None, name: str) -> int:
    """The file of a tap in a namespace: what is written there comes out of the interface, with a virtio header.

    To be closed by who asked.  OSError when the tap is in use, or when there is none in a namespace where this
    process may not make one.
    """
    return netns.inside(namespace, lambda: _attached(name))


def shared(number: int, namespace: str | None, name: str) -> int | None:
    """The file of a tap in a namespace that the process of that number has open; None where it has not.

    Both processes read from one queue then.  To be closed by who asked.  OSError
    where this process may not look into the other.
    """
    for there in _open_taps(number, name):
        handle = _duplicate(number, there)
        if _namespace_of(handle) == _namespace_called(namespace):
            return handle
        os.close(handle)
    return None


def _open_taps(number: int, name: str) -> Iterator[int]:
    for entry in sorted(Path(f"/proc/{number}/fdinfo").iterdir()):
        with suppress(FileNotFoundError):
            if f"iff:\t{name}\n" in entry.read_text(encoding="ascii", errors="replace"):
                yield int(entry.name)


def _duplicate(number: int, there: int) -> int:
    process = os.pidfd_open(number)
    try:
        handle = int(ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, process, there, 0))
    finally:
        os.close(process)
    if handle < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    os.set_inheritable(handle, False)
    return handle


def _namespace_of(handle: int) -> tuple[int, int]:
    found = fcntl.ioctl(handle, _GET_NAMESPACE)
    try:
        status = os.fstat(found)
    finally:
        os.close(found)
    return status.st_dev, status.st_ino


def _namespace_called(name: str | None) -> tuple[int, int]:
    status = os.stat("/proc/self/ns/net" if name is None else netns.FOLDER / name)
    return status.st_dev, status.st_ino


def _attached(name: str) -> int:
    handle = os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        flags = _TAP | _NO_PACKET_INFO | _VNET_HEADER
        fcntl.ioctl(handle, _SET_INTERFACE, struct.pack("16sH22x", name.encode("ascii"), flags))
    except OSError:
        os.close(handle)
        raise
    return handle
