"""Cache of the scheduler's snapshot in each process, updated by one statement per request.

Every write of a node or a service stamps the row with the number of its transaction (`changed`). Each reading keeps the
database snapshot that it ran on. The next reading selects rows stamped by transactions which that snapshot did not
show, because they were in progress or began later. So no change is missed or read twice, whatever the order of commits.
Deleted nodes, and changes of ordinary aggregates and their members, change the one row of `compute_structure`, and
then everything is read again. The same happens after a restore of the database, because its transaction numbers
restart.

The result is as current as that of a query. It may be outdated when a node is claimed, so the claim checks the rows
again under their locks.
"""

import logging
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from climate.compute.scheduler.hosts.snapshot import Snapshot, moved_on, whole
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.store.nodes import scheduler_snapshot

log = logging.getLogger(__name__)


@dataclass(slots=True)
class SnapshotCache:
    """Latest snapshot of this process.

    Threads share it without a lock: each starts from the current snapshot and stores another. Any of them is complete.
    """

    _kept: Snapshot | None = None

    def take(self, conn: Connection, now: datetime, down_seconds: float, *, afresh: bool = False) -> Hosts:
        """Return all nodes as this connection sees them now, for one request to consume.

        Services without a heartbeat for `down_seconds` are down. `afresh`: read everything, without the cache.
        """
        base = self._kept
        moment = None
        if base is not None and not afresh:
            reading = scheduler_snapshot.changes(conn, base.seen)
            moment = moved_on(base, reading)
        if moment is None:
            reading = scheduler_snapshot.everything(conn)
            moment = whole(reading)
            _log_dead(base, moment)
        # Changes of this transaction may be rolled back, so do not cache them.
        if not reading.own:
            self._kept = moment
        return moment.table(reading.busy, now, down_seconds)


def _log_dead(before: Snapshot | None, after: Snapshot) -> None:
    if before is None:
        return
    gone = set(before.hosts.ids.tolist()) - set(after.hosts.ids.tolist())
    for number, host, name in zip(before.hosts.ids, before.hosts.service_hosts, before.hosts.names, strict=True):
        if int(number) in gone:
            log.info("Removing dead compute node %s:%s from scheduler", host, name)
