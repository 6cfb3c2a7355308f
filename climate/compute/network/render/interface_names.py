"""Validation of interface names before they are written to configuration files."""

import re

from climate.compute.errors import NetworkError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}")

ORDINARY_MTU = 1500
"""Default MTU, in bytes, which is not announced."""


def interface(name: str) -> str:
    """Return the name if it is a valid interface name. Raise NetworkError otherwise."""
    if not _NAME.fullmatch(name):
        raise NetworkError(f"{name!r} is not a valid interface name: use 1 to 15 letters, digits or . _ @ -")
    return name
