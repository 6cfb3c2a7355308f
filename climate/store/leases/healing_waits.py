"""Leases that could not be healed: the wait grows after every try, until resources are released.

A release also marks the waiting list, in the same statement: `climate.store.leases.waiting_list` reads the marks.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, Uuid, bindparam, delete, exists, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import ARRAY, TSTZRANGE, Range

from climate.database.batch_delete import drop
from climate.domain.period import Period
from climate.store import locks
from climate.store.leases import event_claims
from climate.store.schema import Time
from climate.store.tables.leases import healing_waits, leases, waiting_marks

FIRST_WAIT = timedelta(seconds=5)
LONGEST_WAIT = timedelta(seconds=300)
FORGOTTEN = timedelta(hours=1)
"""Age of a try after which the lease needs no healing any more; otherwise it would have been retried."""


def due(conn: Connection, wanted_ids: Sequence[UUID], now: datetime, limit: int) -> tuple[list[UUID], bool]:
    """Return the leases to try now, and whether there are more than the limit.

    Leases that were never tried come first, in their order; then those with the oldest last try.
    """
    wanted = healing_waits.c.lease_id == bindparam("leases", type_=ARRAY(Uuid)).any_()
    rows = conn.execute(select(healing_waits).where(wanted), {"leases": list(wanted_ids)}).all()
    waits = {row.lease_id: row for row in rows}
    again = sorted((row for row in rows if row.next_at <= now), key=lambda row: row.next_at)
    result = [lease_id for lease_id in wanted_ids if lease_id not in waits] + [row.lease_id for row in again]
    return result[:limit], len(result) > limit


def note(conn: Connection, now: datetime, healed: Collection[UUID], others: Collection[UUID]) -> None:
    """Record tries: healed leases, and failed ones.

    Rows are written in the order of leases. The deletion comes last and skips locked rows, so that two rounds cannot
    wait for each other.
    """
    if others:
        given = {"leases": sorted(others), "now": now, "first": FIRST_WAIT, "longest": LONGEST_WAIT}
        conn.execute(_NOTE, given)
    if healed:
        mine = select(healing_waits.c.lease_id).where(healing_waits.c.lease_id.in_(list(healed)))
        free = locks.ordered(mine, healing_waits.c.lease_id, skip_locked=True)
        conn.execute(delete(healing_waits).where(healing_waits.c.lease_id.in_(free)))


def wake(conn: Connection, released: Collection[Period] | None = None) -> None:
    """Have the next round try leases that want resources, because this transaction releases some.

    These are all leases that are to be healed, and those of the waiting list. `released` are the periods of what is
    released; None: any. Locked rows are skipped: such a lease is healed after its own wait.
    """
    periods = None if released is None else [Range(one.start, one.end) for one in released]
    if conn.scalar(_WAKE, {"released": [None] if periods is None else periods}):
        event_claims.wake_rounds(conn)


def forget_old(conn: Connection, now: datetime) -> int:
    """Delete a batch of tries of leases that need no healing any more; return their number."""
    return drop(conn, healing_waits, healing_waits.c.tried_at < now - FORGOTTEN)


_NOTE = text("""
    INSERT INTO healing_waits (lease_id, tries, tried_at, next_at)
    SELECT lease_id, 1, :now, CAST(:now AS timestamptz) + CAST(:first AS interval)
    FROM unnest(:leases) AS lease_id
    ON CONFLICT (lease_id) DO UPDATE SET tries = healing_waits.tries + 1, tried_at = excluded.tried_at,
        next_at = excluded.tried_at
            + least(CAST(:longest AS interval), CAST(:first AS interval) * 2 ^ least(healing_waits.tries, 10))
""").bindparams(bindparam("leases", type_=ARRAY(Uuid)), bindparam("now", type_=Time))
_WAITING = select(healing_waits.c.lease_id).where(healing_waits.c.next_at > healing_waits.c.tried_at)
_WOKEN = (
    update(healing_waits)
    .where(healing_waits.c.lease_id.in_(locks.ordered(_WAITING, healing_waits.c.lease_id, skip_locked=True)))
    .values(next_at=healing_waits.c.tried_at)
    .returning(healing_waits.c.lease_id)
    .cte("woken")
)
_IN_LINE = exists().where(leases.c.wait_until.is_not(None)).select_from(leases)
_RELEASED = func.unnest(bindparam("released", type_=ARRAY(TSTZRANGE))).column_valued("released")
_MARKED = (
    insert(waiting_marks)
    .from_select(["during"], select(_RELEASED).where(_IN_LINE))
    .returning(waiting_marks.c.id)
    .cte("marked")
)
# All of it is one statement, because every lease that ends pays for it.
_WAKE = select(exists(select(_WOKEN.c.lease_id)) | exists(select(_MARKED.c.id)))
