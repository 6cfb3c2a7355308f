"""Cache of the child zones that answered for servers, per process.

Only the database decides where a request goes; the cache avoids searches.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

MOST = 10_000
"""Maximum number of servers in the cache; the least recently used is evicted."""


@dataclass(slots=True)
class ServerZoneCache:
    """Server id -> child that answered for it; thread-safe."""

    _zones: OrderedDict[str, int] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock, repr=False)

    def zone_of(self, server_id: str) -> int | None:
        """Return the id of the child that answered last for a server, or None."""
        with self._lock:
            return self._zones.get(server_id)

    def note(self, server_id: str, zone_id: int) -> None:
        """Record that a child answered for a server."""
        with self._lock:
            self._zones[server_id] = zone_id
            self._zones.move_to_end(server_id)
            if len(self._zones) > MOST:
                self._zones.popitem(last=False)

    def forget(self, server_id: str) -> None:
        """Delete a server from the cache: it is here, or the child does not answer for it any more."""
        with self._lock:
            self._zones.pop(server_id, None)
