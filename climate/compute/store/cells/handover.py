"""Messages of cells that the storing process forwards itself, without reading them from the database again.

Their commits need not wait for the disk: a neighbour keeps a message until it is confirmed, and `flush` precedes the
confirmation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, column, text

from climate.compute.store.cells.messages import INBOX, MOST_UNCONFIRMED, OUTBOX, Arrived, Sent, notify

# One statement stores all messages caused by a batch. A message that this process sends counts as sent; one that it
# must not send yet is due. Messages caused by a known message are left out: `new` is a message that was not known.
_STORE = text("""
    WITH arrived AS (
        INSERT INTO compute_cell_inbox (sender, delivery, kind, body, attempts, due_at, received_at)
        SELECT a.sender, a.delivery, a.kind, a.body, a.attempts,
               CAST(:now AS timestamptz) + make_interval(secs => a.seconds), CAST(:now AS timestamptz)
        FROM unnest(CAST(:senders AS text[]), CAST(:arrivals AS uuid[]), CAST(:arrival_kinds AS text[]),
                    CAST(:arrival_bodies AS text[]), CAST(:attempts AS int[]), CAST(:seconds AS float[]))
             AS a(sender, delivery, kind, body, attempts, seconds)
        ON CONFLICT (sender, delivery) DO NOTHING
        RETURNING sender, delivery),
    done AS (
        UPDATE compute_cell_inbox SET due_at = NULL, body = ''
        WHERE sender = :done_sender AND delivery = CAST(:done_delivery AS uuid)
        RETURNING sender, delivery),
    new AS (
        SELECT sender, delivery FROM arrived UNION ALL SELECT sender, delivery FROM done
        UNION ALL VALUES ('', CAST('00000000-0000-0000-0000-000000000000' AS uuid))),
    sent AS (
        INSERT INTO compute_cell_outbox (cell, kind, body, delivery, tries, due_at)
        SELECT g.cell, g.kind, g.body, g.delivery, least(1, o.open),
               CAST(:now AS timestamptz) + make_interval(secs => 30 * o.open)
        FROM unnest(CAST(:cells AS text[]), CAST(:kinds AS text[]), CAST(:bodies AS text[]),
                    CAST(:deliveries AS uuid[]), CAST(:taken AS boolean[]), CAST(:of_senders AS text[]),
                    CAST(:of_deliveries AS uuid[])) AS g(cell, kind, body, delivery, taken, of_sender, of_delivery)
        JOIN new ON new.sender = g.of_sender AND new.delivery = g.of_delivery
        CROSS JOIN LATERAL (
            SELECT CASE WHEN g.taken AND (SELECT count(*) FROM (
                SELECT FROM compute_cell_outbox f WHERE f.cell = g.cell AND f.tries > 0 LIMIT :most) l) < :most
                THEN 1 ELSE 0 END AS open) o
        RETURNING id, delivery, kind, body, cell, tries)
    SELECT 'arrived' AS what, CAST(NULL AS bigint) AS id, delivery::text, NULL AS kind, NULL AS body, sender AS cell,
           0 AS tries FROM arrived
    UNION ALL SELECT 'sent', id, delivery::text, kind, body, cell, tries FROM sent
""").columns(*(column(name) for name in ("what", "id", "delivery", "kind", "body", "cell", "tries")))

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
class Kept:
    """The outcome of `store`."""

    new: set[Key] = field(default_factory=set)
    """Messages that were not known before."""
    mine: dict[str, list[Sent]] = field(default_factory=dict)
    """By neighbour, the messages that this process sends."""


def store(
    conn: Connection,
    arrivals: Sequence[Arrived],
    outgoing: Sequence[Outgoing],
    now: datetime,
    done: Arrived | None = None,
) -> Kept:
    """Store messages that have arrived and those that they cause; of `done` only the ids are stored.

    A message of `outgoing` waits if it is not taken, or if its neighbour has too many unconfirmed ones.
    """
    values = {**_arrived(arrivals), **_going(outgoing), "now": now, "most": MOST_UNCONFIRMED}
    values["done_sender"], values["done_delivery"] = (done.sender, done.delivery) if done is not None else (None, None)
    kept, waiting = Kept(), set()
    for row in conn.execute(_STORE, values):
        if row.what == "arrived":
            kept.new.add((row.cell, row.delivery))
        elif row.tries:
            kept.mine.setdefault(row.cell, []).append(Sent(row.id, row.delivery, row.kind, row.body))
        else:
            waiting.add(row.cell)
    due = {one.kind for one in arrivals if one.waits == 0 and (one.sender, one.delivery) in kept.new}
    for kind in sorted(due):
        notify(conn, f"{INBOX} {kind}")
    for cell in sorted(waiting):
        notify(conn, f"{OUTBOX} {cell}")
    return kept


def _arrived(arrivals: Sequence[Arrived]) -> dict[str, object]:
    """Return the columns of messages that have arrived."""
    return {
        "senders": _column([one.sender for one in arrivals]),
        "arrivals": _column([one.delivery for one in arrivals]),
        "arrival_kinds": _column([one.kind for one in arrivals]),
        "arrival_bodies": _column([one.body if one.waits is not None else "" for one in arrivals]),
        "attempts": _column([one.attempts for one in arrivals]),
        "seconds": _column([one.waits for one in arrivals]),
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
