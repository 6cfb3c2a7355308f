"""MAC addresses of servers' interfaces (cloud.md D.5, vector NW-25)."""

import secrets
from collections.abc import Callable

Choose = Callable[[], str]
"""Chooses a MAC."""

PREFIX = "02:16:3e"


def choose() -> str:
    """A MAC of our prefix, by chance: the next byte is below 80, so that all of them are unicast of our own."""
    return f"{PREFIX}:{secrets.randbelow(0x80):02x}:{secrets.randbelow(256):02x}:{secrets.randbelow(256):02x}"
