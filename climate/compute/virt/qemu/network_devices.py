"""Network devices of virtual machines: open tap devices, and the injected file with addresses."""

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
"""File in the folder of a guest without DHCP: the text of /etc/network/interfaces."""

_RELEASE_SECONDS, _STEP_SECONDS = 5.0, 0.01

INJECTED = "opt/climate/interfaces"
"""Name under which the guest finds the file."""


@contextmanager
def opened(guest: Guest, beside: int | None = None) -> Iterator[Mapping[str, int]]:
    """Open the tap devices of a guest, by MAC, for the duration of the context. Raise VirtError if one is unavailable.

    Devices that the process `beside` already has open are shared with it.
    """
    files: dict[str, int] = {}
    try:
        for interface in guest.interfaces:
            if interface.tap is not None:
                shared = None if beside is None else _shared(beside, interface.host_netns, interface.tap, guest.id)
                files[interface.mac] = _tap(interface.host_netns, interface.tap, guest.id) if shared is None else shared
        yield files
    finally:
        for number in files.values():
            os.close(number)


def write_file(home: Path, guest: Guest) -> None:
    """Write the injected file to the guest's folder; delete it if nothing is injected."""
    text = next(
        (interface.interfaces_file for interface in guest.interfaces if interface.interfaces_file is not None), None
    )
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
    """Open a tap; retry, because a machine that just ended may hold it for a moment."""
    deadline = time.monotonic() + _RELEASE_SECONDS
    while True:
        try:
            return taps.open_tap(host, name)
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise VirtError(f"interface {name} of server {server_id} cannot be opened: {error.strerror}") from error
        time.sleep(_STEP_SECONDS)
