"""Batches of claims that one worker runs together: sent in one message, started, renewed and settled as one."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, func, select, text

from climate.domain.status import EventKind
from climate.store.leases.event_claims import Limits, Message
from climate.store.tables.leases import claims

MOST_EVENTS = 20
"""Maximum events of a batch."""

MOST_HOSTS = 200
"""Maximum hosts of all leases of a batch; a lease with more is alone."""


class Batched(NamedTuple):
    """Events that may be sent in batches."""

    queue: str
    kind: str


class Candidate(NamedTuple):
    """A claim to send, and the data that decides whether others may be in its batch."""

    message: Message
    is_simple: bool
    """True for the first try of an event that runs as a whole, and was never sent before."""
    hosts: int
    kind: str = EventKind.START
    rung_at: datetime | None = None
    """Time of the last message; claims with equal times had one message."""


class Settled(NamedTuple):
    """The end of a run, before its result is recorded."""

    event_id: UUID
    token: int
    due_at: datetime
    steps: Sequence[str]
    """Steps to mark as done."""


@dataclass
class _Portion:
    """The message of a queue to which claims may still be added."""

    number: int
    kind: str
    events: int = 0
    hosts: int = 0

    def takes(self, candidate: Candidate) -> bool:
        fits = self.events < MOST_EVENTS and self.hosts + candidate.hosts <= MOST_HOSTS
        return fits and self.kind == candidate.kind

    def add(self, candidate: Candidate) -> int:
        self.events += 1
        self.hosts += candidate.hosts
        return self.number


@dataclass
class _Numbers:
    """Numbers of messages, in the order in which they are sent."""

    batched: Collection[Batched]
    last: int = 0
    open: dict[str, _Portion] = field(default_factory=dict)

    def of(self, candidate: Candidate) -> int:
        queue = candidate.message.queue
        portion = self.open.get(queue)
        if not candidate.is_simple or (queue, candidate.kind) not in self.batched:
            self.open.pop(queue, None)  # nothing that was claimed later comes before it
            return self._new()
        if portion is None or not portion.takes(candidate):
            portion = self.open[queue] = _Portion(self._new(), candidate.kind)
        return portion.add(candidate)

    def _new(self) -> int:
        self.last += 1
        return self.last


def numbered(candidates: Iterable[Candidate], batched: Collection[Batched]) -> Iterator[Message]:
    """Yield the messages with their batch numbers, in the order of their claims; a batch has events of one kind."""
    numbers = _Numbers(batched)
    for candidate in sorted(candidates, key=lambda one: one.message.token):
        yield replace(candidate.message, number=numbers.of(candidate))


def to_send(conn: Connection, now: datetime, limit: int = 500, batched: Collection[Batched] = ()) -> list[Message]:
    """Return the claims to send: never sent, or sent a while ago and not started.

    The pause doubles from 0.5 to 30 s, and is longer when many are waiting, because workers may still be busy with
    earlier messages. A repeated message keeps its token, so that it does not become stale in a queue. Messages come in
    the order in which their events were claimed. Those of `batched` that are sent for the first time come in batches.
    """
    rows = conn.execute(_SILENT, {"now": now, "limit": limit}).all()
    candidates = [
        Candidate(Message(r.event_id, r.token, r.queue, r.sent), r.is_simple, r.hosts, r.kind, r.dispatched_at)
        for r in rows
    ]
    messages = list(numbered(candidates, batched))
    if messages:
        conn.execute(_RUNG, {"now": now, **_columns(messages), "numbers": _marks(messages, candidates)})
    return messages


def _marks(messages: Sequence[Message], candidates: Sequence[Candidate]) -> list[int]:
    """Return numbers that count the messages: claims that shared a message may share it still, in their queue.

    `mark_apart` numbers those that are sent again because it is not there.
    """
    rung_at = {candidate.message.token: candidate.rung_at for candidate in candidates}
    first: dict[datetime, int] = {}
    marks = []
    for message in messages:
        moment = rung_at[message.token]
        marks.append(message.number if moment is None else first.setdefault(moment, message.number))
    return marks


def mark_apart(conn: Connection, messages: Sequence[Message], now: datetime) -> None:
    """Mark claims that are sent again as sent in a message each, after the message that they shared was lost."""
    numbers = [message.number for message in messages]
    conn.execute(_MARK_APART, {"now": now, **_columns(messages), "numbers": numbers})


def rung_unbegun(conn: Connection) -> Counter[str]:
    """Return for each queue the number of messages for claims that nobody has begun."""
    return Counter({row.queue: row.messages for row in conn.execute(_RUNG_UNBEGUN)})


def start(
    conn: Connection, messages: Sequence[Message], worker: str, now: datetime | None, limits: Limits
) -> dict[UUID, datetime]:
    """Begin the events that nobody has begun under another message (compare and set); return the time by event.

    `now` is that time, or None for the database's clock.
    """
    given = {"now": now, "who": worker, "live": limits.live, "step": limits.step, **_columns(messages)}
    return {row.event_id: row.started_at for row in conn.execute(_START, given)}


def release_unbegun(conn: Connection, messages: Sequence[Message], worker: str) -> int:
    """Release unbegun claims of a batch, each to be sent in a message of its own; return their number."""
    return conn.execute(_GIVE_BACK, {"who": worker, **_columns(messages)}).rowcount


def settle(conn: Connection, ended: Sequence[Settled]) -> tuple[frozenset[UUID], datetime]:
    """Release claims, and mark their last steps as done; return the time and the events that the worker still had."""
    rows = [(one.event_id, one.due_at, step) for one in ended for step in one.steps]
    given = {
        "event_ids": [one.event_id for one in ended],
        "tokens": [one.token for one in ended],
        "of": [row[0] for row in rows],
        "due": [row[1] for row in rows],
        "steps": [row[2] for row in rows],
    }
    settled = conn.execute(_SETTLE, given).one()
    return frozenset(settled.event_ids or ()), settled.now


def _columns(messages: Sequence[Message]) -> dict[str, object]:
    return {"event_ids": [m.event_id for m in messages], "tokens": [m.token for m in messages]}


_GIVEN = "unnest(CAST(:event_ids AS uuid[]), CAST(:tokens AS bigint[]))"

# Each message has its own time in `dispatched_at`, by which `rung_unbegun` counts messages. Claims that were never sent
# come first, so that a queue without workers does not starve the others.
_SILENT = text("""
    WITH silent AS MATERIALIZED (
        SELECT c.event_id, c.token, c.queue, c.dispatches, c.dispatched_at FROM claims c
        WHERE c.started_at IS NULL AND (c.not_before IS NULL OR c.not_before <= :now)
            AND (c.dispatched_at IS NULL OR c.dispatched_at < :now - make_interval(secs => least(30,
                0.5 * power(2, least(c.dispatches, 6))
                + 0.01 * (SELECT count(*) FROM claims WHERE started_at IS NULL))))
        ORDER BY c.dispatched_at NULLS FIRST, c.token
        LIMIT :limit FOR NO KEY UPDATE SKIP LOCKED)
    SELECT s.event_id, s.token, s.queue, s.dispatches + 1 AS sent, s.dispatched_at, e.kind,
        s.dispatches = 0 AND e.shares = '[]' AND e.attempts <= 1 AS is_simple,
        (SELECT count(*) FROM reservations r JOIN allocations a ON a.reservation_id = r.id
            WHERE r.lease_id = e.lease_id) AS hosts
    FROM silent s JOIN events e ON e.id = s.event_id
""")
_RUNG = text("""
    UPDATE claims c SET dispatches = c.dispatches + 1, dispatched_at = :now + m.number * interval '1 microsecond'
    FROM unnest(CAST(:event_ids AS uuid[]), CAST(:tokens AS bigint[]), CAST(:numbers AS int[]))
        AS m (event_id, token, number)
    WHERE c.event_id = m.event_id AND c.token = m.token
""")
_MARK_APART = text("""
    WITH unbegun AS (
        SELECT c.event_id, c.token, m.number FROM claims c
        JOIN unnest(CAST(:event_ids AS uuid[]), CAST(:tokens AS bigint[]), CAST(:numbers AS int[]))
            AS m (event_id, token, number) USING (event_id, token)
        WHERE c.started_at IS NULL ORDER BY c.event_id, c.token FOR NO KEY UPDATE OF c SKIP LOCKED)
    UPDATE claims c SET dispatched_at = :now + u.number * interval '1 microsecond'
    FROM unbegun u WHERE c.event_id = u.event_id AND c.token = u.token
""")
_RUNG_UNBEGUN = (
    select(claims.c.queue, func.count(claims.c.dispatched_at.distinct()).label("messages"))
    .where(claims.c.started_at.is_(None), claims.c.dispatched_at.is_not(None))
    .group_by(claims.c.queue)
)
_START = text(f"""
    WITH free AS (
        SELECT c.event_id, c.token FROM claims c JOIN {_GIVEN} AS m (event_id, token) USING (event_id, token)
        WHERE c.started_at IS NULL ORDER BY c.event_id, c.token FOR NO KEY UPDATE OF c)
    UPDATE claims c SET started_at = n.now, worker = :who, live_until = n.now + :live, step_deadline = n.now + :step
    FROM free f, (SELECT coalesce(CAST(:now AS timestamptz), statement_timestamp()) AS now) n
    WHERE c.event_id = f.event_id AND c.token = f.token RETURNING c.event_id, c.started_at
""")  # noqa: S608
_GIVE_BACK = text(f"""
    WITH mine AS (
        SELECT c.event_id, c.token FROM claims c JOIN {_GIVEN} AS m (event_id, token) USING (event_id, token)
        WHERE c.started_at IS NULL OR c.worker = :who ORDER BY c.event_id, c.token FOR NO KEY UPDATE OF c)
    UPDATE claims c SET started_at = NULL, worker = NULL, live_until = NULL, step_deadline = NULL,
        dispatched_at = NULL, dispatches = greatest(1, c.dispatches)
    FROM mine m WHERE c.event_id = m.event_id AND c.token = m.token
""")  # noqa: S608
_SETTLE = text(f"""
    WITH mine AS MATERIALIZED (
        SELECT c.event_id, c.token FROM claims c JOIN {_GIVEN} AS m (event_id, token) USING (event_id, token)
        ORDER BY c.event_id, c.token FOR UPDATE OF c),
    ended AS (
        DELETE FROM claims c USING mine m
        WHERE c.event_id = m.event_id AND c.token = m.token RETURNING c.event_id),
    ticked AS (
        UPDATE actions a SET state = 'DONE'
        FROM unnest(CAST(:of AS uuid[]), CAST(:due AS timestamptz[]), CAST(:steps AS text[])) AS s (event_id, due, step)
        WHERE a.event_id = s.event_id AND a.due_at = s.due AND a.step = s.step
            AND a.event_id IN (SELECT event_id FROM ended))
    SELECT (SELECT array_agg(event_id) FROM ended) AS event_ids, clock_timestamp() AS now
""")  # noqa: S608
