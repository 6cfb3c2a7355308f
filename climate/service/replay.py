"""The journal against the rows: check, rebuild, look back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TypeVar
from uuid import UUID

from sqlalchemy import Connection

from climate.connections import reading
from climate.context import Climate
from climate.domain import host_care as care
from climate.domain import pools, window_facts
from climate.domain.errors import NotFound
from climate.domain.facts import HostFact
from climate.domain.host_care import HostCare
from climate.domain.lease import Lease, fold
from climate.domain.operator_facts import OperatorFact, PoolTermsSet, decided
from climate.domain.pools import HostPlace
from climate.domain.window_facts import Standing, WindowFact
from climate.service import archives
from climate.store import claims, host_care, journal, lease_rows, leases, limits, places, set_aside, terms, windows
from climate.store.journal import Entry
from climate.store.tampering import differing

PORTION = 500
"""Leases that are written at once."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A lease or a host whose rows are not what its facts say."""

    stream: UUID
    what: str


def differences(climate: Climate) -> list[Difference]:
    """Fold the whole journal and compare with the rows; empty is healthy.  One consistent snapshot."""
    with climate.engine.connect().execution_options(isolation_level="REPEATABLE READ") as conn:
        conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
        return [
            *_compared(((lease.id, lease) for lease in leases.all_of(conn)), _folded(conn)),
            *_compared(((place.stream, place) for place in places.everywhere(conn)), _folded_hosts(conn)),
            *_care_compared(conn),
            *_windows_compared(conn),
            *_decisions_compared(conn),
            *(Difference(stream, what) for stream, what in archives.damage(climate, conn)),
        ]


def _care_compared(conn: Connection) -> Iterator[Difference]:
    """What hosts are like and how they are switched; hosts without rows or journal were told of with their places."""
    rows = dict(host_care.everywhere(conn))
    for stream, known in _folded_care(conn):
        if (row := rows.get(stream)) is not None:
            yield from (Difference(stream, what) for what in _unlike(row, known))


def _folded_care(conn: Connection) -> Iterator[tuple[UUID, HostCare]]:
    for stream, known in _streams(journal.read_all(conn, of=HostFact)):
        yield stream, care.fold(journal.of_host(known))


def _windows_compared(conn: Connection) -> Iterator[Difference]:
    """Maintenance windows against their facts."""
    rows = windows.everything(conn)
    for window_id, known in _streams(journal.read_all(conn, of=WindowFact)):
        if not _is_whole(known):
            yield Difference(window_id, "versions are not 1..n")
        row = rows.pop(window_id, None)
        if row is None:
            yield Difference(window_id, "has a journal but no rows")
            continue
        yield from (Difference(window_id, what) for what in _unlike(row, window_facts.fold(journal.of_window(known))))
    yield from (Difference(window_id, "has rows but no journal") for window_id in rows)


def _rewrite_windows(conn: Connection) -> None:
    whole = dict(_streams(journal.read_all(conn, of=WindowFact)))
    folded = {stream: window_facts.fold(journal.of_window(known)) for stream, known in whole.items()}
    windows.rewrite(conn, folded, {stream: known[0] for stream, known in whole.items()})


def _decisions_compared(conn: Connection) -> Iterator[Difference]:
    """What administrators have decided about pools and projects, against their facts."""
    rows = {**terms.all_of(conn), **limits.all_of(conn)}
    for stream, known in _streams(journal.read_all(conn, of=OperatorFact)):
        if not _is_whole(known):
            yield Difference(stream, "versions are not 1..n")
        said, told = rows.pop(stream, {}), decided(journal.of_operators(known))
        for name in sorted({*said, *told}):
            if said.get(name) != told.get(name):
                yield Difference(stream, f"{name}: rows say {said.get(name)!r}, facts say {told.get(name)!r}")
    yield from (Difference(stream, "has rows but no journal") for stream, said in rows.items() if said)


Row = TypeVar("Row", Lease, HostPlace, HostCare, Standing)


def _compared(rows: Iterator[tuple[UUID, Row]], folded: Iterator[tuple[UUID, Row, bool]]) -> Iterator[Difference]:
    """Both come in the order of their streams."""
    row = next(rows, None)
    for stream, known, whole in folded:
        while row is not None and row[0] < stream:
            yield Difference(row[0], "has rows but no journal")
            row = next(rows, None)
        if not whole:
            yield Difference(stream, "versions are not 1..n")
        if row is None or row[0] != stream:
            yield Difference(stream, "has a journal but no rows")
            continue
        for what in _unlike(row[1], known):
            yield Difference(stream, what)
        row = next(rows, None)
    for extra in ([row] if row else []) + list(rows):
        yield Difference(extra[0], "has rows but no journal")


def rebuild(climate: Climate) -> int:
    """Write the rows of every lease, and where every host is, anew from their facts; how many leases there are.

    Claims and steps under way are left alone: the journal does not know them.
    """
    with climate.engine.begin() as conn:
        conn.exec_driver_sql("SET LOCAL statement_timeout = 0")
        conn.exec_driver_sql("LOCK TABLE leases IN EXCLUSIVE MODE")
        leases.forget_allocations(conn)
        whole = [lease for _, lease, _ in _folded(conn)]
        for portion in _portions(whole, PORTION):
            lease_rows.save(conn, [(None, lease) for lease in portion])
        places.rewrite(conn, [place for _, place, _ in _folded_hosts(conn)])
        host_care.rewrite(conn, list(_folded_care(conn)))
        _rewrite_windows(conn)
        _rewrite_decisions(conn)
        set_aside.clear(conn)  # one that is broken still is set aside again
        claims.wake_poller(conn)
    return len(whole)


def _rewrite_decisions(conn: Connection) -> None:
    terms.forget(conn)
    limits.forget(conn)
    for _, known in _streams(journal.read_all(conn, of=OperatorFact)):
        facts = journal.of_operators(known)
        last, told = facts[-1], decided(facts)
        if isinstance(last, PoolTermsSet):
            terms.write(conn, last.pool, told, last.at)
        else:
            limits.write(conn, last.project_id, told, last.at)


def _portions(items: Sequence[Lease], size: int) -> Iterator[Sequence[Lease]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def story(climate: Climate, lease_id: UUID, at: datetime | None = None) -> tuple[Lease, list[Entry]]:
    """A lease as it was `at` a moment (default: now) with all that had happened to it by then."""
    with reading(climate.engine) as conn:
        entries = archives.facts_of(climate, conn, lease_id)
    entries = entries if at is None else journal.until(entries, at)
    if not entries:
        raise NotFound(f"Object with {{'lease_id': '{lease_id}'}} not found")
    return fold(journal.of_lease(entries)), entries


def _folded(conn: Connection) -> Iterator[tuple[UUID, Lease, bool]]:
    """Each lease's stream with the lease, and whether its versions have no holes."""
    for stream, known in _streams(journal.read_all(conn)):
        yield stream, fold(journal.of_lease(known)), _is_whole(known)


def _folded_hosts(conn: Connection) -> Iterator[tuple[UUID, HostPlace, bool]]:
    """Each host's stream with where it is, and whether its versions have no holes."""
    for stream, known in _streams(journal.read_all(conn, of=HostFact)):
        yield stream, pools.fold(journal.of_host(known), stream), _is_whole(known)


def _streams(entries: Iterator[Entry]) -> Iterator[tuple[UUID, list[Entry]]]:
    for stream, known in groupby(entries, key=lambda entry: entry.stream):
        yield stream, list(known)


def _is_whole(known: Sequence[Entry]) -> bool:
    return [entry.version for entry in known] == list(range(1, len(known) + 1))


def _unlike(row: Row, known: Row) -> list[str]:
    if row == known:
        return []
    return [
        f"{name}: rows say {getattr(row, name)!r}, facts say {getattr(known, name)!r}" for name in differing(row, known)
    ]
