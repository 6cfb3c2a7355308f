"""Progress of the journal check over many runs, and the differences found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from climate.store.tables.journal_checks import journal_checks as table
from climate.store.tables.journal_checks import journal_differences

LONGEST = 500
"""Maximum length of a stored difference in characters."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of the present pass."""

    after: UUID
    """The last stream that was compared."""
    began_at: datetime
    """Start of the present pass."""
    streams: int = 0
    """Number of streams compared in it."""
    whole_since: datetime | None = None
    """Start of the last complete pass, since which each stream was compared."""


def progress(conn: Connection) -> Progress | None:
    """Return the progress, or None before the first pass."""
    row = conn.execute(select(table)).one_or_none()
    return Progress(row.after, row.began_at, row.streams, row.whole_since) if row else None


def begin(conn: Connection, first: Progress) -> None:
    """Begin the first pass, unless it has begun."""
    conn.execute(upsert(table).values(one_row=True, **_row(first)).on_conflict_do_nothing())


def advance(conn: Connection, before: Progress, after: Progress) -> bool:
    """Record progress; return False if another process has advanced meanwhile."""
    same = (table.c.after == before.after, table.c.began_at == before.began_at)
    return conn.execute(update(table).where(*same).values(_row(after))).rowcount == 1


def _row(known: Progress) -> dict[str, object]:
    return {
        "after": known.after,
        "began_at": known.began_at,
        "streams": known.streams,
        "whole_since": known.whole_since,
    }


def note(conn: Connection, after: UUID, last: UUID, streams: Iterable[tuple[UUID, str]], now: datetime) -> None:
    """Replace the differences of the streams after one, up to the last."""
    conn.execute(
        delete(journal_differences).where(journal_differences.c.stream > after, journal_differences.c.stream <= last)
    )
    add(conn, streams, now)


def add(conn: Connection, streams: Iterable[tuple[UUID, str]], now: datetime) -> None:
    """Note streams that differ from their rows."""
    rows = [{"stream": stream, "found_at": now, "what": what[:LONGEST]} for stream, what in dict(streams).items()]
    if rows:
        conn.execute(upsert(journal_differences).on_conflict_do_nothing(), rows)


def differences(conn: Connection, limit: int) -> list[tuple[UUID, str]]:
    """Return streams that differed in their last comparison, oldest first, with the differences."""
    rows = (
        select(journal_differences.c.stream, journal_differences.c.what)
        .order_by(journal_differences.c.found_at, journal_differences.c.stream)
        .limit(limit)
    )
    return [(row.stream, row.what) for row in conn.execute(rows)]


def count(conn: Connection) -> int:
    """Return the number of streams that differed in their last comparison."""
    return int(conn.execute(select(func.count()).select_from(journal_differences)).scalar_one())


def forget(conn: Connection, streams: Sequence[UUID]) -> None:
    """Delete the recorded differences of these streams."""
    conn.execute(delete(journal_differences).where(journal_differences.c.stream.in_(list(streams))))
