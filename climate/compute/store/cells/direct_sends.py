"""Storage of messages between cells that the storing process also sends, without reading them again.

Their commits need not wait for the disk: a neighbour keeps a message until it is confirmed, and `flush` precedes the
confirmation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, text

from climate.compute.store.cells.messages import INBOX, MOST_UNCONFIRMED, OUTBOX, ReceivedMessage, Sent, notify

# One statement stores all messages caused by a batch. A message that this process sends counts as sent; one that it
# must not send yet is due. Messages caused by a known message are left out: `new` is a message that was not known.
# The form of the driver: SQLAlchemy's layers over a compiled statement take as long as Postgres takes for it.
_STORE = """
    WITH arrived AS (
        INSERT INTO compute_cell_inbox (sender, delivery, kind, body, attempts, due_at, received_at)
        SELECT a.sender, a.delivery, a.kind, a.body, a.attempts,
               CAST(%(now)s AS timestamptz) + make_interval(secs => a.seconds), CAST(%(now)s AS timestamptz)
        FROM unnest(CAST(%(senders)s AS text[]), CAST(%(arrivals)s AS uuid[]), CAST(%(arrival_kinds)s AS text[]),
                    CAST(%(arrival_bodies)s AS text[]), CAST(%(attempts)s AS int[]), CAST(%(seconds)s AS float[]))
             AS a(sender, delivery, kind, body, attempts, seconds)
        ON CONFLICT (sender, delivery) DO NOTHING
        RETURNING sender, delivery),
    done AS (
        UPDATE compute_cell_inbox SET due_at = NULL, body = ''
        WHERE sender = %(done_sender)s AND delivery = CAST(%(done_delivery)s AS uuid)
        RETURNING sender, delivery),
    new AS (
        SELECT sender, delivery FROM arrived UNION ALL SELECT sender, delivery FROM done
        UNION ALL VALUES ('', CAST('00000000-0000-0000-0000-000000000000' AS uuid))),
    sent AS (
        INSERT INTO compute_cell_outbox (cell, kind, body, delivery, tries, due_at)
        SELECT g.cell, g.kind, g.body, g.delivery, least(1, o.open),
               CAST(%(now)s AS timestamptz) + make_interval(secs => 30 * o.open)
        FROM unnest(CAST(%(cells)s AS text[]), CAST(%(kinds)s AS text[]), CAST(%(bodies)s AS text[]),
                    CAST(%(deliveries)s AS uuid[]), CAST(%(taken)s AS boolean[]), CAST(%(of_senders)s AS text[]),
                    CAST(%(of_deliveries)s AS uuid[])) AS g(cell, kind, body, delivery, taken, of_sender, of_delivery)
        JOIN new ON new.sender = g.of_sender AND new.delivery = g.of_delivery
        CROSS JOIN LATERAL (
            SELECT CASE WHEN g.taken AND (SELECT count(*) FROM (
                SELECT FROM compute_cell_outbox f
                WHERE f.cell = g.cell AND f.tries > 0 AND NOT f.repeats LIMIT %(most)s) l) < %(most)s
                THEN 1 ELSE 0 END AS open) o
        RETURNING id, delivery, cell, tries)
    SELECT CAST(NULL AS bigint), delivery::text, sender, 0 FROM arrived
    UNION ALL SELECT id, delivery::text, cell, tries FROM sent
"""

# A transaction that has written nothing waits for nothing.
_FLUSH = text("SELECT pg_logical_emit_message(true, 'climate', '')")

_DUE_KINDS = text("""
    SELECT k.kind FROM unnest(CAST(:kinds AS text[])) AS k(kind)
    WHERE EXISTS (SELECT FROM compute_cell_inbox i WHERE i.kind = k.kind AND i.due_at <= :now)
""")


Key = tuple[str, str]
"""(sender, delivery) of a message."""

OF_ITSELF: Key = ("", "00000000-0000-0000-0000-000000000000")
"""The cause of a message that was not caused by another one."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to a neighbour that another message caused."""

    cell: str
    kind: str
    body: str
    delivery: str
    """Its id on the way to the neighbour."""
    because: Key
    taken: bool = False
    """True: this process sends it as soon as it is stored."""


@dataclass(slots=True)
class StoreOutcome:
    """The outcome of `store`."""

    new: set[Key] = field(default_factory=set)
    """Messages that were not known before."""
    mine: dict[str, list[Sent]] = field(default_factory=dict)
    """By neighbour, the messages that this process sends."""


def store(
    conn: Connection,
    arrivals: Sequence[ReceivedMessage],
    outgoing: Sequence[Outgoing],
    now: datetime,
    done: ReceivedMessage | None = None,
) -> StoreOutcome:
    """Store messages that have arrived and those that they cause; of `done` only the ids are stored.

    A message of `outgoing` waits if it is not taken, or if its neighbour has too many unconfirmed ones.
    """
    values = {**_arrived(arrivals), **_going(outgoing), "now": now, "most": MOST_UNCONFIRMED}
    values["done_sender"], values["done_delivery"] = (done.sender, done.delivery) if done is not None else (None, None)
    sent = {(one.cell, one.delivery): one for one in outgoing}
    kept, waiting = StoreOutcome(), set()
    for number, delivery, cell, tries in conn.exec_driver_sql(_STORE, values).all():
        if number is None:
            kept.new.add((cell, delivery))
        elif tries:
            one = sent[cell, delivery]
            kept.mine.setdefault(cell, []).append(Sent(number, delivery, one.kind, one.body))
        else:
            waiting.add(cell)
    due = {
        arrival.kind for arrival in arrivals if arrival.waits == 0 and (arrival.sender, arrival.delivery) in kept.new
    }
    for kind in sorted(due):
        notify(conn, f"{INBOX} {kind}")
    for cell in sorted(waiting):
        notify(conn, f"{OUTBOX} {cell}")
    return kept


def _arrived(arrivals: Sequence[ReceivedMessage]) -> dict[str, object]:
    """Return the columns of messages that have arrived."""
    return {
        "senders": _column([arrival.sender for arrival in arrivals]),
        "arrivals": _column([arrival.delivery for arrival in arrivals]),
        "arrival_kinds": _column([arrival.kind for arrival in arrivals]),
        "arrival_bodies": _column([arrival.body if arrival.waits is not None else "" for arrival in arrivals]),
        "attempts": _column([arrival.attempts for arrival in arrivals]),
        "seconds": _column([arrival.waits for arrival in arrivals]),
    }


def _going(outgoing: Sequence[Outgoing]) -> dict[str, object]:
    """Return the columns of outgoing messages."""
    return {
        "cells": _column([one.cell for one in outgoing]),
        "kinds": _column([one.kind for one in outgoing]),
        "bodies": _column([one.body for one in outgoing]),
        "deliveries": _column([one.delivery for one in outgoing]),
        "taken": _column([one.taken for one in outgoing]),
        "of_senders": _column([one.because[0] for one in outgoing]),
        "of_deliveries": _column([one.because[1] for one in outgoing]),
    }


def _column(values: Sequence[str | float | None]) -> str:
    """Return an array in the text form of Postgres, which is faster than the driver's conversion of lists."""
    return f"{{{','.join(map(_item, values))}}}"


def _item(value: str | float | None) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return "NULL" if value is None else str(value)


def unsynced(conn: Connection) -> None:
    """Let this transaction commit without waiting for the disk."""
    conn.exec_driver_sql("SET LOCAL synchronous_commit TO off")


def flush(conn: Connection) -> None:
    """Make the commit of this transaction wait for the disk, and so for all earlier commits."""
    conn.execute(_FLUSH)


def due_kinds(conn: Connection, kinds: Sequence[str], now: datetime) -> list[str]:
    """Return the message types of which one is due to be processed."""
    return list(conn.execute(_DUE_KINDS, {"kinds": list(kinds), "now": now}).scalars())
