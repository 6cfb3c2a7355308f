"""Surroundings: the neighbours and the clock of a cell, as a process remembers them from one message to the next."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from time import monotonic
from typing import NamedTuple

from sqlalchemy import Connection

from climate.compute.cells import neighbours
from climate.compute.cells.neighbours import Links
from climate.compute.context import Compute
from climate.connections import reading

KEPT_SECONDS = 5.0
"""Seconds after which the neighbours are read again although nobody said that they have changed."""


class Here(NamedTuple):
    """A cell at a moment."""

    links: Links
    now: datetime


class _Read(NamedTuple):
    """The surroundings, and the moment by the monotonic clock at which they were read."""

    here: Here
    at: float


def read(compute: Compute, conn: Connection) -> Here:
    """Return the neighbours and the time by the database."""
    return Here(neighbours.links(compute, conn), compute.now(conn))


@dataclass(slots=True)
class Surroundings:
    """The neighbours and the clock of one process: read from the database once, until `forget`.

    Many threads may use it.
    """

    compute: Compute
    seconds: float = KEPT_SECONDS
    _known: _Read | None = None
    _forgotten: int = 0
    _lock: Lock = field(default_factory=Lock)

    def here(self) -> Here:
        """Return the neighbours, and the time by the clock of the database."""
        known = self._known
        if known is None or monotonic() > known.at + self.seconds:
            known = self._read()
        return Here(known.here.links, known.here.now + timedelta(seconds=monotonic() - known.at))

    def forget(self) -> None:
        """Have the neighbours read again: they have changed, or nothing was heard of changes for a while."""
        with self._lock:
            self._forgotten += 1
            self._known = None

    def _read(self) -> _Read:
        forgotten, begun = self._forgotten, monotonic()
        with reading(self.compute.engine) as conn:
            found = _Read(read(self.compute, conn), begun)
        with self._lock:
            # What was read before a change must not stay.
            if forgotten == self._forgotten:
                self._known = found
        return found
