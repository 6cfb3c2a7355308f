"""Progress of the comparison of rows with the journal over many runs, and the differences found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from climate.store.tables.hosts import journal_checks as table
from climate.store.tables.hosts import journal_differences as differing

LONGEST = 500
"""Characters of a difference that are kept."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the comparison is."""

    after: UUID
    """The last stream that was compared."""
    began_at: datetime
    """When the pass began that is under way."""
    streams: int = 0
    """How many were compared in it."""
    whole_since: datetime | None = None
    """When the last pass began that came to the end: each stream was compared since."""


def progress(conn: Connection) -> Progress | None:
    """Return how far the comparison is; None before it has begun."""
    row = conn.execute(select(table)).one_or_none()
    return Progress(row.after, row.began_at, row.streams, row.whole_since) if row else None


def begin(conn: Connection, first: Progress) -> None:
    """Begin the first pass, unless somebody has."""
    conn.execute(upsert(table).values(one_row=True, **_row(first)).on_conflict_do_nothing())


def advance(conn: Connection, before: Progress, after: Progress) -> bool:
    """Note how far the comparison has come; False where another process has gone on meanwhile."""
    same = (table.c.after == before.after, table.c.began_at == before.began_at)
    return conn.execute(update(table).where(*same).values(_row(after))).rowcount == 1


def _row(known: Progress) -> dict[str, object]:
    return {
        "after": known.after,
        "began_at": known.began_at,
        "streams": known.streams,
        "whole_since": known.whole_since,
    }


def note(conn: Connection, after: UUID, last: UUID, found: Iterable[tuple[UUID, str]], now: datetime) -> None:
    """Replace what was found in the streams after one, up to the last."""
    conn.execute(delete(differing).where(differing.c.stream > after, differing.c.stream <= last))
    add(conn, found, now)


def add(conn: Connection, found: Iterable[tuple[UUID, str]], now: datetime) -> None:
    """Note streams that differ from their rows."""
    rows = [{"stream": stream, "found_at": now, "what": what[:LONGEST]} for stream, what in dict(found).items()]
    if rows:
        conn.execute(upsert(differing).on_conflict_do_nothing(), rows)


def found(conn: Connection, limit: int) -> list[tuple[UUID, str]]:
    """Return streams that differed when they were compared last, those of longest first, and how."""
    rows = select(differing.c.stream, differing.c.what).order_by(differing.c.found_at, differing.c.stream).limit(limit)
    return [(row.stream, row.what) for row in conn.execute(rows)]


def count(conn: Connection) -> int:
    """Return how many streams differed when they were compared last."""
    return int(conn.execute(select(func.count()).select_from(differing)).scalar_one())


def forget(conn: Connection, streams: Sequence[UUID]) -> None:
    """Note that these streams do not differ any more."""
    conn.execute(delete(differing).where(differing.c.stream.in_(list(streams))))
