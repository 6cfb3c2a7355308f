"""Servers that child zones have answered for lately, as one process remembers them.

The database alone decides where a request goes: this memory only saves asking
for a server where it was not found before.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

MOST = 10_000
"""Servers that a process remembers; the one whose last request is oldest goes first."""


@dataclass(slots=True)
class ForwardedServers:
    """Ids of servers and of the children that answered for them; safe for several threads."""

    _zones: OrderedDict[str, int] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def zone_of(self, server_id: str) -> int | None:
        """Return the id of the child that answered last for a server; None: none did."""
        with self._lock:
            return self._zones.get(server_id)

    def note(self, server_id: str, zone_id: int) -> None:
        """Remember that a child has answered for a server."""
        with self._lock:
            self._zones[server_id] = zone_id
            self._zones.move_to_end(server_id)
            if len(self._zones) > MOST:
                self._zones.popitem(last=False)

    def forget(self, server_id: str) -> None:
        """Drop a server: it is here, or the child does not answer for it any more."""
        with self._lock:
            self._zones.pop(server_id, None)
