"""Healing: possibly lost reports are sent again, a few at a time or on request."""

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
from climate.database.batch_delete import PORTION

REMEMBERED = timedelta(days=7)
"""Time after which deleted servers, and tombstones at the top, are purged."""


@dataclass(frozen=True, slots=True)
class HealRequest:
    """Servers to report."""

    project_id: str | None = None
    updated_since: datetime | None = None
    deleted: bool = False
    """True to include deleted ones."""


@dataclass(slots=True)
class Healer:
    """Periodic repetition of reports of recently changed servers, a few per run, in random order."""

    threshold: timedelta
    """Maximum age of a change that is reported again; zero or less: all servers."""
    number: int = 1
    """Number of servers per run."""
    shuffle: Callable[[list[str]], None] = random.shuffle
    left: list[str] = field(default_factory=list)

    def run(self, compute: Compute, tell: Tell) -> list[str]:
        """Report the next servers; return their ids. The list is renewed at most once per run.

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
        result = changes.recent(conn, since)
        self.shuffle(result)
        return result


def sync(compute: Compute, request: HealRequest) -> int:
    """Schedule reports of servers of this cell; return their number."""
    with compute.engine.begin() as conn:
        ids = changes.recent(conn, request.updated_since, project_id=request.project_id, deleted=request.deleted)
        changes.note(conn, ids)
    return len(ids)


def forget(compute: Compute) -> int:
    """Purge servers that were deleted long ago, here and in other cells, in portions; return their number."""
    count, portion = 0, PORTION
    while portion >= PORTION:
        with compute.engine.begin() as conn:
            before = compute.now(conn) - REMEMBERED
            portion = max(own := changes.forget(conn, before), others := servers.forget(conn, before))
        count += own + others
    return count
