"""Comparison of rows with the journal, and past states of a lease."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import NotFound
from climate.domain.lease import Lease, fold
from climate.service.journal import archives
from climate.store.journal import fact_codec, journal, row_differences
from climate.store.journal.journal import Entry
from climate.store.journal.row_differences import FIRST, Compared, RowDifference

PORTION = 200
"""Number of streams that are compared together."""

NO_ROWS, NO_JOURNAL = "has a journal but no rows", "has rows but no journal"


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference between a stream's facts and its rows: table, row and column."""

    stream: UUID
    what: str
    table: str = ""
    row: str = ""
    column: str = ""


@dataclass(frozen=True, slots=True)
class Portion:
    """Result for some streams. `last` is the last of them; None: there are no more."""

    differences: tuple[Difference, ...]
    last: UUID | None
    streams: int
    facts: int


def differences(climate: Climate) -> list[Difference]:
    """Fold the whole journal and return its differences from the rows; empty is healthy."""
    matching = [difference for portion in portions(climate) for difference in portion.differences]
    with reading(climate.engine) as conn:
        return matching + [Difference(stream, what) for stream, what in archives.damage(conn, climate)]


def portions(
    climate: Climate, after: UUID = FIRST, size: int = PORTION, begun_by: int | None = None
) -> Iterator[Portion]:
    """Compare streams from there on, each portion in its own snapshot.

    With `begun_by`, only streams whose first fact is at that position of the journal or before.
    """
    place: UUID | None = after
    while place is not None:
        portion = compare_portion(climate, place, size, begun_by)
        yield portion
        place = portion.last


def compare_portion(climate: Climate, after: UUID = FIRST, size: int = PORTION, begun_by: int | None = None) -> Portion:
    """Compare the first streams after a stream with their rows; `begun_by` as of `portions`."""
    with snapshot(climate) as conn:
        streams = journal.streams(conn, after, size, begun_by)
        last = streams[-1] if len(streams) == size else None
        compared = row_differences.compare(conn, streams)
        result = as_differences(compared)
        result += [
            Difference(stream, NO_JOURNAL, sort.tables[0].table.name)
            for stream, sort in row_differences.without_journal(conn, after, last)
        ]
        if last is None:
            rest = row_differences.decisions_without_journal(conn)
            result += [Difference(stream, NO_JOURNAL, sort.tables[0].table.name, owner) for stream, sort, owner in rest]
    return Portion(tuple(result), last, len(streams), compared.facts)


def compare_streams(climate: Climate, streams: Sequence[UUID]) -> list[Difference]:
    """Compare these streams with their rows."""
    with snapshot(climate) as conn:
        return as_differences(row_differences.compare(conn, streams))


@contextmanager
def snapshot(climate: Climate) -> Iterator[Connection]:
    """Open a connection whose statements all see the same rows."""
    with climate.engine.connect().execution_options(isolation_level="REPEATABLE READ") as conn:
        yield conn


def as_differences(compared: Compared) -> list[Difference]:
    """Format the differences; of a stream without its main row, only that one."""
    lost = {row.stream for row in compared.rows if row.is_main and row.said is None}
    result = [Difference(fault.stream, fault.what) for fault in compared.faults]
    for row in compared.rows:
        if row.stream not in lost:
            result += _of_row(row)
        elif row.is_main:
            result.append(Difference(row.stream, NO_ROWS, row.projected.table.name, _key_text(row.key)))
    return sorted(result, key=lambda difference: difference.stream)


def _of_row(one: RowDifference) -> Iterator[Difference]:
    table, row = one.projected.table.name, _key_text(one.key)
    if one.said is None or one.known is None:
        what = "facts say that there is one" if one.said is None else "no fact says that there is one"
        yield Difference(one.stream, f"{table} {row}: {'no row' if one.said is None else 'a row'}, {what}", table, row)
        return
    for column in one.columns:
        said, known = one.said[column], fact_codec.encode(one.known[column])
        what = f"{table} {row}: {column}: rows say {said!r}, facts say {known!r}"
        yield Difference(one.stream, what, table, row, column)


def _key_text(key: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in key.items())


def lease_history(climate: Climate, lease_id: UUID, at: datetime | None = None) -> tuple[Lease, list[Entry]]:
    """Return a lease as it was `at` a time (default: now), with its facts until then."""
    with reading(climate.engine) as conn:
        entries = archives.facts_of(conn, climate, lease_id)
    entries = entries if at is None else journal.until(entries, at)
    facts = journal.of_lease(entries)
    if not facts:  # also for the id of a host or of a series, which have streams of their own
        raise NotFound(f"Object with {{'lease_id': '{lease_id}'}} not found")
    return fold(facts), entries
