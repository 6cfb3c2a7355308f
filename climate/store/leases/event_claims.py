"""Claims of events IN_PROGRESS: opened, sent, started, renewed and settled."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Interval,
    Uuid,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    literal_column,
    select,
    text,
    true,
    update,
)

from climate.domain.events.event_transitions import GATES
from climate.domain.status import EventKind
from climate.store import locks
from climate.store.leases import cloud_actions, due_events
from climate.store.schema import Time
from climate.store.tables.leases import claims, epochs, events, fence_seq, has, leases, leases_set_aside


@dataclass(frozen=True, slots=True)
class Message:
    """Content of a message to a worker."""

    event_id: UUID
    token: int
    queue: str = ""
    sent: int = field(default=0, compare=False)
    """Number of times it was sent, including this one."""
    number: int = field(default=0, compare=False)
    """Number of the message that contains it: claims with the same number are sent together."""


def tokens(conn: Connection, count: int) -> list[int]:
    """Return new tokens, each higher than all before: (epoch, sequence)."""
    series = func.generate_series(1, count).table_valued()
    return list(conn.scalars(select(next_token()).select_from(series)))


def next_token() -> ColumnElement[int]:
    """Return the expression of a new token, for statements that write it."""
    epoch = select(epochs.c.epoch).scalar_subquery()
    token: ColumnElement[int] = epoch.op("::bigint << ")(40) + fence_seq.next_value()
    return token


def open_many(
    conn: Connection, messages: Sequence[Message], by: str, now: datetime, not_before: datetime | None = None
) -> None:
    """Open claims; no message for them is sent before `not_before`."""
    claimed = {"claimed_by": by, "claimed_at": now, "not_before": not_before}
    rows = [{"event_id": m.event_id, "token": m.token, "queue": m.queue, **claimed} for m in messages]
    if rows:
        conn.execute(insert(claims), rows)


def mark_unsent(conn: Connection, messages: Sequence[Message]) -> None:
    """Mark claims as not sent, so that they are sent with the next read."""
    tokens = {"event_id": [m.event_id for m in messages], "token": [m.token for m in messages]}
    conn.execute(_TAKE_BACK, tokens)


def ring_again(conn: Connection) -> int:
    """Have every unbegun claim sent again with the next read; return their number."""
    unbegun = claims.c.started_at.is_(None) & claims.c.dispatched_at.is_not(None)
    rows = select(claims.c.event_id, claims.c.token).where(unbegun).with_for_update(key_share=True, skip_locked=True)
    result = rows.cte("found")
    mine = (claims.c.event_id == result.c.event_id) & (claims.c.token == result.c.token)
    return conn.execute(update(claims).where(mine).values(dispatched_at=None, dispatches=0)).rowcount


def longest_unbegun(conn: Connection) -> dict[str, datetime]:
    """Return for each queue since when an event has been sent and not begun; queues without one are left out."""
    mine = claims.c.started_at.is_(None) & claims.c.dispatched_at.is_not(None)
    rows = conn.execute(select(claims.c.queue, func.min(claims.c.claimed_at)).where(mine).group_by(claims.c.queue))
    return {row[0]: row[1] for row in rows}


@dataclass(frozen=True, slots=True)
class Limits:
    """Lifetime of a claim without a heartbeat, and maximum time of the work under it."""

    live: timedelta
    step: timedelta


def start(conn: Connection, message: Message, worker: str, now: datetime | None, limits: Limits) -> datetime | None:
    """Begin an event: only the first worker with the right token succeeds, all others get None and stop.

    Return the time of the beginning: `now`, or the database's time.
    """
    given = {"id": message.event_id, "held": message.token, "now": now, "who": worker}
    begun: datetime | None = conn.scalar(_START, given | {"live": limits.live, "step": limits.step})
    return begun


def renew(conn: Connection, messages: Sequence[Message], now: datetime, live: timedelta) -> frozenset[UUID]:
    """Renew claims; return the events whose claims are neither lost nor past the maximum time of the work."""
    given = {"event_id": [m.event_id for m in messages], "token": [m.token for m in messages]}
    return frozenset(conn.scalars(_KEEP_ALIVE, {**given, "now": now, "until": now + live}))


def settle(conn: Connection, event_id: UUID, token: int) -> bool:
    """Release the claim, which permits recording the result; return False when it was revoked."""
    return conn.execute(_SETTLE, {"id": event_id, "held": token}).rowcount == 1


def settle_run(conn: Connection, event_id: UUID, token: int, due_at: datetime, steps: Sequence[str]) -> datetime | None:
    """Release the claim of a run, and mark its last steps; return the database's time, or None when it was revoked."""
    given = {"id": event_id, "held": token, "due": due_at, "steps": list(steps)}
    settled: datetime | None = conn.scalar(_SETTLE_AND_TICK_OFF, given)
    return settled


def is_unbegun(conn: Connection, event_id: UUID) -> bool:
    """Return whether the event is claimed and no worker has begun it; none can before the transaction ends.

    The lease has to be locked, so that no other claim is opened meanwhile.
    """
    own = select(claims.c.started_at).where(claims.c.event_id == event_id)
    begun = conn.scalars(locks.ordered(own, claims.c.token)).all()
    return bool(begun) and not any(begun)


def close(conn: Connection, event_id: UUID) -> None:
    """Close all claims of an event; workers with one of their tokens stop."""
    conn.execute(delete(claims).where(claims.c.event_id == event_id))


def has_open_claims(conn: Connection, event_id: UUID) -> bool:
    """Return whether shares of the event are still under way. The lease has to be locked, so that no more are added."""
    return bool(conn.scalar(_OTHERS, {"id": event_id}))


@dataclass(frozen=True, slots=True)
class OrphanedClaim:
    """A claim without a living worker."""

    lease_id: UUID
    event_id: UUID
    token: int
    is_begun: bool
    """True if a worker began and then fell silent; otherwise none came before the lease was over."""
    holds: int
    """Number of hosts of its lease, counted up to `due_events.MOST_HOLDS`."""


def orphaned(conn: Connection, now: datetime, limit: int = 100, event_id: UUID | None = None) -> list[OrphanedClaim]:
    """Return claims of silent workers, and unbegun shares of ended leases; the leases are locked.

    Restrict them to one event, if given.
    """
    begun = claims.c.started_at.is_not(None)
    end = events.alias("end_of_lease")
    given_back = select(func.max(end.c.due_at)).where(end.c.lease_id == leases.c.id, end.c.kind == EventKind.END)
    last_use = case(
        (events.c.kind == EventKind.PREPARE, leases.c.start_date),
        (events.c.kind == EventKind.CLOSE, given_back.correlate(leases).scalar_subquery()),
        else_=leases.c.end_date,
    )
    over = events.c.kind.not_in((EventKind.END, *GATES)) & (last_use <= now)
    # Accept any content of the column: one broken row must not end the read of all others.
    divided = events.c.shares != literal_column("'[]'::jsonb")
    query = (
        select(leases.c.id.label("lease_id"), claims.c.event_id, claims.c.token, begun.label("is_begun"))
        .add_columns(due_events.holds().label("holds"))
        .join(events, events.c.id == claims.c.event_id)
        .join(leases, leases.c.id == events.c.lease_id)
        .where((begun & (claims.c.live_until < now)) | (~begun & divided & over))
        .where(leases.c.id.not_in(select(leases_set_aside.c.lease_id)))
        .where(true() if event_id is None else claims.c.event_id == event_id)
        .order_by(claims.c.live_until, claims.c.event_id)
        .limit(limit)
        .with_for_update(of=[leases], key_share=True, skip_locked=True)
    )
    return [OrphanedClaim(*row) for row in conn.execute(query)]


def next_due(conn: Connection, now: datetime) -> datetime | None:
    """Return when the next event becomes due, without those that are due already."""
    query = select(func.min(events.c.run_at)).where(has(events.c.status, "UNDONE"), events.c.run_at > now)
    soonest: datetime | None = conn.execute(query).scalar_one()
    return soonest


@dataclass(frozen=True, slots=True)
class PendingWork:
    """Summary of the pending work."""

    is_quiet: bool
    """True if no event is claimed, and none is due."""
    wait: timedelta | None
    """Time until the next event is due; None if there is none."""


def pending_work(conn: Connection, now: datetime | None) -> PendingWork:
    """Return whether there is anything to claim, send or rescue, in one statement, by the database's clock."""
    return PendingWork(*conn.execute(_REST, {"now": now}).one())


def wake_poller(conn: Connection) -> None:
    """Notify the pollers at commit of an event that is due before their next read."""
    conn.execute(select(func.pg_notify(CHANNEL, "")))


def wake_rounds(conn: Connection) -> None:
    """Notify the pollers at commit of a host that needs a round before their next one."""
    conn.execute(select(func.pg_notify(CHANNEL, ROUNDS)))


CHANNEL = "climate_due"

ROUNDS = "rounds"
"""Payload of the channel for hosts that need a round, as opposed to due events."""


# Built once, because each of them runs for every event.
_MINE = and_(claims.c.event_id == bindparam("id", type_=Uuid), claims.c.token == bindparam("held", type_=BigInteger))
_BEGUN = func.coalesce(bindparam("now", type_=Time), func.statement_timestamp())
_START = (
    update(claims)
    .where(_MINE, claims.c.started_at.is_(None))
    .values(
        started_at=_BEGUN,
        worker=bindparam("who"),
        live_until=_BEGUN + bindparam("live", type_=Interval),
        step_deadline=_BEGUN + bindparam("step", type_=Interval),
    )
    .returning(claims.c.started_at)
)
_SETTLE = delete(claims).where(_MINE)
_SETTLED = _SETTLE.returning(claims.c.event_id).cte("settled")
_SETTLE_AND_TICK_OFF = (
    select(func.clock_timestamp()).select_from(_SETTLED).add_cte(cloud_actions.ticked_off(_SETTLED).cte("ticked"))
)
_OTHERS = select(exists().where(claims.c.event_id == bindparam("id", type_=Uuid)))
_REST = text("""
    WITH undone AS NOT MATERIALIZED (
        SELECT run_at, coalesce(:now, statement_timestamp()) AS now FROM events WHERE status = 'UNDONE')
    SELECT NOT EXISTS (SELECT FROM claims) AND NOT EXISTS (SELECT FROM undone WHERE run_at <= now),
        (SELECT run_at - now FROM undone WHERE run_at > now ORDER BY run_at LIMIT 1)
""").bindparams(bindparam("now", type_=Time))
_KEEP_ALIVE = text("""
    WITH mine AS (
        SELECT c.event_id, c.token FROM claims c
        JOIN unnest(CAST(:event_id AS uuid[]), CAST(:token AS bigint[])) AS m (event_id, token) USING (event_id, token)
        WHERE c.step_deadline > :now ORDER BY c.event_id, c.token FOR NO KEY UPDATE OF c)
    UPDATE claims c SET live_until = :until
    FROM mine WHERE c.event_id = mine.event_id AND c.token = mine.token RETURNING c.event_id
""")
_TAKE_BACK = text("""
    WITH mine AS (
        SELECT c.event_id, c.token FROM claims c
        JOIN unnest(CAST(:event_id AS uuid[]), CAST(:token AS bigint[])) AS m (event_id, token) USING (event_id, token)
        WHERE c.started_at IS NULL ORDER BY c.event_id, c.token FOR NO KEY UPDATE OF c)
    UPDATE claims c SET dispatched_at = NULL, dispatches = greatest(0, c.dispatches - 1)
    FROM mine WHERE c.event_id = mine.event_id AND c.token = mine.token
""")
