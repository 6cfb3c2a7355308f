"""What may be said of an interface in a text: what reads it could take an odd name for something else."""

import re

from climate.compute.errors import NetworkError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}")

ORDINARY_MTU = 1500
"""Size of packets that nobody needs to be told."""


def interface(name: str) -> str:
    """The name, when it can be that of an interface and nothing else; NetworkError otherwise."""
    if not _NAME.fullmatch(name):
        raise NetworkError(f"{name!r} cannot be the name of an interface: 1 to 15 letters, digits or . _ @ -")
    return name
