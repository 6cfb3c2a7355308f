"""What a virtual machine is connected by: open tap devices, and the file that tells it its addresses."""

import errno
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from climate.compute.errors import VirtError
from climate.compute.linux import taps
from climate.compute.virt import Guest

FILE = "interfaces"
"""In the folder of a guest that is told its addresses by no DHCP server: the text of /etc/network/interfaces."""

_RELEASE_SECONDS, _STEP_SECONDS = 5.0, 0.01

INJECTED = "opt/climate/interfaces"
"""Under which name the guest finds it."""


@contextmanager
def opened(guest: Guest, beside: int | None = None) -> Iterator[Mapping[str, int]]:
    """The tap devices of a guest, by MAC, open for as long as this lasts.  VirtError when one is not to be had.

    `beside` is the number of a process that may have some of them open already: those are shared with it.
    """
    files: dict[str, int] = {}
    try:
        for one in guest.interfaces:
            if one.tap is not None:
                shared = None if beside is None else _shared(beside, one.host_netns, one.tap, guest.id)
                files[one.mac] = _tap(one.host_netns, one.tap, guest.id) if shared is None else shared
        yield files
    finally:
        for number in files.values():
            os.close(number)


def write_file(home: Path, guest: Guest) -> None:
    """Have the file in the guest's folder, or none where nothing is injected."""
    text = next((one.interfaces_file for one in guest.interfaces if one.interfaces_file is not None), None)
    if text is None:
        (home / FILE).unlink(missing_ok=True)
    else:
        (home / FILE).write_text(text, encoding="utf-8")


def _shared(number: int, host: str | None, name: str, server_id: str) -> int | None:
    try:
        return taps.shared(number, host, name)
    except OSError as error:
        raise VirtError(f"interface {name} of server {server_id} cannot be shared: {error.strerror}") from error


def _tap(host: str | None, name: str, server_id: str) -> int:
    """The tap, open.  A machine that has just ended may hold it for a moment more, with the last of its threads."""
    deadline = time.monotonic() + _RELEASE_SECONDS
    while True:
        try:
            return taps.open_tap(host, name)
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise VirtError(f"interface {name} of server {server_id} cannot be opened: {error.strerror}") from error
        time.sleep(_STEP_SECONDS)
