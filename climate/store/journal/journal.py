"""Append-only journal of facts."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from types import UnionType
from typing import get_args
from uuid import UUID

from sqlalchemy import BigInteger, ColumnElement, Connection, Integer, Row, Uuid, bindparam, func, insert, select, text
from sqlalchemy.dialects.postgresql import distinct_on

from climate.database.advisory_locks import Subject
from climate.database.sql_arrays import in_parameter
from climate.domain.errors import UnreadableFact
from climate.domain.facts import Fact, HostFact
from climate.domain.hosts.maintenance_facts import WindowFact
from climate.domain.operator_facts import OperatorFact
from climate.domain.planning.series import SeriesFact
from climate.domain.policy import Caller
from climate.store import locks
from climate.store.journal import fact_codec
from climate.store.journal.fact_codec import AnyFact
from climate.store.tables.leases import journal


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the journal."""

    stream: UUID
    version: int
    fact: AnyFact
    actor: dict[str, object]
    request_id: str
    recorded_at: datetime


def rows(facts: Sequence[tuple[UUID, int, AnyFact]], author: Caller) -> list[dict[str, object]]:
    """Return facts with streams and versions as rows to append."""
    actor = {"user_id": author.user_id, "project_id": author.project_id}
    return [
        {
            "stream": stream,
            "version": version,
            "kind": type(fact).__name__,
            "body": fact_codec.encode(fact),
            "actor": actor,
            "request_id": author.request_id,
        }
        for stream, version, fact in facts
    ]


def read(conn: Connection, stream: UUID) -> list[Entry]:
    """Return all facts of one lease, or of one host, oldest first."""
    result = conn.execute(select(journal).where(journal.c.stream == stream).order_by(journal.c.version))
    return [_entry(row) for row in result]


def read_many(conn: Connection, streams: Sequence[UUID]) -> list[Entry]:
    """Return all facts of these streams, stream by stream, oldest first."""
    wanted = in_parameter(journal.c.stream, "streams")
    ordered = select(journal).where(wanted).order_by(journal.c.stream, journal.c.version)
    return [_entry(row) for row in conn.execute(ordered, {"streams": streams})]


def until(entries: Sequence[Entry], at: datetime) -> list[Entry]:
    """Return the facts until then, by version: a poller may have read the clock a moment too early."""
    return list(takewhile(lambda entry: entry.fact.at <= at, entries))


def of_lease(entries: Iterable[Entry]) -> list[Fact]:
    """Return the facts of a lease's stream."""
    return [entry.fact for entry in entries if isinstance(entry.fact, Fact)]


def of_host(entries: Iterable[Entry]) -> list[HostFact]:
    """Return the facts of a host's stream."""
    return [entry.fact for entry in entries if isinstance(entry.fact, HostFact)]


def of_operators(entries: Iterable[Entry]) -> list[OperatorFact]:
    """Return the facts of a stream of decisions."""
    return [entry.fact for entry in entries if isinstance(entry.fact, OperatorFact)]


ENDLESS = 2**63 - 1
"""A position after all others."""


def read_all(conn: Connection, *, of: UnionType = Fact) -> Iterator[Entry]:
    """Yield every stream of one sort in turn, oldest first; read in batches, so of any size."""
    kinds = [kind.__name__ for kind in get_args(of)]
    ordered = select(journal).where(journal.c.kind.in_(kinds)).order_by(journal.c.stream, journal.c.version)
    for row in conn.execute(ordered, execution_options={"yield_per": 1000}):
        yield _entry(row)


def streams(conn: Connection, after: UUID, limit: int, begun_by: int | None = None) -> list[UUID]:
    """Return the first streams after a stream, in order, of any sort.

    With `begun_by`, only streams whose first fact is at that position of the journal or before.
    """
    # Each is found by one step in the index, however long the streams between are.
    position = ENDLESS if begun_by is None else begun_by
    return list(conn.scalars(_STREAMS, {"after": after, "limit": limit, "position": position}))


def last_position(conn: Connection) -> int:
    """Return the position of the last fact, 0 if there is none."""
    value: int | None = conn.scalar(select(func.max(journal.c.position)))
    return value or 0


def first_kinds(conn: Connection, wanted: Sequence[UUID]) -> dict[UUID, str]:
    """Return the kind of the first fact of each of the streams that have a journal."""
    first = select(journal.c.stream, journal.c.kind).where(_among_streams()).ext(distinct_on(journal.c.stream))
    rows = conn.execute(first.order_by(journal.c.stream, journal.c.version), {"streams": list(wanted)})
    return {row.stream: row.kind for row in rows}


def _among_streams() -> ColumnElement[bool]:
    return in_parameter(journal.c.stream, "streams")


def lock_stream(conn: Connection, stream: UUID) -> list[Entry]:
    """Return all facts of a stream without rows of its own to lock; nobody else appends until the transaction ends."""
    lock(conn, stream)
    return read(conn, stream)


def lock(conn: Connection, stream: UUID) -> None:
    """Lock a stream without rows of its own, so that nobody else appends until the transaction ends."""
    locks.lock_object(conn, Subject.JOURNAL, stream)


def append_next(conn: Connection, author: Caller, facts: Sequence[tuple[UUID, AnyFact]]) -> None:
    """Append a fact to the end of each of these streams; the streams or their rows must be locked."""
    streams = [stream for stream, _ in facts]
    wanted = in_parameter(journal.c.stream, "streams")
    last = select(journal.c.stream, func.max(journal.c.version)).where(wanted).group_by(journal.c.stream)
    known: dict[UUID, int] = {row[0]: row[1] for row in conn.execute(last, {"streams": streams})}
    entries = [(stream, known.get(stream, 0) + 1, fact) for stream, fact in facts]
    if entries:
        conn.execute(insert(journal), rows(entries, author))


def of_window(entries: Iterable[Entry]) -> list[WindowFact]:
    """Return the facts of a maintenance window's stream."""
    return [entry.fact for entry in entries if isinstance(entry.fact, WindowFact)]


def of_series(entries: Iterable[Entry]) -> list[SeriesFact]:
    """Return the facts of the stream of a series of leases."""
    return [entry.fact for entry in entries if isinstance(entry.fact, SeriesFact)]


def append(conn: Connection, author: Caller, stream: UUID, known: Sequence[Entry], fact: OperatorFact) -> None:
    """Append a fact to a locked stream, after the entries `known`."""
    conn.execute(insert(journal), rows([(stream, len(known) + 1, fact)], author))


def _entry(row: Row[*tuple[object, ...]]) -> Entry:
    try:
        fact = fact_codec.decode(row.kind, row.body)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise UnreadableFact(row.stream, row.version, row.kind) from error
    return Entry(row.stream, row.version, fact, row.actor, row.request_id, row.recorded_at)


_STREAMS = (
    text("""
    WITH RECURSIVE streams (stream, fits, place) AS (
        (SELECT stream, position <= :position, (position <= :position)::int
            FROM journal WHERE stream > :after ORDER BY stream, version LIMIT 1)
        UNION ALL
        SELECT n.stream, n.position <= :position, place + (n.position <= :position)::int FROM streams f
        CROSS JOIN LATERAL (
            SELECT j.stream, j.position FROM journal j WHERE j.stream > f.stream ORDER BY j.stream, j.version LIMIT 1) n
        WHERE place < :limit)
    SELECT stream FROM streams WHERE fits ORDER BY stream
""")
    .bindparams(
        bindparam("after", type_=Uuid), bindparam("limit", type_=Integer), bindparam("position", type_=BigInteger)
    )
    .columns(stream=Uuid)
)
