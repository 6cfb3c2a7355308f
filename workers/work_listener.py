"""News by NOTIFY: kinds of work that there may be, so that nothing is looked for where there is none."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from climate.compute.store.zones.notifications import BUILDS, CHILDREN


@dataclass
class Look:
    """One look at work of a kind."""

    is_due: bool
    """Whether there may be any."""
    again: bool
    """Whether there will be more without further news."""


@dataclass
class News:
    """The kinds of work that there may be: at first, and whenever news may have been missed, all."""

    _due: set[str] = field(default_factory=lambda: {BUILDS, CHILDREN})
    _lock: Lock = field(default_factory=Lock)

    def hear(self, kind: str) -> None:
        """There is work of a kind."""
        with self._lock:
            self._due.add(kind)

    def miss(self) -> None:
        """News may have been missed."""
        with self._lock:
            self._due |= {BUILDS, CHILDREN}

    @contextmanager
    def look(self, kind: str) -> Iterator[Look]:
        """Look once for work of a kind; news that come meanwhile, and a look that fails, lead to another."""
        with self._lock:
            look = Look(kind in self._due, again=kind in self._due)
            self._due.discard(kind)
        try:
            yield look
        finally:
            if look.again:
                self.hear(kind)
