"""Cloud actions of events: recorded as planned before the call, and as done after it."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import CTE, BigInteger, Connection, Text, Update, Uuid, bindparam, literal, select, text, update
from sqlalchemy.dialects.postgresql import insert

from climate.database.sql_arrays import in_parameter
from climate.store.schema import Time
from climate.store.tables.leases import actions, claims


class Intent(NamedTuple):
    """A step that an event is about to carry out."""

    event_id: UUID
    due_at: datetime
    step: str
    token: int


def record_intent(
    conn: Connection, event_id: UUID, due_at: datetime, step: str, token: int, done: Collection[str] = ()
) -> str | None:
    """Record an intent and mark the steps `done`; return its state: DONE when the event has done it before.

    Return None, and write nothing, when the event is not claimed under that token any more. Use one statement, which
    can be a transaction of its own, or two when a step is repeated.
    """
    given = {"id": event_id, "due": due_at, "name": step, "held": token, "steps": list(done)}
    if step in done:  # one statement cannot change a row twice
        conn.execute(_TICK_OFF, given)
        given["steps"] = []
    value: str | None = conn.scalar(_PLAN, given)
    return value


def plan_together(conn: Connection, intents: Sequence[Intent]) -> dict[UUID, str]:
    """Record one intent of each of several events, in one statement; return their states as `plan` does.

    An event that is not claimed under its token any more is missing, and nothing is written for it.
    """
    columns = zip(*intents, strict=True)
    given = dict(zip(("event_ids", "due", "steps", "tokens"), map(list, columns), strict=True))
    return {row.event_id: row.state for row in conn.execute(_PLAN_TOGETHER, given)}


def ticked_off(claimed: CTE) -> Update:
    """Return the UPDATE that marks `steps` of an event `id` due at `due` as done, if the claim exists."""
    return (
        update(actions)
        .where(actions.c.event_id == claimed.c.event_id, actions.c.due_at == bindparam("due", type_=Time))
        .where(in_parameter(actions.c.step, "steps"))
        .values(state="DONE")
    )


# The lock keeps the claim from being revoked before the intent is written.
_CLAIM = (
    select(claims.c.event_id, claims.c.token)
    .where(claims.c.event_id == bindparam("id", type_=Uuid), claims.c.token == bindparam("held", type_=BigInteger))
    .with_for_update(read=True)
    .cte("claimed")
)
_TICK_OFF = ticked_off(_CLAIM)
_STEP = select(
    _CLAIM.c.event_id, bindparam("due", type_=Time), bindparam("name", type_=Text), _CLAIM.c.token, literal("PLANNED")
)
_INTENT = insert(actions).from_select(["event_id", "due_at", "step", "token", "state"], _STEP)
_PLAN = (
    _INTENT.on_conflict_do_update(index_elements=["event_id", "due_at", "step"], set_={"token": _INTENT.excluded.token})
    .returning(actions.c.state)
    .add_cte(ticked_off(_CLAIM).cte("ticked"))
)
_PLAN_TOGETHER = text("""
    WITH claimed AS (
        SELECT c.event_id, m.due, m.step, c.token FROM claims c
        JOIN unnest(CAST(:event_ids AS uuid[]), CAST(:due AS timestamptz[]), CAST(:steps AS text[]),
            CAST(:tokens AS bigint[])) AS m (event_id, due, step, token) USING (event_id, token)
        ORDER BY c.event_id, c.token FOR SHARE OF c)
    INSERT INTO actions AS a (event_id, due_at, step, token, state)
    SELECT event_id, due, step, token, 'PLANNED' FROM claimed ORDER BY event_id
    ON CONFLICT (event_id, due_at, step) DO UPDATE SET token = excluded.token
    RETURNING a.event_id, a.state
""")
