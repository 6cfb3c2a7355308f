"""Repair of rows from the journal during normal operation, under the locks of their streams.

Only differing rows are written. The journal is read once the locks are held, so nobody appends to it until
the commit. A run covers the streams that existed when it began, so it ends however many are added meanwhile.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import Unavailable
from climate.service.events.event_shares import QUEUE
from climate.service.journal import consistency_check
from climate.service.journal.consistency_check import NO_JOURNAL, Difference
from climate.service.leases import broken_leases
from climate.service.transaction import run
from climate.service.usage import round as usage
from climate.store.journal import journal, row_differences, row_repair
from climate.store.journal.projections import LEASE, LIMITS, TERMS, WINDOW, Projection

TOGETHER = 20
"""Damaged leases whose rows are written in one transaction.

A transaction takes the same number of statements for one lease as for all of them. More than a few would hold
the locks of leases and hosts for too long.
"""

MOST_AT_ONCE = 100
"""Maximum number of conflicting leases whose rows are written in one transaction."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Result of a rebuild. `left` could not be repaired."""

    streams: int
    """Number of compared streams."""
    mended: int
    """Number of repaired streams."""
    left: tuple[Difference, ...] = ()


def _repair(climate: Climate, damaged: Sequence[UUID]) -> None:
    """Write the rows of these streams anew, those of leases last."""
    with reading(climate.engine) as conn:
        sorts = row_differences.sorts(conn, damaged)
    for stream in sorted(sorts):
        if sorts[stream] is not LEASE:
            _mended(climate, sorts[stream], [stream])
    _repair_leases(climate, sorted(stream for stream in sorts if sorts[stream] is LEASE))


def rebuild(climate: Climate) -> Rebuilt:
    """Write the rows that differ from the journal; rows that cannot be repaired stay as they are.

    The host hours of all leases are computed anew.
    """
    with reading(climate.engine) as conn:
        begun = journal.last_position(conn)
    streams = 0
    result: list[Difference] = []
    for portion in consistency_check.portions(climate, begun_by=begun):
        streams += portion.streams
        result += portion.differences
    unknown = [one for one in result if one.what == NO_JOURNAL and not _forgotten(climate, one)]
    damaged = sorted({one.stream for one in result} | {one.lease_id for one in broken_leases.listed(climate)})
    _repair(climate, damaged)
    left = [
        one
        for streams_of in _portions(damaged, consistency_check.PORTION)
        for one in consistency_check.compare_streams(climate, streams_of)
    ]
    left += unknown
    usage.recompute(climate)
    return Rebuilt(streams, len(damaged) - len({one.stream for one in left}), tuple(left))


def _repair_leases(climate: Climate, leases: Sequence[UUID]) -> None:
    """Write the rows of leases a few at a time; retry conflicting ones alone, then with one another."""
    failed = [portion for portion in _portions(leases, TOGETHER) if not _mended(climate, LEASE, portion)]
    blocked = [lease for portion in failed for lease in portion if not _mended(climate, LEASE, [lease])]
    for portion in _portions(blocked, MOST_AT_ONCE):  # the conflicting row may belong to another of them
        _mended(climate, LEASE, portion)


def _portions(streams: Sequence[UUID], size: int) -> Iterator[Sequence[UUID]]:
    for start in range(0, len(streams), size):
        yield streams[start : start + size]


def _mended(climate: Climate, sort: Projection, streams: Sequence[UUID]) -> bool:
    """Return whether rows could be written: not if they conflict with others, or cannot be derived from the facts."""
    try:
        run(climate, _write, climate, sort, streams)
    except (IntegrityError, Unavailable, *row_differences.UNREADABLE):
        return False
    return True


def _write(conn: Connection, climate: Climate, sort: Projection, streams: Sequence[UUID]) -> None:
    if sort is LEASE:
        broken_leases.repair_leases(conn, climate, streams, QUEUE)
        return
    row_repair.lock(conn, sort, streams)
    rows = row_differences.compare(conn, streams).rows
    row_repair.lock_held(conn, rows)
    row_repair.clear(conn, sort, rows)
    row_repair.write(conn, sort, rows, climate.now(conn))


def _forgotten(climate: Climate, unknown: Difference) -> bool:
    """Return whether rows without a fact could be deleted; those of leases and hosts are kept."""
    decisions = {sort.tables[0].table.name: sort for sort in (TERMS, LIMITS)}
    sort = decisions.get(unknown.table)
    return run(climate, _forget, unknown, sort)


def _forget(conn: Connection, unknown: Difference, sort: Projection | None) -> bool:
    if sort is not None and not journal.lock_stream(conn, unknown.stream):
        row_repair.forget(conn, sort, unknown.row)
    elif unknown.table == WINDOW.tables[0].table.name:
        row_repair.forget_window(conn, unknown.stream)
    else:
        return False
    return True
