"""Cache of a cell's neighbours and clock, which a process keeps between messages."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from time import monotonic
from typing import NamedTuple

from sqlalchemy import Connection

from climate.compute.cells import neighbours
from climate.compute.cells.neighbours import Links
from climate.compute.context import Compute
from climate.database.connections import reading

KEPT_SECONDS = 5.0
"""Seconds after which the neighbours are read again without a change notice."""


class CellSnapshot(NamedTuple):
    """Neighbours and time of a cell."""

    links: Links
    now: datetime


class _Read(NamedTuple):
    """Cached neighbours, and the monotonic time when they were read."""

    here: CellSnapshot
    at: float


def read(compute: Compute, conn: Connection) -> CellSnapshot:
    """Return the neighbours and the database's time."""
    return CellSnapshot(neighbours.links(compute, conn), compute.now(conn))


@dataclass(slots=True)
class NeighbourCache:
    """Neighbours and clock of one process: read from the database once, until `forget`; thread-safe."""

    compute: Compute
    seconds: float = KEPT_SECONDS
    _known: _Read | None = None
    _forgotten: int = 0
    _lock: Lock = field(default_factory=Lock)

    def here(self) -> CellSnapshot:
        """Return the neighbours, and the time by the clock of the database."""
        known = self._known
        if known is None or monotonic() > known.at + self.seconds:
            known = self._read()
        return CellSnapshot(known.here.links, known.here.now + timedelta(seconds=monotonic() - known.at))

    def forget(self) -> None:
        """Invalidate the cache after a change of neighbours, or if changes may have been missed."""
        with self._lock:
            self._forgotten += 1
            self._known = None

    def _read(self) -> _Read:
        forgotten, begun = self._forgotten, monotonic()
        with reading(self.compute.engine) as conn:
            result = _Read(read(self.compute, conn), begun)
        with self._lock:
            # A value read before a change must not be cached.
            if forgotten == self._forgotten:
                self._known = result
        return result
