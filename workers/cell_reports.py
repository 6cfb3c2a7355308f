"""Reports of this cell's servers to the cells above, and healing: one thread of the cells process."""

import threading
import time
from dataclasses import dataclass, field

from climate.compute import Compute
from climate.compute.cells.messaging.pipeline import Pipeline
from climate.compute.cells.servers import healing, methods, sync
from climate.compute.cells.servers.healing import Healer
from climate.compute.store.cells import changes
from climate.database.connections import reading
from workers.cell_pipeline import Guarded

FOLLOW_SECONDS = 1.0
"""Seconds after which an added or deleted parent is noticed."""

LOOK_AGAIN = 5.0
"""Seconds after which changes are read without a notification, because another process may have died."""

GATHER, GATHER_EACH = 0.02, 0.002
"""Seconds for which changes are collected at most, and per recent change: a burst becomes one message, and a single
change hardly waits.
"""

HEAL_SECONDS = 60.0
"""Time between two runs of healing, in seconds."""

FORGET_SECONDS = 3600.0


@dataclass
class ServerReports:
    """Reports of one cells process; any number of processes may report."""

    compute: Compute
    pipeline: Pipeline
    healer: Healer
    stopping: threading.Event
    changed: threading.Event = field(default_factory=threading.Event)
    due: dict[str, float] = field(default_factory=dict)
    """Times of the next periodic work, by the monotonic clock."""

    def run(self, guarded: Guarded) -> None:
        """Report until `stopping` is set; `guarded` logs errors."""
        heard = True
        while not self.stopping.is_set():
            self.changed.clear()
            act = self.report if heard or self._is_due("look", LOOK_AGAIN) else self.tend
            count = guarded("reporting servers", act)
            if count:
                self.stopping.wait(min(GATHER, count * GATHER_EACH))
            # After an error the notified changes are still to be reported, and after a full batch there may be more.
            heard = count is None or count >= sync.BATCH or self.changed.wait(FOLLOW_SECONDS)

    def report(self) -> int:
        """Report changes and servers to heal; return the number of changes."""
        count = methods.report_changes(self.compute, self.pipeline)
        self.tend()
        return count

    def tend(self) -> int:
        """Record changes if there is a parent, and report servers to heal; return 0 changes."""
        if self._is_due("follow", FOLLOW_SECONDS):
            self._follow()
        if self._is_due("heal", HEAL_SECONDS):
            self.healer.run(self.compute, methods.teller(self.compute))
        if self._is_due("forget", FORGET_SECONDS):
            healing.forget(self.compute)
        return 0

    def _follow(self) -> None:
        wanted = bool(self.pipeline.here().links.around.parents)
        with reading(self.pipeline.quick.engine) as conn:
            tracked = changes.is_tracked(conn)
        if wanted != tracked:
            sync.follow(self.compute, wanted=wanted)

    def _is_due(self, what: str, seconds: float) -> bool:
        now = time.monotonic()
        if now < self.due.get(what, 0.0):
            return False
        self.due[what] = now + seconds
        return True
