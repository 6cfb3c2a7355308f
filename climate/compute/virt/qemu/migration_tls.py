"""Encryption between two QEMUs: TLS 1.3 with a pre-shared key for one migration.

The key is never on a command line or in a log. A QEMU reads it from a file that only its user can read.
"""

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from climate.compute.errors import VirtError
from climate.compute.virt.qemu.qmp import Monitor

SERVER, CLIENT = "server", "client"

_NAME, _FOLDER, _FILE = "climate-tls", "tls", "keys.psk"
_USER = "qemu"
"""Default identity of QEMU's tls-creds-psk."""
_KEY_BYTES = 32
_PRIORITY = "NORMAL:-VERS-ALL:+VERS-TLS1.3"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Key of one migration, in hexadecimal digits, and the token of its QEMU object."""

    token: str
    key: str = field(repr=False)

    @property
    def name(self) -> str:
        """Return the id of the object in QEMU."""
        return f"{_NAME}-{self.token}"


def new_key() -> str:
    """Return a new key, in hexadecimal digits."""
    return token_hex(_KEY_BYTES)


def configure(monitor: Monitor, folder: Path, own: Credentials, end: str) -> None:
    """Configure the key in a QEMU as SERVER or CLIENT, and use it for memory; do nothing if it is configured.

    A server reads the file at each handshake, so the file stays in `folder` until `forget`.
    """
    if own.name not in _known(monitor):
        forget(monitor, folder)
        place = folder / _FOLDER
        _write(place, own.key)
        words: dict[str, Any] = {"qom_type": "tls-creds-psk", "id": own.name, "dir": str(place)}
        try:
            monitor.execute("object-add", **words, endpoint=end, priority=_PRIORITY)
        finally:
            if end == CLIENT:
                shutil.rmtree(place)
    # QEMU requires a host name, which is not checked with a pre-shared key.
    monitor.execute("migrate-set-parameters", tls_creds=own.name, tls_hostname=_USER)


def forget(monitor: Monitor, folder: Path) -> None:
    """Delete all keys of a QEMU and disable encryption of memory; delete the file. Do nothing if there is none."""
    shutil.rmtree(folder / _FOLDER, ignore_errors=True)
    monitor.execute("migrate-set-parameters", tls_creds="", tls_hostname="")
    for name in _known(monitor):
        with suppress(VirtError):  # a closing connection may still use it: the next migration tries again
            monitor.execute("object-del", id=name)


def _known(monitor: Monitor) -> list[str]:
    result = (str(one["name"]) for one in monitor.execute("qom-list", path="/objects"))
    return [name for name in result if name.startswith(_NAME)]


def _write(place: Path, key: str) -> None:
    place.mkdir(mode=0o700)
    with os.fdopen(os.open(place / _FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(f"{_USER}:{key}\n")
