"""Series of leases as rows, and the ids of their occurrences."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, Row, func, insert, select, tuple_, update

from climate.domain.errors import InvalidInput, NotFound
from climate.domain.period import Period
from climate.domain.planning.series import Series, SeriesCreated, SeriesFact, Skipped, fold
from climate.domain.policy import Caller
from climate.store import locks
from climate.store.journal import fact_codec, journal
from climate.store.leases import row_consistency
from climate.store.tables.leases import leases
from climate.store.tables.series import lease_series as table


def row_of(series: Series) -> dict[str, object]:
    """Return the columns of a series, all of which its facts determine."""
    return {
        "id": series.id,
        "name": series.name,
        "project_id": series.project_id,
        "user_id": series.user_id,
        "rule": series.rule,
        "zone": series.zone,
        "start_date": series.period.start,
        "end_date": series.period.end,
        "make": series.make,
        "skipped": fact_codec.encode(series.skipped),
        "gone": series.gone,
        "version": series.version,
        "created_at": series.created_at,
        "updated_at": series.updated_at,
    }


def create(conn: Connection, author: Caller, fact: SeriesCreated) -> Series:
    """Record a new series."""
    series = fold([fact])
    conn.execute(insert(table).values(row_of(series)))
    journal.append_next(conn, author, [(series.id, fact)])
    return series


def record(conn: Connection, author: Caller, series: Series, fact: SeriesFact) -> Series:
    """Record a change of a series, whose row is locked. Raise Tampered if its rows are not the fold of its journal."""
    row_consistency.refuse(f"series {series.id}", series, fold(journal.of_series(journal.read(conn, series.id))))
    after = fold([fact], series)
    conn.execute(update(table).where(table.c.id == series.id).values(row_of(after)))
    journal.append_next(conn, author, [(series.id, fact)])
    return after


def get(conn: Connection, series_id: UUID, *, project_id: str | None = None, lock: bool = False) -> Series:
    """Return a series that is not deleted. Raise NotFound, also for one of another project."""
    query = select(table).where(table.c.id == series_id, ~table.c.gone)
    query = query if project_id is None else query.where(table.c.project_id == project_id)
    row = conn.execute(locks.ordered(query, table.c.id) if lock else query).one_or_none()
    if row is None:
        raise NotFound(f"Object with {{'series_id': '{series_id}'}} not found")
    return _series(row)


def occurrences(conn: Connection, series_id: UUID) -> list[UUID]:
    """Return the ids of the leases of a series that are not deleted, by their start."""
    mine = select(leases.c.id).where(leases.c.series_id == series_id, ~leases.c.gone)
    return list(conn.scalars(mine.order_by(leases.c.start_date, leases.c.id)))


def all_occurrences(conn: Connection, series_id: UUID) -> list[UUID]:
    """Return the ids of the leases of a series, those that are deleted among them."""
    return list(conn.scalars(select(leases.c.id).where(leases.c.series_id == series_id)))


def as_created(conn: Connection, series_id: UUID) -> Series:
    """Return a series as it was created, also if it is deleted."""
    return fold(journal.of_series(journal.read(conn, series_id))[:1])


@dataclass(frozen=True, slots=True)
class SeriesListing:
    """Filter of series, and the page after `marker`."""

    project_id: str | None = None
    name: str | None = None
    marker: UUID | None = None
    limit: int | None = None


def listed(conn: Connection, listing: SeriesListing) -> list[Series]:
    """Return series, oldest first. Raise InvalidInput for a marker that is not among them."""
    own = [~table.c.gone]
    own += [] if listing.project_id is None else [table.c.project_id == listing.project_id]
    query = select(table).where(*own).order_by(table.c.created_at, table.c.id)
    query = query if listing.name is None else query.where(table.c.name == listing.name)
    if listing.marker is not None:
        place = select(table.c.created_at, table.c.id).where(table.c.id == listing.marker, *own)
        row = conn.execute(place).one_or_none()
        if row is None:
            raise InvalidInput(f"marker {listing.marker} is not the id of a series in this list")
        query = query.where(tuple_(table.c.created_at, table.c.id) > tuple_(row.created_at, row.id))
    return [_series(row) for row in conn.execute(query.limit(listing.limit))]


def counts(conn: Connection, ids: Sequence[UUID]) -> dict[UUID, int]:
    """Return the number of leases of each series that are not deleted; a series without any is missing."""
    mine = (leases.c.series_id.in_(ids), ~leases.c.gone)
    query = select(leases.c.series_id, func.count()).where(*mine).group_by(leases.c.series_id)
    return {row[0]: row[1] for row in conn.execute(query)}


def _series(row: Row[*tuple[object, ...]]) -> Series:
    return Series(
        id=row.id,
        name=row.name,
        project_id=row.project_id,
        user_id=row.user_id,
        rule=row.rule,
        zone=row.zone,
        period=Period(row.start_date, row.end_date),
        make=row.make,
        created_at=row.created_at,
        skipped=fact_codec.decode_all(Skipped, row.skipped),
        updated_at=row.updated_at,
        gone=row.gone,
        version=row.version,
    )
