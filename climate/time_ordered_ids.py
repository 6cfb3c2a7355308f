"""Time-ordered ids of rows (UUID version 7, RFC 9562).

Rows that are written one after the other then lie side by side in the index of their ids. A random id costs a page of
its own in each index that has it. This page is read from disk if there are many rows, and written whole to the WAL
after each checkpoint.
"""

import secrets
import time
from uuid import UUID

_CHANCE_BITS = 74
_VERSION = 0x7 << 76
_VARIANT = 0b10 << 62
_LOW_BITS = 62


def time_ordered_id() -> UUID:
    """Return a new id: milliseconds since 1970 by this machine's clock, then 74 random bits."""
    milliseconds = time.time_ns() // 1_000_000
    high, low = divmod(secrets.randbits(_CHANCE_BITS), 1 << _LOW_BITS)
    return UUID(int=milliseconds << 80 | _VERSION | high << 64 | _VARIANT | low)
