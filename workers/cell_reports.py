"""Reports of this cell's servers to the cells above, and healing: one thread of the cells process."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from climate.compute import Compute
from climate.compute.cells import healing, neighbours, server_methods, server_sync
from climate.compute.cells.healing import Healer

LOOK_AGAIN = 1.0
"""Seconds after which the database is looked at although nothing was heard."""

GATHER, GATHER_EACH = 0.02, 0.002
"""Seconds for which changes are gathered at most, and for each that came last: many that come together are one
message, and one alone hardly waits."""

HEAL_SECONDS = 60.0
"""Time between two runs of healing, in seconds."""

FORGET_SECONDS = 3600.0


@dataclass
class ServerReports:
    """Reports of one cells process; any number of processes may report."""

    compute: Compute
    healer: Healer
    stopping: threading.Event
    changed: threading.Event = field(default_factory=threading.Event)
    due: dict[str, float] = field(default_factory=dict)
    """When periodic work is due, by the monotonic clock."""

    def run(self, guarded: Callable[[str, Callable[[], Any]], Any]) -> None:
        """Report until `stopping` is set; `guarded` survives the errors of what it is handed."""
        while not self.stopping.is_set():
            self.changed.clear()
            if count := guarded("reporting servers", self.report):
                self.stopping.wait(min(GATHER, count * GATHER_EACH))
            else:
                self.changed.wait(LOOK_AGAIN)

    def report(self) -> int:
        """Report what has changed, and what is to be healed; the number of changes."""
        compute = self.compute
        if self._is_due("follow", LOOK_AGAIN):
            self._follow()
        done = server_methods.report_changes(compute)
        if self._is_due("heal", HEAL_SECONDS):
            self.healer.run(compute, server_methods.teller(compute))
        if self._is_due("forget", FORGET_SECONDS):
            healing.forget(compute)
        return done

    def _follow(self) -> None:
        with self.compute.engine.connect() as conn:
            wanted = bool(neighbours.around(conn).parents)
        server_sync.follow(self.compute, wanted=wanted)

    def _is_due(self, what: str, seconds: float) -> bool:
        now = time.monotonic()
        if now < self.due.get(what, 0.0):
            return False
        self.due[what] = now + seconds
        return True
