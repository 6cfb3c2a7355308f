"""MAC addresses of servers' interfaces."""

import secrets
from collections.abc import Callable

Choose = Callable[[], str]
"""Function that chooses a MAC."""

PREFIX = "02:16:3e"


def choose() -> str:
    """Return a random MAC with climate's prefix; the next byte is below 0x80, so it is locally administered unicast."""
    return f"{PREFIX}:{secrets.randbelow(0x80):02x}:{secrets.randbelow(256):02x}:{secrets.randbelow(256):02x}"
