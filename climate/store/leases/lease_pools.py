"""Pools of the cloud by reservation: recorded ones, and required ones."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Text, Uuid, bindparam, delete, func, literal, select, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from climate.domain.period import Period
from climate.store import locks
from climate.store.tables.leases import lease_pools

# A reservation that lies entirely in child zones and cells has no hosts here, and no pool. The statuses are literals so
# that an index is used: most leases have ended.
_WANTED = text("""
    SELECT r.id, r.lease_id, r.resource_type, r.spec, r.status, l.start_date, l.end_date, p.aggregate_id
    FROM reservations r JOIN leases l ON l.id = r.lease_id LEFT JOIN lease_pools p ON p.reservation_id = r.id
    WHERE r.resource_type = ANY(:types) AND r.status IN ('pending', 'active', 'error')
      AND NOT l.gone AND l.wait_until IS NULL
      AND l.status IN ('PENDING', 'STARTING', 'ACTIVE', 'TERMINATING', 'DELETING', 'ERROR')
      AND (r.parts = '[]' OR EXISTS (SELECT FROM allocations a WHERE a.reservation_id = r.id))
""").bindparams(bindparam("types", type_=ARRAY(Text)))

_NOTE = text("""
    INSERT INTO lease_pools (reservation_id, aggregate_id)
    SELECT CAST(key AS uuid), CAST(value AS bigint) FROM jsonb_each_text(:aggregates)
    ON CONFLICT (reservation_id) DO UPDATE SET aggregate_id = excluded.aggregate_id
""").bindparams(bindparam("aggregates", type_=JSONB))


@dataclass(frozen=True, slots=True)
class PooledReservation:
    """A reservation in force that has a pool of its own."""

    id: UUID
    lease_id: UUID
    resource_type: str
    spec: Mapping[str, object]
    period: Period
    pending: bool
    """True if no hosts were moved into it yet, according to the database."""
    aggregate_id: int | None
    """Recorded aggregate of its pool."""


def reservations_of(conn: Connection, types: Collection[str]) -> list[PooledReservation]:
    """Return all reservations in force of these types, in one statement."""
    return [
        PooledReservation(
            row.id,
            row.lease_id,
            row.resource_type,
            row.spec,
            Period(row.start_date, row.end_date),
            row.status == "pending",
            row.aggregate_id,
        )
        for row in conn.execute(_WANTED, {"types": sorted(types)})
    ]


def note(conn: Connection, aggregates: Mapping[UUID, int]) -> None:
    """Record the aggregate of the pool of each reservation, in one statement."""
    if aggregates:
        conn.execute(_NOTE, {"aggregates": {str(number): aggregate for number, aggregate in aggregates.items()}})


def of(conn: Connection, reservations: Collection[UUID]) -> dict[UUID, int]:
    """Return the recorded aggregates of these reservations' pools."""
    recorded = select(lease_pools.c.reservation_id, lease_pools.c.aggregate_id).where(_one_of(reservations))
    return {row.reservation_id: row.aggregate_id for row in conn.execute(recorded)}


def noted(conn: Connection) -> set[UUID]:
    """Return the reservations with a recorded pool, in force or not."""
    return set(conn.scalars(select(lease_pools.c.reservation_id)))


def forget(conn: Connection, stale: Collection[UUID]) -> None:
    """Delete the recorded pools of these reservations."""
    if stale:
        # Skip rows that another process is writing now: this transaction holds rows that the other may wait for.
        key = lease_pools.c.reservation_id
        free = locks.ordered(select(key).where(_one_of(stale)), key, skip_locked=True)
        conn.execute(delete(lease_pools).where(key.in_(free)))


def _one_of(reservations: Collection[UUID]) -> ColumnElement[bool]:
    return lease_pools.c.reservation_id == func.any(literal(list(reservations), ARRAY(Uuid)))
