"""Tap devices: interfaces whose frames a program reads and writes, as a machine's network card does."""

import fcntl
import os
import struct

from climate.compute import netns

_DEVICE = "/dev/net/tun"
_SET_INTERFACE, _SET_PERSISTENT = 0x400454CA, 0x400454CB
_TAP, _NO_PACKET_INFO, _VNET_HEADER = 0x0002, 0x1000, 0x4000


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


def _attached(name: str) -> int:
    handle = os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        flags = _TAP | _NO_PACKET_INFO | _VNET_HEADER
        fcntl.ioctl(handle, _SET_INTERFACE, struct.pack("16sH22x", name.encode("ascii"), flags))
    except OSError:
        os.close(handle)
        raise
    return handle
