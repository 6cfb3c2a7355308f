"""What events asked of the cloud: written down before, ticked off after."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, Connection, Text, Uuid, bindparam, func, literal, select, update
from sqlalchemy.dialects.postgresql import ARRAY, insert

from climate.store.tables import Time, actions, claims


def plan(conn: Connection, event_id: UUID, due_at: datetime, step: str, token: int) -> str | None:
    """Write an intent down; the state of the step: DONE when this event has done it before.

    None when the event is not claimed under that token any more; until the
    transaction ends, nobody can take the claim away.
    """
    found: str | None = conn.scalar(_PLAN, {"id": event_id, "due": due_at, "name": step, "held": token})
    return found


def tick_off(conn: Connection, event_id: UUID, due_at: datetime, steps: Collection[str]) -> None:
    if steps:
        conn.execute(_TICK_OFF, {"id": event_id, "due": due_at, "steps": list(steps)})


_CLAIM = (
    select(
        claims.c.event_id,
        bindparam("due", type_=Time),
        bindparam("name", type_=Text),
        claims.c.token,
        literal("PLANNED"),
    )
    .where(claims.c.event_id == bindparam("id", type_=Uuid), claims.c.token == bindparam("held", type_=BigInteger))
    .with_for_update(read=True)
)
_INTENT = insert(actions).from_select(["event_id", "due_at", "step", "token", "state"], _CLAIM)
_PLAN = _INTENT.on_conflict_do_update(
    index_elements=["event_id", "due_at", "step"], set_={"token": _INTENT.excluded.token}
).returning(actions.c.state)

_TICK_OFF = (
    update(actions)
    .where(actions.c.event_id == bindparam("id", type_=Uuid), actions.c.due_at == bindparam("due", type_=Time))
    .where(actions.c.step == func.any(bindparam("steps", type_=ARRAY(Text))))
    .values(state="DONE")
)
