"""The journal against the rows: check, rebuild, look back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import groupby
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import NotFound
from climate.domain.lease import Lease, fold
from climate.store import journal, lease_rows, leases
from climate.store.journal import Entry

PORTION = 500
"""Leases that are written at once."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A lease whose rows are not what its facts say."""

    lease_id: UUID
    what: str


def differences(climate: Climate) -> list[Difference]:
    """Fold the whole journal and compare with the rows; empty is healthy.  One consistent snapshot."""
    with climate.engine.connect().execution_options(isolation_level="REPEATABLE READ") as conn:
        conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
        found: list[Difference] = []
        rows = iter(leases.all_of(conn))
        row = next(rows, None)
        for stream, lease, whole in _folded(conn):
            while row is not None and row.id < stream:
                found.append(Difference(row.id, "has rows but no journal"))
                row = next(rows, None)
            if not whole:
                found.append(Difference(stream, "versions are not 1..n"))
            if row is None or row.id != stream:
                found.append(Difference(stream, "has a journal but no rows"))
                continue
            found += [Difference(stream, what) for what in _unlike(row, lease)]
            row = next(rows, None)
        found += [Difference(extra.id, "has rows but no journal") for extra in ([row] if row else []) + list(rows)]
    return found


def rebuild(climate: Climate) -> int:
    """Write every lease's rows anew from its facts; how many leases there are.

    Claims and steps under way are left alone: the journal does not know them.
    """
    with climate.engine.begin() as conn:
        conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
        conn.exec_driver_sql("LOCK TABLE leases IN EXCLUSIVE MODE")
        leases.forget_allocations(conn)
        whole = [lease for _, lease, _ in _folded(conn)]
        for portion in _portions(whole, PORTION):
            lease_rows.save(conn, [(None, lease) for lease in portion])
    return len(whole)


def _portions(items: Sequence[Lease], size: int) -> Iterator[Sequence[Lease]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def story(climate: Climate, lease_id: UUID, at: datetime | None = None) -> tuple[Lease, list[Entry]]:
    """A lease as it was `at` a moment (default: now) with all that had happened to it by then."""
    with climate.engine.connect() as conn:
        entries = journal.read(conn, lease_id)
    entries = entries if at is None else journal.until(entries, at)
    if not entries:
        raise NotFound(f"Object with {{'lease_id': '{lease_id}'}} not found")
    return fold([entry.fact for entry in entries]), entries


def _folded(conn: Connection) -> Iterator[tuple[UUID, Lease, bool]]:
    """Each stream with its lease, and whether its versions have no holes."""
    for stream, entries in groupby(journal.read_all(conn), key=lambda entry: entry.stream):
        known = list(entries)
        whole = [entry.version for entry in known] == list(range(1, len(known) + 1))
        yield stream, fold([entry.fact for entry in known]), whole


def _unlike(row: Lease, lease: Lease) -> list[str]:
    if row == lease:
        return []
    names = [f.name for f in fields(Lease) if getattr(row, f.name) != getattr(lease, f.name)]
    return [f"{name}: rows say {getattr(row, name)!r}, facts say {getattr(lease, name)!r}" for name in names]
