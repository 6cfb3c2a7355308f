"""Rows of the waiting list: its leases in their order, and the marks that say why to try them."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from uuid import UUID

from sqlalchemy import Connection, Uuid, bindparam, delete, func, insert, literal, select, text
from sqlalchemy.dialects.postgresql import ARRAY, Range

from climate.domain.period import Period
from climate.domain.planning.waiting_list import Entry
from climate.store.leases import event_claims
from climate.store.schema import Time
from climate.store.tables.leases import leases, waiting_marks

AGAIN = timedelta(seconds=60)
"""Time after which the whole list is tried without a release: use under a limit ends, and other times come."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Due marks, and what they say."""

    ids: Sequence[int]
    everything: bool
    """True if the whole list is to be tried."""
    during: Period | None
    """Period that covers everything that was released."""
    lease_ids: Sequence[UUID]


def mark_lease(conn: Connection, lease_id: UUID, not_before: datetime | None = None) -> None:
    """Note that one lease is to be tried; without a time, wake the rounds for it."""
    conn.execute(insert(waiting_marks).values(lease_id=lease_id, not_before=not_before))
    if not_before is None:
        event_claims.wake_rounds(conn)


def mark_promise(conn: Connection, lease_id: UUID, period: Period) -> None:
    """Note that a lease got a period later than it wanted; the mark counts until the period begins."""
    during = Range(period.start, period.end)
    conn.execute(insert(waiting_marks).values(lease_id=lease_id, during=during, not_before=period.start))


def promised(conn: Connection, now: datetime) -> int:
    """Return the number of leases that were promised a later period, which has not begun."""
    ahead = leases.join(waiting_marks, waiting_marks.c.lease_id == leases.c.id)
    query = select(func.count()).select_from(ahead).where(waiting_marks.c.during.is_not(None))
    return int(conn.scalar(query.where(waiting_marks.c.not_before > now, ~leases.c.gone)) or 0)


def due(conn: Connection, now: datetime) -> Marks:
    """Return the marks that are due."""
    rows = conn.execute(_DUE, {"now": now}).all()
    periods = [(row.starts, row.ends) for row in rows if row.starts is not None]
    whole = Period(min(start for start, _ in periods), max(end for _, end in periods)) if periods else None
    named = [row.lease_id for row in rows if row.lease_id is not None]
    everything = any(row.starts is None and row.lease_id is None for row in rows)
    return Marks([row.id for row in rows], everything, whole, named)


def settle(conn: Connection, marks: Marks, now: datetime) -> None:
    """Delete marks that were worked on, and plan the next try of the whole list while any lease waits."""
    if marks.ids:
        conn.execute(delete(waiting_marks).where(waiting_marks.c.id.in_(marks.ids)))
    conn.execute(_PLAN, {"at": now + AGAIN})


def entries(conn: Connection, marks: Marks, now: datetime, share_days: int, patience: timedelta | None) -> list[Entry]:
    """Return the leases that the marks concern, in their order.

    With them come those whose fixed periods may be protected from them, which are passed over.
    """
    during = marks.during
    given = {
        "now": now,
        "since": now - timedelta(days=share_days),
        "patient_since": None if patience is None else now - patience,
        "everything": marks.everything,
        "start": during.start if during else None,
        "end": during.end if during else None,
        "ids": list(marks.lease_ids),
    }
    read = cache(_reservations)  # many leases ask for the same
    return [
        Entry(lease_id, project_id, user_id, Period(start, end), until, since, read(reservations), is_passed_over)
        for lease_id, project_id, user_id, start, end, until, since, reservations, is_passed_over in conn.execute(
            _ENTRIES, given
        )
    ]


def _reservations(text_: str) -> Sequence[tuple[str, dict[str, object]]]:
    return tuple((kind, spec) for kind, spec in json.loads(text_))


def places(conn: Connection, lease_ids: Collection[UUID], now: datetime, share_days: int) -> dict[UUID, int]:
    """Return the places of these leases in the list, from 1 on."""
    given = {"now": now, "since": now - timedelta(days=share_days), "ids": list(lease_ids)}
    return {row.id: row.place for row in conn.execute(_PLACES, given)}


def length(conn: Connection) -> tuple[int, datetime | None]:
    """Return the number of leases in the list, and since when the oldest waits."""
    count, oldest = conn.execute(
        select(func.count(), func.min(leases.c.created_at)).where(leases.c.wait_until.is_not(None))
    ).one()
    return count, oldest


_DUE = (
    select(
        waiting_marks.c.id,
        waiting_marks.c.lease_id,
        func.lower(waiting_marks.c.during).label("starts"),
        func.upper(waiting_marks.c.during).label("ends"),
    )
    .where(func.coalesce(waiting_marks.c.not_before, literal("-infinity").cast(Time)) <= bindparam("now", type_=Time))
    .order_by(waiting_marks.c.id)
)
_PLAN = text("""
    INSERT INTO waiting_marks (not_before) SELECT :at
    WHERE EXISTS (SELECT FROM leases WHERE wait_until IS NOT NULL)
        AND NOT EXISTS (SELECT FROM waiting_marks WHERE during IS NULL AND lease_id IS NULL AND not_before IS NOT NULL)
""").bindparams(bindparam("at", type_=Time))

# A project's share is the time of hosts that its leases had lately, in whole hours.
_LINE = """
    shares AS MATERIALIZED (
        SELECT u.project_id, floor(sum(extract(epoch FROM
            least(upper(u.during), :now) - greatest(lower(u.during), :since))) / 3600) AS hours
        FROM lease_usage u WHERE u.during && tstzrange(:since, :now) GROUP BY u.project_id),
    line AS (
        SELECT l.*, coalesce(s.hours, 0) AS hours
        FROM leases l LEFT JOIN shares s ON s.project_id = l.project_id WHERE l.wait_until IS NOT NULL)
"""
_ENTRIES = text(f"""
    WITH {_LINE},
    open AS (
        SELECT *, greatest(wait_until, start_date) + (end_date - start_date) AS reach FROM line
        WHERE wait_until > :now),
    chosen AS (
        SELECT id, start_date, reach FROM open
        WHERE :everything OR id = ANY(:ids) OR (start_date < :end AND reach > :start)),
    wide AS (SELECT min(start_date) AS start, max(reach) AS until FROM chosen)
    SELECT l.id, l.project_id, l.user_id, l.start_date, l.end_date, l.wait_until, l.created_at,
        (SELECT coalesce(json_agg(json_build_array(r.resource_type, r.spec) ORDER BY r.position), '[]')::text
            FROM reservations r WHERE r.lease_id = l.id) AS reservations,
        c.id IS NULL OR EXISTS (SELECT FROM waiting_marks m
            WHERE m.lease_id = l.id AND m.during IS NULL AND m.not_before > :now) AS is_passed_over
    FROM open l LEFT JOIN chosen c ON c.id = l.id CROSS JOIN wide w
    WHERE c.id IS NOT NULL OR (l.created_at <= :patient_since AND l.wait_until <= l.start_date
        AND l.start_date < w.until AND l.end_date > w.start)
    ORDER BY l.hours, l.created_at, l.id
""").bindparams(  # noqa: S608
    bindparam("ids", type_=ARRAY(Uuid)),
    *(bindparam(name, type_=Time) for name in ("now", "since", "patient_since", "start", "end")),
)
_PLACES = text(f"""
    WITH {_LINE},
    placed AS (SELECT id, row_number() OVER (ORDER BY hours, created_at, id) AS place FROM line)
    SELECT id, place FROM placed WHERE id = ANY(:ids)
""").bindparams(  # noqa: S608
    bindparam("ids", type_=ARRAY(Uuid)), *(bindparam(name, type_=Time) for name in ("now", "since"))
)
