"""Due events, read in portions, so that the cost of a read is independent of their number."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    Text,
    TextClause,
    Uuid,
    and_,
    bindparam,
    case,
    column,
    exists,
    func,
    literal_column,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.selectable import FromClause, Subquery

from climate.domain.events.event_transitions import GATES
from climate.domain.status import EventKind
from climate.store.leases import queue_limits
from climate.store.leases.queue_limits import Rooms, Turns
from climate.store.schema import Time
from climate.store.tables.floating_ips import floating_allocations
from climate.store.tables.inventories import inventories, inventory_allocations
from climate.store.tables.leases import (
    GIVES_BACK,
    allocations,
    behind_no_wait,
    claims,
    events,
    has,
    in_force,
    leases,
    leases_set_aside,
    reservations,
)

PORTION = 1000
"""Maximum due events that one read takes in the order of their times, and again in that of their projects."""

PROJECTS = 250
"""Number of projects that get a turn in one read when more than a portion is due."""

MOST_HOLDS = 5000
"""Maximum allocations of a lease that are counted."""

ROOM_FOR_ALL = Rooms()
BEGINNING = (datetime(1, 1, 1, tzinfo=UTC), UUID(int=0))


@dataclass
class Cursor:
    """Position of a poller among the due events; it restarts at the beginning after the end.

    Events that may not run yet are skipped, however many there are.
    """

    after: tuple[datetime, UUID] = BEGINNING
    """Time and id of the last event of the previous portion."""
    project: dict[bool, str] = field(default_factory=lambda: {True: "", False: ""})
    """The last project that had its turn among ends, and among all other events."""
    turns: Turns = field(default_factory=dict, compare=False)
    full: frozenset[str] = field(default=frozenset(), compare=False)
    """Queues that accept no more claims until workers have begun some events."""


@dataclass(frozen=True, slots=True)
class Due:
    """An event that may be claimed."""

    lease_id: UUID
    event_id: UUID
    holds: int
    """Number of hosts of its lease, counted up to `MOST_HOLDS`."""
    is_claimed: bool = False
    """True if a claim exists already, which only happens when its row was changed by hand."""
    queues: tuple[str, ...] = ()
    """Queues of the workers that run it."""
    project_id: str = ""
    is_end: bool = False
    """True if it releases resources that others wait for."""


@dataclass(frozen=True, slots=True)
class Look:
    """Due events, whether they may run or not."""

    ids: Sequence[UUID]
    end: tuple[datetime, UUID] | None
    """Position of the next portion; None at the end."""


def read_portion(conn: Connection, now: datetime, cursor: Cursor) -> Look:
    """Return the portion of due events that follows the cursor.

    It has the events that have been due longest. If more than a portion is due, it has the first ones of the projects
    whose turn it is. Both are read from indexes, so the cost is independent of the number of due events.
    """
    at, last = cursor.after
    rows = conn.execute(_OLDEST, {"now": now, "at": at, "last": last}).all()
    ids = dict.fromkeys(row.id for row in rows)
    if len(rows) < PORTION:
        return Look(list(ids), None)
    for is_end, statement in _BY_PROJECT.items():
        turns = conn.execute(statement, {"now": now, "after": cursor.project[is_end]}).all()
        projects = {row.project_id for row in turns}
        cursor.project[is_end] = turns[-1].project_id if len(projects) == PROJECTS else ""
        ids |= dict.fromkeys(row.id for row in turns if row.id is not None)
    return Look(list(ids), (rows[-1].run_at, rows[-1].id))


def lock(conn: Connection, now: datetime, ids: Sequence[UUID], limit: int, room: Rooms = ROOM_FOR_ALL) -> list[Due]:
    """Lock those of the events, and their leases, that may be claimed now; skip those that another poller holds.

    An event waits until earlier events of the same lease are closed, except additional ones. A start or an adjustment
    also waits until every earlier allocation of its hosts is released. These conditions stay true, hence are safe to
    read from a snapshot. Ends of leases and of holds come first, then projects take turns, up to the limits of the
    queues. Check the locked lease again for due events: the read may be older than a rival's commit.
    """
    given = {"now": now, "ids": list(ids), "limit": limit, **queue_limits.parameters(room)}
    return [
        Due(row.lease_id, row.id, row.holds, row.is_claimed, tuple(row.queues), row.project_id, row.group == 0)
        for row in conn.execute(_LOCK, given)
    ]


def oldest(conn: Connection, now: datetime) -> datetime | None:
    """Return since when the oldest due event could be claimed; None if nothing is due."""
    undone = (has(events.c.status, "UNDONE"), events.c.run_at <= now)
    first = select(events.c.run_at).where(*undone, behind_no_wait())
    value: datetime | None = conn.scalar(first.order_by(events.c.run_at, events.c.id).limit(1))
    return value


def _lock() -> Select[*tuple[object, ...]]:
    """Find rows by their keys alone: with a condition on an index of open events, the planner may read all of it."""
    ready = select(queue_limits.within(_ready(bindparam("now", type_=Time)))).cte("ready_in_room")
    is_claimed = exists().where(claims.c.event_id == events.c.id).correlate(events)
    return (
        select(leases.c.id.label("lease_id"), events.c.id, holds().label("holds"), is_claimed.label("is_claimed"))
        .add_columns(ready.c.queues, ready.c.project_id, ready.c.group)
        .select_from(events.join(leases, leases.c.id == events.c.lease_id).join(ready, ready.c.id == events.c.id))
        .where(events.c.id == func.any(func.array(select(ready.c.id).scalar_subquery())))
        .order_by(ready.c.group, ready.c.turn, ready.c.place, events.c.id)
        .limit(bindparam("limit", type_=Integer))
        .with_for_update(of=[events, leases], key_share=True, skip_locked=True)
    )


def holds() -> Any:
    """Return the number of hosts of the lease in the outer query."""
    held = select(allocations.c.id).join(reservations, allocations.c.reservation_id == reservations.c.id)
    counted = held.where(reservations.c.lease_id == leases.c.id).correlate(leases).limit(MOST_HOLDS).subquery("held")
    return select(func.count()).select_from(counted).scalar_subquery()


def _ready(now: ColumnElement[datetime]) -> Subquery:
    """Return the events that `lock` may claim, each with its turn, as of a snapshot."""
    wanted = (
        func.unnest(bindparam("ids", type_=ARRAY(Uuid)))
        .table_valued(column("id", Uuid), name="wanted")
        .render_derived()
    )
    e = select(events).where(events.c.id == wanted.c.id).offset(_APART).lateral("e")
    lease = select(leases).where(leases.c.id == e.c.lease_id).offset(_APART).lateral("l")
    mine, other = allocations.alias("mine"), allocations.alias("other")
    occupied = exists().where(
        reservations.c.lease_id == e.c.lease_id,
        mine.c.reservation_id == reservations.c.id,
        other.c.host == mine.c.host,
        other.c.id != mine.c.id,
        other.c.kind == "lease",
        in_force(other),
        func.lower(other.c.during) < func.lower(mine.c.during),
        # A lease that shares the host waits only for those whose time is over.
        or_(mine.c.slots == 0, other.c.slots == 0, func.upper(other.c.during) <= func.lower(mine.c.during)),
    )
    aside = select(leases_set_aside.c.lease_id)
    waits = and_(lease.c.end_date > now, or_(occupied, _not_given_back(e), _too_full(e)))
    may_run = e.c.kind.not_in((EventKind.START, EventKind.ADJUST)) | ~waits
    is_end = case((e.c.kind.in_((EventKind.END, EventKind.EXPIRE)), 0), else_=1)
    turn = func.row_number().over(partition_by=(lease.c.project_id, is_end), order_by=e.c.run_at)
    return (
        select(e.c.id, is_end.label("group"), turn.label("turn"), e.c.run_at, e.c.lease_id, lease.c.project_id)
        .select_from(wanted)
        .join(e, true())
        .join(lease, true())
        .where(~lease.c.gone, ~_ahead(e), may_run, lease.c.id.not_in(aside))
        .subquery("ready")
    )


def _not_given_back(e: FromClause) -> ColumnElement[bool]:
    """Return the condition that an earlier lease still holds an address that the lease of `e` needs."""
    own, others = floating_allocations.alias("own"), floating_allocations.alias("others")
    return exists().where(
        reservations.c.lease_id == e.c.lease_id,
        own.c.reservation_id == reservations.c.id,
        others.c.number == own.c.number,
        in_force(others),
        func.lower(others.c.during) < func.lower(own.c.during),
    )


def _too_full(e: FromClause) -> ColumnElement[bool]:
    """Return the condition that an inventory still lacks an amount that the lease of `e` needs."""
    own, others = inventory_allocations.alias("own_amount"), inventory_allocations.alias("other_amounts")
    earlier = or_(func.lower(others.c.during) < func.lower(own.c.during), has(others.c.state, "active"))
    out = (
        select(func.coalesce(func.sum(others.c.amount), 0))
        .where(others.c.number == own.c.number, others.c.reservation_id != own.c.reservation_id)
        .where(in_force(others), earlier)
        .scalar_subquery()
    )
    return exists().where(
        reservations.c.lease_id == e.c.lease_id,
        own.c.reservation_id == reservations.c.id,
        inventories.c.number == own.c.number,
        out + own.c.amount > inventories.c.total,
    )


def _ahead(e: FromClause) -> ColumnElement[bool]:
    """Return the condition that another event of the same lease has to be closed before `e` may run."""
    of_lease = select(events).where(events.c.lease_id == e.c.lease_id).correlate(e)
    p = of_lease.offset(_APART).subquery("p")
    additional = EventKind.ADDITIONAL
    earlier = and_(p.c.seq < e.c.seq, p.c.kind != additional, or_(e.c.kind != additional, p.c.kind.in_(GATES)))
    return exists().where(
        p.c.id != e.c.id,
        has(p.c.status, "IN_PROGRESS") | (earlier & has(p.c.status, "UNDONE")),
    )


_APART: ColumnElement[int] = literal_column("0")
"""OFFSET of a subquery, which is then planned by itself, and read by its key."""

# The planner uses present table statistics for the following statements: a plan from empty tables would read all of a
# million events. This one and those by project can only be answered in the order of their indexes.
_OLDEST_SQL = f"""
    SELECT e.id, e.run_at FROM (SELECT set_config('plan_cache_mode', 'force_custom_plan', true)) AS mode, LATERAL (
        SELECT id, run_at FROM events
        WHERE status = 'UNDONE' AND run_at <= :now AND (run_at, id) > (:at, :last)
        ORDER BY run_at, id LIMIT {PORTION}) e
    ORDER BY e.run_at, e.id
"""  # noqa: S608
_OLDEST = text(_OLDEST_SQL).bindparams(
    bindparam("now", type_=Time), bindparam("at", type_=Time), bindparam("last", type_=Uuid)
)


def _by_project(group: str) -> TextClause:
    """Return the first due events of each of the next projects with open events, in the order of their names."""
    open_one = f"SELECT project_id FROM events WHERE status = 'UNDONE' AND {group}"  # noqa: S608
    return text(f"""
        WITH RECURSIVE following AS (
            ({open_one} AND project_id > :after ORDER BY project_id LIMIT 1)
            UNION ALL
            SELECT ({open_one} AND project_id > f.project_id ORDER BY project_id LIMIT 1)
            FROM following f WHERE f.project_id IS NOT NULL),
        chosen AS MATERIALIZED (SELECT project_id FROM following WHERE project_id IS NOT NULL LIMIT {PROJECTS})
        SELECT c.project_id, e.id FROM chosen c LEFT JOIN LATERAL (
            SELECT id, run_at FROM events
            WHERE status = 'UNDONE' AND {group} AND project_id = c.project_id AND run_at <= :now
            ORDER BY run_at LIMIT (SELECT greatest(1, {PORTION} / count(*)) FROM chosen)) e ON true
        ORDER BY c.project_id
    """).bindparams(bindparam("now", type_=Time), bindparam("after", type_=Text))  # noqa: S608


_BY_PROJECT = {True: _by_project(GIVES_BACK), False: _by_project(f"NOT ({GIVES_BACK})")}
_LOCK = _lock()
