"""Notifications by NOTIFY: kinds of work that may exist, so that nothing is read where there is none."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from climate.compute.store.zones.notify_pollers import BUILDS, CHILDREN


@dataclass
class Look:
    """Result of one check for work of a kind."""

    is_due: bool
    """True if there may be work."""
    again: bool
    """True if there will be more without a further notification."""


@dataclass
class PendingKinds:
    """Kinds of work that may exist: all of them at first, and after notifications may have been missed."""

    _due: set[str] = field(default_factory=lambda: {BUILDS, CHILDREN})
    _lock: Lock = field(default_factory=Lock)

    def notify(self, kind: str) -> None:
        """Note that there is work of a kind."""
        with self._lock:
            self._due.add(kind)

    def miss(self) -> None:
        """Note that notifications may have been missed."""
        with self._lock:
            self._due |= {BUILDS, CHILDREN}

    @contextmanager
    def check(self, kind: str) -> Iterator[Look]:
        """Check once for work of a kind; notifications in between, and an error, lead to another check."""
        with self._lock:
            look = Look(kind in self._due, again=kind in self._due)
            self._due.discard(kind)
        try:
            yield look
        finally:
            if look.again:
                self.notify(kind)
