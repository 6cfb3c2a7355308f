"""The scheduler's snapshot of all nodes: kept by each process, and brought up to date by one statement per request.

Every write of a node or a service stamps the row with the number of its
transaction (`changed`).  Each reading remembers the database snapshot that it
ran on, and the next one asks for the rows stamped by a transaction which that
snapshot did not show: one that was under way then, or has begun since.  Such a
transaction has not been seen, every other one has, whatever the order in which
they commit; so nothing is missed and nothing is read twice.  That a node has
gone, and what happens to ordinary aggregates and their members, is told by the
one row of `compute_structure`, upon which everything is read.  So it is when the
database was restored, as numbers of transactions from before mean nothing then.

What a request gets is as true as a query of its own would have been.  It may be
outdated when a node is claimed, as the answer of any query may: the claim looks
at the rows again, under their locks.
"""

import logging
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from climate.compute.scheduler.hosts.snapshot import Moment, moved_on, whole
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.store.nodes import scheduler_snapshot

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Roster:
    """The latest moment that this process has seen.

    Threads share it without a lock: each goes on from the moment that it finds
    and leaves another; whichever is left last is whole, and says what it shows.
    """

    _kept: Moment | None = None

    def take(self, conn: Connection, now: datetime, down_seconds: float, *, afresh: bool = False) -> Hosts:
        """All nodes as this connection sees them now, for one request to consume.

        Services that were not heard of for `down_seconds` are down.  `afresh`:
        read everything, whatever is kept.
        """
        base = self._kept
        moment = None
        if base is not None and not afresh:
            reading = scheduler_snapshot.changes(conn, base.seen)
            moment = moved_on(base, reading)
        if moment is None:
            reading = scheduler_snapshot.everything(conn)
            moment = whole(reading)
            _tell_dead(base, moment)
        # What this transaction has written may yet be rolled back: that is for it alone.
        if not reading.own:
            self._kept = moment
        return moment.table(reading.busy, now, down_seconds)


def _tell_dead(before: Moment | None, after: Moment) -> None:
    if before is None:
        return
    gone = set(before.hosts.ids.tolist()) - set(after.hosts.ids.tolist())
    for number, host, name in zip(before.hosts.ids, before.hosts.service_hosts, before.hosts.names, strict=True):
        if int(number) in gone:
            log.info("Removing dead compute node %s:%s from scheduler", host, name)
