"""Outage of Keystone: while it lasts, one request at a time finds out if it is over, and others fail at once."""

from collections.abc import Callable
from threading import Lock
from time import monotonic

from climate.domain.errors import Unavailable

PAUSE = 1.0
"""Least seconds between two requests to a Keystone that did not answer."""


class Outage:
    """State of the connection to Keystone, for all threads of a process.

    Without it, each thread of the web process would wait for the timeout, and health checks behind them too.
    """

    def __init__(self, timeout: float, clock: Callable[[], float] = monotonic) -> None:
        self._timeout = timeout
        self._clock = clock
        self._lock = Lock()
        self._next: float | None = None
        """Time at which the next request may try; None if there is no outage."""

    def enter(self) -> None:
        """Return if a request may be sent now. Raise Unavailable while another one finds out."""
        with self._lock:
            if self._next is None:
                return
            if self._clock() < self._next:
                raise Unavailable("Keystone does not answer at present; nothing was changed")
            self._next = self._clock() + self._timeout + PAUSE

    def begin(self) -> None:
        """Note that Keystone did not answer."""
        with self._lock:
            self._next = self._clock() + PAUSE

    def end(self) -> None:
        """Note that Keystone answered."""
        with self._lock:
            self._next = None
