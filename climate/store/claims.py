"""Events IN_PROGRESS: claimed, sent, started, kept alive, settled.  The protocol of engine.md 2."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Uuid,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.sql.selectable import FromClause, Subquery

from climate.domain.status import EventKind
from climate.store.floating_tables import floating_allocations
from climate.store.inventory_tables import inventories, inventory_allocations
from climate.store.tables import (
    Time,
    allocations,
    claims,
    epochs,
    events,
    fence_seq,
    has,
    in_force,
    leases,
    reservations,
)

FAIR_AMONG = 5000
"""How many due events are looked at to give each project its turn."""

SECONDS_EACH = 0.01
"""Time that workers may need for an event that waits before others."""


@dataclass(frozen=True, slots=True)
class Message:
    """What is sent to a worker: the doorbell's text."""

    event_id: UUID
    token: int
    queue: str = ""


def due(conn: Connection, now: datetime, limit: int) -> list[tuple[UUID, UUID]]:
    """(lease, event) pairs that may be claimed now, both rows locked; passes over what another poller holds.

    Not before earlier events of the same lease are closed, of which additional
    ones do not count, and a start or an adjustment not before every earlier allocation of its hosts is released:
    conditions that stay true once they are, hence safe to read from a snapshot.  Ends of
    leases and of holds come first, then projects take turns.
    """
    # Planned for this very time: what is due is the first few of a million events, not the third that is assumed.
    conn.execute(_LOOK_AT_VALUES)
    ready = _ready(now)
    query = (
        select(leases.c.id.label("lease_id"), events.c.id)
        .select_from(ready.join(events, events.c.id == ready.c.id).join(leases, leases.c.id == events.c.lease_id))
        # Said again of the locked row itself: the subquery's snapshot may be older than a rival's commit.
        .where(has(events.c.status, "UNDONE"), events.c.run_at <= now)
        .order_by(ready.c.group, ready.c.turn, ready.c.run_at, events.c.id)
        .limit(limit)
        .with_for_update(of=[events, leases], key_share=True, skip_locked=True)
    )
    return [(row.lease_id, row.id) for row in conn.execute(query)]


def _ready(now: datetime) -> Subquery:
    """The events that `due` speaks of, each with its turn, as far as a snapshot tells."""
    e, p, lease = events.alias("e"), events.alias("p"), leases.alias("l")
    ahead = _ahead(e, p)
    mine, other = allocations.alias("mine"), allocations.alias("other")
    occupied = exists().where(
        reservations.c.lease_id == e.c.lease_id,
        mine.c.reservation_id == reservations.c.id,
        other.c.host == mine.c.host,
        other.c.id != mine.c.id,
        other.c.kind == "lease",
        in_force(other),
        func.lower(other.c.during) < func.lower(mine.c.during),
        # Who shares the host with it waits for those only whose time is over.
        or_(mine.c.slots == 0, other.c.slots == 0, func.upper(other.c.during) <= func.lower(mine.c.during)),
    )
    own, others = floating_allocations.alias("own"), floating_allocations.alias("others")
    not_given_back = exists().where(
        reservations.c.lease_id == e.c.lease_id,
        own.c.reservation_id == reservations.c.id,
        others.c.number == own.c.number,
        in_force(others),
        func.lower(others.c.during) < func.lower(own.c.during),
    )
    waits = and_(lease.c.end_date > now, or_(occupied, not_given_back, _too_full(e)))
    may_run = e.c.kind.not_in((EventKind.START, EventKind.ADJUST)) | ~waits
    is_end = case((e.c.kind.in_((EventKind.END, EventKind.EXPIRE)), 0), else_=1)
    turn = func.row_number().over(partition_by=(lease.c.project_id, is_end), order_by=e.c.run_at)
    return (
        select(e.c.id, is_end.label("group"), turn.label("turn"), e.c.run_at)
        .join(lease, lease.c.id == e.c.lease_id)
        .where(has(e.c.status, "UNDONE"), e.c.run_at <= now, ~lease.c.gone, ~ahead, may_run)
        .order_by("group", "turn", e.c.run_at)
        .limit(FAIR_AMONG)
        .subquery("ready")
    )


def _too_full(e: FromClause) -> ColumnElement[bool]:
    """Whether an inventory has not got back yet what the lease of `e` is to have of it."""
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


def _ahead(e: FromClause, p: FromClause) -> ColumnElement[bool]:
    """Whether another event `p` of the same lease has to be closed before `e` may run."""
    additional = EventKind.ADDITIONAL
    earlier = and_(p.c.seq < e.c.seq, p.c.kind != additional, or_(e.c.kind != additional, p.c.kind == EventKind.EXPIRE))
    return exists().where(
        p.c.lease_id == e.c.lease_id,
        p.c.id != e.c.id,
        has(p.c.status, "IN_PROGRESS") | (earlier & has(p.c.status, "UNDONE")),
    )


def tokens(conn: Connection, count: int) -> list[int]:
    """New tokens, each higher than all before: (epoch, sequence)."""
    epoch = select(epochs.c.epoch).scalar_subquery()
    series = func.generate_series(1, count).table_valued()
    token = epoch.op("::bigint << ")(40) + fence_seq.next_value()
    return list(conn.scalars(select(token).select_from(series)))


def open_many(
    conn: Connection, messages: Sequence[Message], by: str, now: datetime, not_before: datetime | None = None
) -> None:
    """Open claims; nobody is rung for them before `not_before`."""
    claimed = {"claimed_by": by, "claimed_at": now, "not_before": not_before}
    rows = [{"event_id": m.event_id, "token": m.token, "queue": m.queue, **claimed} for m in messages]
    if rows:
        conn.execute(insert(claims), rows)


def to_send(conn: Connection, now: datetime, limit: int = 500) -> list[Message]:
    """Claims to ring for: never sent, or sent a while ago and not started.

    The pause doubles from 0.5 to 30 s, and is longer when many are waiting: a
    message is not missed while workers may still be at those before it.  One
    that is sent again keeps its token: it must not become stale in a queue.
    """
    rung = conn.execute(_RING, {"now": now, "limit": limit})
    return [Message(*row) for row in rung]


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a claim lives without a heartbeat, and how long the work may take with them."""

    live: timedelta
    step: timedelta


def start(conn: Connection, message: Message, worker: str, now: datetime, limits: Limits) -> bool:
    """Compare and set: the first worker to come with the right token begins; all others are told to stop."""
    given = {"id": message.event_id, "held": message.token, "now": now, "who": worker}
    more = {"live": now + limits.live, "deadline": now + limits.step}
    return conn.execute(_START, given | more).rowcount == 1


def keep_alive(conn: Connection, event_id: UUID, token: int, now: datetime, live: timedelta) -> bool:
    """A heartbeat; refused once the claim is lost or the time for the work is up."""
    beat = (
        update(claims)
        .where(claims.c.event_id == event_id, claims.c.token == token, claims.c.step_deadline > now)
        .values(live_until=now + live)
    )
    return conn.execute(beat).rowcount == 1


def settle(conn: Connection, event_id: UUID, token: int) -> bool:
    """Give the claim up, which is the right to say how it went; False when it was taken away."""
    return conn.execute(_SETTLE, {"id": event_id, "held": token}).rowcount == 1


def others(conn: Connection, event_id: UUID) -> bool:
    """Whether shares of the event are under way still.  The lease has to be locked: else there may be more soon."""
    return bool(conn.scalar(_OTHERS, {"id": event_id}))


@dataclass(frozen=True, slots=True)
class Stranded:
    """A claim that nobody works on."""

    lease_id: UUID
    event_id: UUID
    token: int
    is_begun: bool
    """Whether a worker began and was not heard of since; else none came before the lease was over."""


def stranded(conn: Connection, now: datetime, limit: int = 100) -> list[Stranded]:
    """Claims whose worker has not been heard of, and shares without one whose lease is over; the leases are locked."""
    begun = claims.c.started_at.is_not(None)
    over = events.c.kind.not_in((EventKind.END, EventKind.EXPIRE)) & (leases.c.end_date <= now)
    divided = func.jsonb_array_length(events.c.shares) > 0
    query = (
        select(leases.c.id.label("lease_id"), claims.c.event_id, claims.c.token, begun.label("is_begun"))
        .join(events, events.c.id == claims.c.event_id)
        .join(leases, leases.c.id == events.c.lease_id)
        .where((begun & (claims.c.live_until < now)) | (~begun & divided & over))
        .limit(limit)
        .with_for_update(of=[leases], key_share=True, skip_locked=True)
    )
    return [Stranded(*row) for row in conn.execute(query)]


def next_due(conn: Connection, now: datetime) -> datetime | None:
    """When the next event becomes due that is not due already."""
    query = select(func.min(events.c.run_at)).where(has(events.c.status, "UNDONE"), events.c.run_at > now)
    soonest: datetime | None = conn.execute(query).scalar_one()
    return soonest


def wake_poller(conn: Connection) -> None:
    """Tell the pollers at commit that something is due before they would look again."""
    conn.execute(select(func.pg_notify(CHANNEL, "")))


def wake_rounds(conn: Connection) -> None:
    """Tell the pollers at commit that there is a host to look after before they would ring for it."""
    conn.execute(select(func.pg_notify(CHANNEL, ROUNDS)))


CHANNEL = "climate_due"

ROUNDS = "rounds"
"""What is said on the channel when it is not events that are due, but hosts that want looking after."""


def _ring() -> Any:
    unstarted = claims.c.started_at.is_(None)
    now = bindparam("now", type_=Time)
    waiting = select(func.count()).where(unstarted).scalar_subquery()
    seconds = func.least(30, 0.5 * func.power(2, func.least(claims.c.dispatches, 6)) + SECONDS_EACH * waiting)
    silent = (
        select(claims.c.event_id, claims.c.token)
        .where(unstarted, claims.c.not_before.is_(None) | (claims.c.not_before <= now))
        .where(
            claims.c.dispatched_at.is_(None)
            | (claims.c.dispatched_at < now - func.make_interval(0, 0, 0, 0, 0, 0, seconds))
        )
        .limit(bindparam("limit", type_=Integer))
        .with_for_update(key_share=True, skip_locked=True)
        .cte("silent")
    )
    ring = update(claims).where(claims.c.event_id == silent.c.event_id, claims.c.token == silent.c.token)
    ring = ring.values(dispatched_at=now, dispatches=claims.c.dispatches + 1)
    return ring.returning(claims.c.event_id, claims.c.token, claims.c.queue)


_LOOK_AT_VALUES = text("SET LOCAL plan_cache_mode = force_custom_plan")

# Made once: each of them runs for every event.
_MINE = and_(claims.c.event_id == bindparam("id", type_=Uuid), claims.c.token == bindparam("held", type_=BigInteger))
_RING = _ring()
_START = (
    update(claims)
    .where(_MINE, claims.c.started_at.is_(None))
    .values(
        started_at=bindparam("now"),
        worker=bindparam("who"),
        live_until=bindparam("live"),
        step_deadline=bindparam("deadline"),
    )
)
_SETTLE = delete(claims).where(_MINE)
_OTHERS = select(exists().where(claims.c.event_id == bindparam("id", type_=Uuid)))
