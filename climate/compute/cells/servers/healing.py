"""Healing: reports that may have been lost are sent again, a few at a time or when somebody asks for it."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection

from climate.compute.cells import neighbours
from climate.compute.cells.servers import sync as server_sync
from climate.compute.cells.servers.sync import Tell
from climate.compute.context import Compute
from climate.compute.store.cells import changes, servers

REMEMBERED = timedelta(days=7)
"""Servers that are gone, and tombstones at the top, are forgotten after this."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Servers to report."""

    project_id: str | None = None
    updated_since: datetime | None = None
    deleted: bool = False
    """With those that are gone."""


@dataclass(slots=True)
class Healer:
    """Reports servers again that have changed lately, a few in each run, in any order."""

    threshold: timedelta
    """Age of the oldest change that is reported again; zero or less: all servers."""
    number: int = 1
    """Servers in a run."""
    shuffle: Callable[[list[str]], None] = random.shuffle
    left: list[str] = field(default_factory=list)

    def run(self, compute: Compute, tell: Tell) -> list[str]:
        """Report the next servers; their ids.  The list is made anew at most once in a run.

        Does nothing in a cell without parents.
        """
        with compute.engine.begin() as conn:
            if not neighbours.around(conn).parents:
                return []
            chosen, self.left = self.left[: self.number], self.left[self.number :]
            lacking = self.number - len(chosen)
            if lacking > 0:
                self.left = self._listed(compute, conn)
                chosen, self.left = chosen + self.left[:lacking], self.left[lacking:]
            server_sync.report(compute, conn, tell, dict.fromkeys(sorted(chosen), compute.now(conn)))
        return chosen

    def _listed(self, compute: Compute, conn: Connection) -> list[str]:
        since = compute.now(conn) - self.threshold if self.threshold > timedelta() else None
        found = changes.recent(conn, since)
        self.shuffle(found)
        return found


def sync(compute: Compute, wanted: Wanted) -> int:
    """Have servers of this cell reported; how many."""
    with compute.engine.begin() as conn:
        ids = changes.recent(conn, wanted.updated_since, project_id=wanted.project_id, deleted=wanted.deleted)
        changes.note(conn, ids)
    return len(ids)


def forget(compute: Compute) -> int:
    """Forget servers that were deleted long ago, here and in other cells; how many."""
    with compute.engine.begin() as conn:
        before = compute.now(conn) - REMEMBERED
        return changes.forget(conn, before) + servers.forget(conn, before)
