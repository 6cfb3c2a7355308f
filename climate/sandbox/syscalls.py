"""System calls that Python 3.11 lacks."""

import ctypes
import fcntl
import os
import signal
import socket
import struct

NEW_MOUNTS, NEW_HOSTNAME, NEW_IPC = 0x00020000, 0x04000000, 0x08000000
NEW_USER, NEW_PIDS, NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000

BIND, RECURSIVE, PRIVATE = 0x1000, 0x4000, 0x40000
NO_SUID, NO_DEVICES, NO_PROGRAMS = 2, 4, 8

_PR_SET_PDEATHSIG = 1
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41


def unshare(what: int) -> None:
    """Leave these namespaces for new ones; OSError if that is not allowed."""
    _check(_libc().unshare(what), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Call mount(2) with its own arguments; OSError names the target."""
    words = (None if word is None else os.fsencode(word) for word in (source, target, kind))
    _check(_libc().mount(*words, ctypes.c_ulong(flags), None if options is None else options.encode()), target)


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, whatever the cause."""
    _check(_libc().prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), 0, 0, 0), "prctl")


def loopback_up() -> None:
    """Set the loopback of the present network up; in a new network namespace it is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, _SET_FLAGS, struct.pack("16sh", b"lo", _UP_AND_RUNNING).ljust(40, b"\0"))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
