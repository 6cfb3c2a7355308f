"""Pool memberships of hosts as rows, and the single function that changes them."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, Row, Select, or_, select, text, update

from climate.database.sql_arrays import in_parameter
from climate.database.violated_constraints import translated
from climate.domain.errors import Conflict, NotFound
from climate.domain.facts import HostFact, PoolCause
from climate.domain.hosts.pools import HostPlace, Pool, fold
from climate.domain.policy import Caller
from climate.store import locks
from climate.store.journal import journal
from climate.store.leases import healing_waits
from climate.store.tables.hosts import hosts

Change = tuple[HostPlace, Sequence[HostFact]]
"""The present membership of a host, and the fact that changes it."""


def record(conn: Connection, author: Caller, changes: Sequence[Change]) -> list[HostPlace]:
    """Record changes of pool membership: facts and rows together, in one statement for any number of hosts.

    Each host may occur once. Raise Conflict if another transaction has moved one of them since it was read.
    """
    after = [fold(happened, before.stream, before) for before, happened in changes]
    entries = [
        (place.stream, version, fact)
        for place, (_, happened) in zip(after, changes, strict=True)
        for version, fact in enumerate(happened, start=place.version - len(happened) + 1)
    ]
    if entries:
        rows = {"hosts": _json([row_of(place) for place in after]), "journal": _json(journal.rows(entries, author))}
        moved = ", ".join(place.name for place in after)
        clash = Conflict(f"Someone else moved a host at the same moment ({moved}); read it again")
        with translated({"pk_journal": clash}):
            conn.execute(_SAVE, rows)
        if any(_becomes_usable(before, place) for (before, _), place in zip(changes, after, strict=True)):
            healing_waits.wake(conn)
    return after


def _becomes_usable(before: HostPlace, after: HostPlace) -> bool:
    """Return whether leases can use the host after the change, but could not before."""
    is_usable = after.pool in (Pool.RESERVATION, Pool.LENT) and before.pool not in (after.pool, Pool.RESERVATION)
    return is_usable or (after.reservable and not before.reservable)


def begin(conn: Connection, author: Caller, stream: UUID, first: HostFact) -> None:
    """Append the first fact of a host whose row was just created."""
    conn.execute(_SAVE, {"hosts": "[]", "journal": _json(journal.rows([(stream, 1, first)], author))})
    healing_waits.wake(conn)


def get(conn: Connection, number: int, *, lock: bool = False) -> HostPlace:
    """Return the membership of a registered host. Raise NotFound for an unknown number."""
    result = of(conn, [number], lock=lock)
    if number not in result or result[number].removed:
        raise NotFound(f"Object with {{'host_id': '{number}'}} not found")
    return result[number]


def of(conn: Connection, numbers: Collection[int], *, lock: bool = False) -> dict[int, HostPlace]:
    """Return memberships by number, including removed hosts; the rows are locked in the order of their numbers."""
    if not numbers:
        return {}
    query = _PLACES.where(in_parameter(hosts.c.id, "ids"))
    rows = locks.read_hosts(conn, query, numbers) if lock else conn.execute(query, {"ids": sorted(numbers)})
    return {row.id: _place(row) for row in rows}


def listed(conn: Connection, *pools: Pool) -> list[HostPlace]:
    """Return the registered hosts in these pools, or with none, in any pool."""
    query = _PLACES.where(hosts.c.removed_at.is_(None))
    query = query.where(hosts.c.pool.in_(pools)) if pools else query
    return [_place(row) for row in conn.execute(query)]


@dataclass(frozen=True, slots=True)
class HostColumns:
    """All registered hosts, by columns, for scans over thousands of mostly healthy hosts."""

    numbers: list[int]
    names: list[str]
    pools: list[str]
    reservations: list[UUID | None]
    """Reservations of the present or last leases of the hosts."""
    is_quiet: bool
    """True for each host that is on, runs servers in its pool, has no power management, and no health doubts."""
    is_noted: bool
    """True if a difference between cloud and database is recorded for any of them."""


def list_columns(conn: Connection) -> HostColumns:
    """Return the memberships of all registered hosts, in one row."""
    row = conn.execute(_GLANCE).one()
    return HostColumns(
        row.numbers or [], row.names or [], row.pools or [], row.reservations or [], row.quiet, row.noted
    )


def claim(conn: Connection, numbers: Collection[int], now: datetime, time: timedelta) -> frozenset[int]:
    """Claim hosts for a while; return those that no other process has claimed."""
    free = or_(hosts.c.tended_until.is_(None), hosts.c.tended_until <= now)
    mine = select(hosts.c.id).where(hosts.c.id.in_(sorted(numbers)), free)
    taken = locks.ordered(mine, hosts.c.id, skip_locked=True)
    claimed = update(hosts).where(hosts.c.id.in_(taken)).values(tended_until=now + time).returning(hosts.c.id)
    return frozenset(conn.scalars(claimed))


def release_claims(conn: Connection, numbers: Collection[int]) -> None:
    """Release the claims of these hosts."""
    if not numbers:
        return
    locks.lock_hosts(conn, numbers)
    conn.execute(update(hosts).where(hosts.c.id.in_(sorted(numbers))).values(tended_until=None))


def correct_causes(conn: Connection) -> int:
    """Write the causes of hosts that a process of an older release has moved; return how many there were.

    Such a process knows no causes and leaves the former one. Its fact has the cause as text, see
    `climate.store.journal.fact_codec`. Locked rows are skipped.
    """
    return conn.execute(_CORRECT_CAUSES).rowcount


_COLUMNS = (
    hosts.c.id,
    hosts.c.stream,
    hosts.c.hypervisor_hostname,
    hosts.c.pool,
    hosts.c.pool_since,
    hosts.c.pool_reason,
    hosts.c.pool_token,
    hosts.c.pool_reservation,
    hosts.c.pool_until,
    hosts.c.home,
    hosts.c.reservable,
    hosts.c.switched_on,
    hosts.c.removed_at,
    hosts.c.version,
    hosts.c.pool_cause,
)
_PLACES: Select[*tuple[object, ...]] = select(*_COLUMNS).order_by(hosts.c.id)


def _place(row: Row[*tuple[object, ...]]) -> HostPlace:
    return HostPlace(
        host=row.id,
        stream=row.stream,
        name=row.hypervisor_hostname,
        pool=Pool(row.pool),
        since=row.pool_since,
        reason=row.pool_reason,
        token=row.pool_token,
        reservation_id=row.pool_reservation,
        until=row.pool_until,
        home=Pool(row.home),
        reservable=row.reservable,
        on=row.switched_on,
        removed=row.removed_at is not None,
        version=row.version,
        cause=PoolCause(row.pool_cause),
    )


def row_of(place: HostPlace) -> dict[str, object]:
    """Return the columns of a host that record its pool membership."""
    return {
        "id": place.host,
        "pool": place.pool,
        "pool_since": place.since,
        "pool_reason": place.reason,
        "pool_token": place.token,
        "pool_reservation": place.reservation_id,
        "pool_until": place.until,
        "home": place.home,
        "reservable": place.reservable,
        "switched_on": place.on,
        "version": place.version,
        "pool_cause": place.cause,
    }


def _json(rows: Sequence[dict[str, object]]) -> str:
    return json.dumps(rows, default=str)


_GLANCE = text("""
    SELECT array_agg(id) AS numbers, array_agg(hypervisor_hostname) AS names, array_agg(pool) AS pools,
        array_agg(pool_reservation) AS reservations,
        coalesce(bool_and(switched_on AND pool NOT IN ('failed', 'maintenance') AND doubted_since IS NULL
            AND NOT EXISTS (SELECT FROM host_power p WHERE p.host = h.id)), true) AS quiet,
        coalesce(bool_or(drift <> ''), false) AS noted
    FROM hosts h WHERE removed_at IS NULL
""")
_SET = ", ".join(
    f"{name} = n.{name}"
    for name in (
        "pool",
        "pool_since",
        "pool_reason",
        "pool_token",
        "pool_reservation",
        "pool_until",
        "home",
        "reservable",
        "switched_on",
        "version",
        "pool_cause",
    )
)
_SAVE = text(f"""
    WITH moved AS (
        UPDATE hosts h SET {_SET} FROM jsonb_populate_recordset(NULL::hosts, CAST(:hosts AS jsonb)) n WHERE h.id = n.id)
    INSERT INTO journal (stream, version, kind, body, actor, request_id)
    SELECT stream, version, kind, body, actor, request_id
    FROM jsonb_populate_recordset(NULL::journal, CAST(:journal AS jsonb))
""")  # noqa: S608
_IN_WORDS = f"""
    CASE WHEN h.pool = 'failed' AND h.pool_reason = 'declared well' THEN '{PoolCause.DECLARED_WELL}'
        WHEN h.pool = 'failed' AND starts_with(h.pool_reason, 'not cleaned: ') THEN '{PoolCause.NOT_CLEANED}'
        WHEN h.pool = 'maintenance' AND starts_with(h.pool_reason, 'worked on: ') THEN '{PoolCause.WINDOW}'
        ELSE '{PoolCause.OTHER}' END
"""
_CORRECT_CAUSES = text(f"""
    UPDATE hosts h SET pool_cause = {_IN_WORDS} WHERE h.id IN (
        SELECT h.id FROM hosts h WHERE h.pool_cause <> {_IN_WORDS} AND NOT (
            SELECT j.body ? 'cause' FROM journal j WHERE j.stream = h.stream AND j.kind = 'HostMoved'
            ORDER BY j.version DESC LIMIT 1)
        ORDER BY h.id FOR NO KEY UPDATE OF h SKIP LOCKED)
""")  # noqa: S608
