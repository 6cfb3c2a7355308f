"""Rows made anew from the journal beside all other work: each stream in a transaction of its own, under its lock.

Only what differs is written.  The journal is read once the lock is taken: until the commit nobody appends to it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from climate.connections import reading
from climate.context import Climate
from climate.domain.errors import Unavailable
from climate.service.journal import check
from climate.service.journal.check import NO_JOURNAL, Difference
from climate.service.leases import repair
from climate.service.leases.event_shares import QUEUE
from climate.service.transaction import work
from climate.store.journal import journal, row_differences, row_repair
from climate.store.journal.projections import LEASE, LIMITS, TERMS, WINDOW, Projection

MOST_AT_ONCE = 100
"""Leases in each other's way whose rows are written in one transaction."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The outcome of a rebuild.  `left` is what could not be mended."""

    streams: int
    """How many were compared."""
    mended: int
    """How many of them have other rows now."""
    left: tuple[Difference, ...] = ()


def rebuild(climate: Climate) -> Rebuilt:
    """Write the rows that are not what the journal says; what cannot be mended stays as it is."""
    streams = 0
    found: list[Difference] = []
    for portion in check.portions(climate):
        streams += portion.streams
        found += portion.differences
    unknown = [one for one in found if one.what == NO_JOURNAL and not _forgotten(climate, one)]
    damaged = sorted({one.stream for one in found} | {one.lease_id for one in repair.listed(climate)})
    with reading(climate.engine) as conn:
        sorts = row_differences.sorts(conn, damaged)
    blocked = [stream for stream in sorted(sorts) if not _mended(climate, sorts[stream], [stream])]
    leases = [stream for stream in blocked if sorts[stream] is LEASE]
    for portion_of in _portions(leases, MOST_AT_ONCE):  # what is in the way may be another of them
        _mended(climate, LEASE, portion_of)
    left = [one for streams_of in _portions(damaged, check.PORTION) for one in check.look_at(climate, streams_of)]
    left += unknown
    return Rebuilt(streams, len(damaged) - len({one.stream for one in left}), tuple(left))


def _portions(streams: Sequence[UUID], size: int) -> Iterator[Sequence[UUID]]:
    for start in range(0, len(streams), size):
        yield streams[start : start + size]


def _mended(climate: Climate, sort: Projection, streams: Sequence[UUID]) -> bool:
    """Whether rows could be written: not where they clash with others, or cannot be made of the facts."""
    try:
        work(climate, lambda conn, patient: _write(climate, conn, sort, streams))
    except (IntegrityError, Unavailable, *row_differences.UNREADABLE):
        return False
    return True


def _write(climate: Climate, conn: Connection, sort: Projection, streams: Sequence[UUID]) -> None:
    if sort is LEASE:
        repair.mend_all(climate, conn, streams, QUEUE)
        return
    row_repair.lock(conn, sort, streams)
    rows = row_differences.compare(conn, streams).rows
    row_repair.lock_held(conn, rows)
    row_repair.clear(conn, sort, rows)
    row_repair.write(conn, sort, rows, climate.now(conn))


def _forgotten(climate: Climate, unknown: Difference) -> bool:
    """Whether rows that no fact knows could be deleted; of leases and hosts too much hangs on them."""
    decisions = {sort.tables[0].table.name: sort for sort in (TERMS, LIMITS)}
    sort = decisions.get(unknown.table)

    def act(conn: Connection, patient: bool) -> bool:
        if sort is not None and not journal.hold(conn, unknown.stream):
            row_repair.forget(conn, sort, unknown.row)
        elif unknown.table == WINDOW.tables[0].table.name:
            row_repair.forget_window(conn, unknown.stream)
        else:
            return False
        return True

    return work(climate, act)
