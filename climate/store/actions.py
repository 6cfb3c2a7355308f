"""What events asked of the cloud: written down before, ticked off after."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, Text, Uuid, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY, insert

from climate.store.tables import Time, actions


def plan(conn: Connection, event_id: UUID, due_at: datetime, step: str, token: int) -> bool:
    """Write an intent down; False when this step of the event was done before."""
    given = {"event_id": event_id, "due_at": due_at, "step": step, "token": token, "state": "PLANNED"}
    return bool(conn.scalar(_PLAN, given) != "DONE")


def tick_off(conn: Connection, event_id: UUID, due_at: datetime, steps: Collection[str]) -> None:
    if steps:
        conn.execute(_TICK_OFF, {"id": event_id, "due": due_at, "steps": list(steps)})


def of_event(conn: Connection, event_id: UUID) -> dict[str, str]:
    """Step -> state."""
    found = select(actions.c.step, actions.c.state).where(actions.c.event_id == event_id)
    return {row.step: row.state for row in conn.execute(found)}


_INTENT = insert(actions)
_PLAN = _INTENT.on_conflict_do_update(
    index_elements=["event_id", "due_at", "step"], set_={"token": _INTENT.excluded.token}
).returning(actions.c.state)

_TICK_OFF = (
    update(actions)
    .where(actions.c.event_id == bindparam("id", type_=Uuid), actions.c.due_at == bindparam("due", type_=Time))
    .where(actions.c.step == func.any(bindparam("steps", type_=ARRAY(Text))))
    .values(state="DONE")
)
