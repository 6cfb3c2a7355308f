"""Messages of cells: the outbox, the inbox, and the awaited responses."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from time import monotonic

from sqlalchemy import Connection, DateTime, Engine, and_, bindparam, delete, exists, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert

from climate.compute.store.columns import in_array, in_parameter
from climate.compute.store.tables.cells import builds, cells, inbox, outbox, responses
from climate.database.batch_delete import PORTION, drop
from climate.database.connections import reading

CHANNEL = "climate_cells"
"""Channel to LISTEN on:

INBOX and the type of a message, or OUTBOX and the name of a neighbour, if a message is pending.

NEIGHBOURS is sent when a neighbour was added, changed or deleted, or when its broker becomes unreachable or
reachable.
"""
ANSWERS = "climate_cell_answers"
"""Channel to LISTEN on: the uuid of a message that was answered."""
OUTBOX, INBOX, NEIGHBOURS = "outbox", "inbox", "neighbours"

MOST_UNCONFIRMED = 1000
"""Maximum number of unconfirmed messages to one neighbour, so that its broker is not filled while it is down."""

ASK_AGAIN = 5
"""Seconds after which a question is sent again that is not answered; then the pause doubles each time."""

LOOK_AGAIN = 1.0
"""Seconds after which a response is read although no notification arrived."""

_PUT = text("""
    WITH stored AS (
        INSERT INTO compute_cell_outbox (cell, kind, body, delivery, repeats, due_at, expires_at)
        SELECT c.name, :kind, :body, CAST(:delivery AS uuid), :repeats, :now, :expires_at
        FROM unnest(CAST(:cells AS text[])) AS c(name)
        RETURNING cell)
    SELECT pg_notify(:channel, :payload || ' ' || cell) FROM stored
""")

# A process estimates the clock of the database: a message stored just now must be due if it lags.
_NOW = "greatest(CAST(:now AS timestamptz), statement_timestamp())"

# The delay doubles after each attempt, because unconfirmed messages wait in a broker whose cell is down. Somebody waits
# for the answer to a question that repeats, so its delay is shorter; unanswered ones hold up no other message.
_TAKE = text(f"""
    UPDATE compute_cell_outbox o
    SET tries = tries + 1,
        due_at = CAST(:now AS timestamptz) + make_interval(
            secs => least(300, (CASE WHEN repeats THEN {ASK_AGAIN} ELSE 30 END) * power(2, least(tries, 5))))
    FROM (
        SELECT w.id FROM compute_cell_outbox w
        JOIN compute_cells c ON c.name = w.cell
        WHERE w.cell = :cell AND w.due_at <= {_NOW} AND (w.expires_at IS NULL OR w.expires_at > :now)
          AND (c.retry_at IS NULL OR c.retry_at <= :now)
        ORDER BY w.due_at, w.id
        LIMIT least(:limit, greatest(0, :most - (
            SELECT count(*) FROM compute_cell_outbox f
            WHERE f.cell = :cell AND f.due_at > :now AND f.tries > 0 AND NOT f.repeats)))
        FOR UPDATE OF w SKIP LOCKED
    ) due
    WHERE o.id = due.id
    RETURNING o.id, o.delivery::text, o.kind, o.body
""")

# Queried per cell, so that the messages to an unreachable one are not scanned.
_PRESENT = bindparam("now", type_=DateTime(timezone=True))
_IS_DUE = and_(outbox.c.due_at <= _PRESENT, or_(outbox.c.expires_at.is_(None), outbox.c.expires_at > _PRESENT))
_WAITING = (
    select(cells.c.name)
    .where(
        or_(cells.c.retry_at.is_(None), cells.c.retry_at <= _PRESENT),
        exists().where(outbox.c.cell == cells.c.name, _IS_DUE),
    )
    .order_by(cells.c.name)
)

_NEXT = text(f"""
    UPDATE compute_cell_inbox i
    SET attempts = attempts + 1, due_at = CAST(:now AS timestamptz) + make_interval(secs => :lease)
    FROM (
        SELECT sender, delivery FROM compute_cell_inbox
        WHERE due_at <= {_NOW} AND kind = :kind
        ORDER BY due_at, id LIMIT :limit
        FOR UPDATE SKIP LOCKED
    ) due
    WHERE i.sender = due.sender AND i.delivery = due.delivery
    RETURNING i.sender, i.delivery::text, i.kind, i.body, i.attempts, i.id
""")

# By the path of the responding cell: a broadcast has several responses. The first of a cell counts. A question that is
# answered is not sent again.
_ANSWER = text("""
    WITH answered AS (
        UPDATE compute_cell_responses
        SET body = jsonb_build_object(CAST(:cell AS text), CAST(:body AS jsonb)) || coalesce(body, '{}'::jsonb)
        WHERE uuid = CAST(:uuid AS uuid) AND expires_at > :now
        RETURNING uuid),
    over AS (DELETE FROM compute_cell_outbox o USING answered a WHERE o.delivery = a.uuid AND o.repeats)
    SELECT pg_notify(:channel, CAST(uuid AS text)) FROM answered
""")

_CONFIRM = delete(outbox).where(outbox.c.cell == bindparam("of_cell"), in_parameter(outbox.c.delivery, "deliveries"))

_EXPECT = insert(responses)

_FETCH = select(responses.c.body).where(responses.c.uuid == bindparam("uuid"))

_FORGET = delete(responses).where(responses.c.uuid == bindparam("of_uuid"))

Responses = Mapping[str, Mapping[str, object]]
"""Path of a cell -> its response as JSON."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message that is to be sent to neighbours."""

    kind: str
    body: str
    delivery: str
    """Its id on the way to each of them."""
    repeats: bool = False
    """True: it is sent again until it is answered, or its time is over."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message being sent to a neighbour."""

    id: int
    delivery: str
    kind: str
    body: str


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message that has arrived from a neighbour, or that this cell sends to itself: sender ''."""

    sender: str
    delivery: str
    kind: str
    body: str
    attempts: int = 0
    id: int = 0
    """Grows in the order of arrival."""
    waits: float | None = 0.0
    """Seconds from its arrival until it is processed; None: never."""


def notify(conn: Connection, payload: str) -> None:
    """Notify the listeners of CHANNEL after the commit."""
    conn.execute(select(func.pg_notify(CHANNEL, payload)))


def store(
    conn: Connection, cells: Sequence[str], message: Waiting, now: datetime, expires_at: datetime | None = None
) -> None:
    """Store a message for each of these neighbours; it is sent after the commit."""
    details = {"channel": CHANNEL, "payload": OUTBOX}
    if cells:
        values = {**asdict(message), "cells": list(cells), "now": now, "expires_at": expires_at}
        conn.execute(_PUT, {**values, **details}).all()


def waiting(conn: Connection, now: datetime) -> list[str]:
    """Return the neighbours with a due message."""
    return list(conn.execute(_WAITING, {"now": now}).scalars())


def counts(conn: Connection) -> dict[str, tuple[int, datetime]]:
    """Return (unconfirmed messages, time of the oldest) for each neighbour that has any."""
    query = select(outbox.c.cell, func.count(), func.min(outbox.c.created_at)).group_by(outbox.c.cell)
    return {cell: (waiting, since) for cell, waiting, since in conn.execute(query)}


def take(conn: Connection, cell: str, now: datetime, limit: int) -> list[Sent]:
    """Return messages that are due to a neighbour, in order; they are due again unless it confirms them."""
    rows = conn.execute(_TAKE, {"cell": cell, "now": now, "limit": limit, "most": MOST_UNCONFIRMED})
    return sorted((Sent(*row) for row in rows), key=lambda sent: sent.id)


def reschedule(conn: Connection, ids: Sequence[int], now: datetime) -> None:
    """Make messages due again that could not be sent."""
    tries = func.greatest(0, outbox.c.tries - 1)
    conn.execute(update(outbox).where(in_array(outbox.c.id, ids)).values(due_at=now, tries=tries))


def confirm(conn: Connection, cell: str, deliveries: Sequence[str]) -> None:
    """Delete messages that a neighbour has confirmed."""
    conn.execute(_CONFIRM, {"of_cell": cell, "deliveries": list(deliveries)})


def take_arrived(conn: Connection, kind: str, now: datetime, lease: float, limit: int) -> list[ReceivedMessage]:
    """Return messages that are due to be processed; they are due again after `lease` seconds unless they are done."""
    rows = conn.execute(_NEXT, {"kind": kind, "now": now, "lease": lease, "limit": limit})
    return sorted((ReceivedMessage(*row) for row in rows), key=lambda message: message.id)


def postpone(conn: Connection, message: ReceivedMessage, seconds: float, now: datetime) -> None:
    """Make a message due again after some seconds."""
    this = (inbox.c.sender == message.sender, inbox.c.delivery == message.delivery, inbox.c.due_at.is_not(None))
    conn.execute(update(inbox).where(*this).values(due_at=now + timedelta(seconds=seconds)))


def expect(conn: Connection, uuid: str, expires_at: datetime) -> None:
    """Record that a response to a message is awaited."""
    conn.execute(_EXPECT, {"uuid": uuid, "expires_at": expires_at})


def answer(conn: Connection, uuid: str, cell: str, body: Mapping[str, object], now: datetime) -> bool:
    """Store the response of a cell; False if it is no longer awaited."""
    values = {"uuid": uuid, "cell": cell, "body": json.dumps(body), "now": now, "channel": ANSWERS}
    return conn.execute(_ANSWER, values).first() is not None


def fetch(conn: Connection, uuid: str) -> Responses:
    """Return the responses to a message that have arrived."""
    value: Responses | None = conn.scalar(_FETCH, {"uuid": uuid})
    return value or {}


def wait_for(engine: Engine, uuid: str, seconds: float, enough: Callable[[Responses], object] = bool) -> Responses:
    """Return and delete the responses to a message once they are `enough`, or the time is over.

    Without `enough`, the first response is.
    """
    until = monotonic() + seconds
    with reading(engine) as conn:
        conn.exec_driver_sql(f"LISTEN {ANSWERS}")
        try:
            while not enough(result := fetch(conn, uuid)) and (left := until - monotonic()) > 0:
                _wait_for_notification(conn, uuid, min(left, LOOK_AGAIN))
            forget(conn, uuid)
            return result
        finally:
            conn.exec_driver_sql(f"UNLISTEN {ANSWERS}")


def _wait_for_notification(conn: Connection, uuid: str, seconds: float) -> None:
    """Wait until the message was answered, or the time is over."""
    for heard in conn.connection.driver_connection.notifies(timeout=seconds):  # type: ignore[union-attr]
        if heard.payload == uuid:
            return


def forget(conn: Connection, uuid: str) -> None:
    """Stop waiting for a response."""
    conn.execute(_FORGET, {"of_uuid": uuid})


def sweep(conn: Connection, now: datetime, kept: float) -> bool:
    """Delete expired messages, and the ids of messages that arrived more than `kept` seconds ago.

    At most a portion of each table is deleted. Return whether more may be left.
    """
    old = {
        outbox: outbox.c.expires_at < now,
        responses: responses.c.expires_at < now - timedelta(hours=1),
        inbox: and_(inbox.c.due_at.is_(None), inbox.c.received_at < now - timedelta(seconds=kept)),
        builds: builds.c.made_at < now - timedelta(days=30),
    }
    return max(drop(conn, table, condition) for table, condition in old.items()) == PORTION


def once(conn: Connection, build_id: str) -> bool:
    """Return whether a build is carried out for the first time; it is recorded if the transaction commits."""
    row = insert(builds).values(build_id=build_id).on_conflict_do_nothing()
    return conn.scalar(row.returning(builds.c.build_id)) is not None


def is_done(conn: Connection, build_id: str) -> bool:
    """Return whether a build was carried out, or sent on, already."""
    return conn.scalar(select(builds.c.build_id).where(builds.c.build_id == build_id)) is not None
