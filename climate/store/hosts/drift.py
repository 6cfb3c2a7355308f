"""Hosts whose pool in the cloud differs from the database: events in progress, and recorded differences."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection, Select, or_, select, text

from climate.database.sql_arrays import in_parameter
from climate.store.tables.hosts import hosts
from climate.store.tables.leases import allocations, events, in_force, reservations


@dataclass(frozen=True, slots=True)
class BegunEvent:
    """An event that has begun and is not done, and a host that its lease holds."""

    host: int
    reservation_id: UUID
    kind: str
    status: str


def begun(conn: Connection, numbers: Collection[int]) -> list[BegunEvent]:
    """Return the events that are in progress, will be retried, or failed half-way, for these hosts."""
    return [BegunEvent(*row) for row in conn.execute(_BEGUN, {"ids": sorted(numbers)})] if numbers else []


def noted(conn: Connection) -> dict[int, str]:
    """Return the recorded differences, by host."""
    query = select(hosts.c.id, hosts.c.drift).where(hosts.c.removed_at.is_(None), hosts.c.drift != "")
    return {row.id: row.drift for row in conn.execute(query)}


def note(conn: Connection, troubles: Mapping[int, str]) -> None:
    """Record the difference of each host; "" clears it."""
    if troubles:
        rows = [{"id": number, "drift": trouble} for number, trouble in troubles.items()]
        conn.execute(_NOTE, {"rows": json.dumps(rows)})


def _begun() -> Select[int, UUID, str, str]:
    held = select(allocations.c.reservation_id).where(allocations.c.host == hosts.c.id, in_force(allocations))
    of_the_host = or_(reservations.c.id == hosts.c.pool_reservation, reservations.c.id.in_(held))
    return (
        select(hosts.c.id, reservations.c.id, events.c.kind, events.c.status)
        .select_from(hosts.join(reservations, of_the_host))
        .join(events, events.c.lease_id == reservations.c.lease_id)
        .where(in_parameter(hosts.c.id, "ids"))
        .where(reservations.c.status != "deleted", events.c.first_claimed_at.is_not(None), events.c.status != "DONE")
    )


_BEGUN = _begun()

_NOTE = text("""
    UPDATE hosts h SET drift = n.drift
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (id bigint, drift text) WHERE h.id = n.id
""")
