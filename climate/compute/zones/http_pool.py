"""Open connections that are kept for the next request, shared by the threads of one process."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from weakref import finalize

from climate.compute.zones.http_connection import Connection, Origin

MOST_KEPT = 64
"""Connections that are kept at most, over all servers."""

KEPT_SECONDS = 15.0
"""Seconds for which a connection is kept without use."""

UNSAFE_SECONDS = 1.0
"""The same for a request that must not be sent twice: a server may close an idle connection while it is sent."""


@dataclass
class Pool:
    """Connections by server, the last used last.  A process that was forked off begins with none."""

    _kept: list[Connection] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _process: int = field(default_factory=os.getpid)

    def __post_init__(self) -> None:
        finalize(self, _close, self._kept)

    def take(self, origin: Origin, *, is_safe: bool) -> Connection | None:
        """An open connection to a server, which nobody else has until it is given back; None: there is none."""
        oldest = time.monotonic() - (KEPT_SECONDS if is_safe else UNSAFE_SECONDS)
        while (found := self._last(origin, oldest)) is not None:
            if found.is_quiet:
                return found
            found.close()
        return None

    @contextmanager
    def lent(self, connection: Connection) -> Iterator[Connection]:
        """Keep a connection after the block, unless it can not be used again."""
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if connection.is_reusable:
            self._keep(connection)
        else:
            connection.close()

    def _last(self, origin: Origin, oldest: float) -> Connection | None:
        with self._lock:
            self._forget_others()
            for number in range(len(self._kept) - 1, -1, -1):
                if self._kept[number].idle_since < oldest:
                    return None
                if self._kept[number].origin == origin:
                    return self._kept.pop(number)
        return None

    def _keep(self, connection: Connection) -> None:
        oldest = time.monotonic() - KEPT_SECONDS
        with self._lock:
            self._forget_others()
            self._kept.append(connection)
            while len(self._kept) > MOST_KEPT or self._kept[0].idle_since < oldest:
                self._kept.pop(0).close()

    def _forget_others(self) -> None:
        """Close what was copied from the process that this one was forked off from; its own stay open."""
        if self._process != os.getpid():
            _close(self._kept)
            self._process = os.getpid()


def _close(kept: list[Connection]) -> None:
    while kept:
        kept.pop().close()
