"""Tap devices: interfaces whose frames a program reads and writes, like a machine's network card."""

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


def create(name: str) -> None:
    """Create a persistent tap in the namespace of this thread; nothing if it exists."""
    handle = _attached(name)
    try:
        fcntl.ioctl(handle, _SET_PERSISTENT, 1)
    finally:
        os.close(handle)


def open_tap(namespace: str | None, name: str) -> int:
    """Return an open file of a tap in a namespace; frames have a virtio header.

    The caller closes it. OSError if the tap is in use, or if it does not exist in a namespace where this process may
    not create one.
    """
    return netns.inside(namespace, lambda: _attached(name))


def shared(number: int, namespace: str | None, name: str) -> int | None:
    """Return a copy of the file of a tap that the process of that number has open; None if it has none.

    Both processes read from one queue then. The caller closes it. OSError if this process may not inspect the other.
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
    result = fcntl.ioctl(handle, _GET_NAMESPACE)
    try:
        status = os.fstat(result)
    finally:
        os.close(result)
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
