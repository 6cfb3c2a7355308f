"""What events asked of the cloud: written down before, ticked off after."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, select, update
from sqlalchemy.dialects.postgresql import insert

from climate.store.tables import actions


def plan(conn: Connection, event_id: UUID, due_at: datetime, step: str, token: int) -> bool:
    """Write an intent down; False when this step of the event was done before."""
    intent = insert(actions).values(event_id=event_id, due_at=due_at, step=step, token=token, state="PLANNED")
    again = intent.on_conflict_do_update(
        index_elements=["event_id", "due_at", "step"], set_={"token": token}
    ).returning(actions.c.state)
    return bool(conn.scalar(again) != "DONE")


def tick_off(conn: Connection, event_id: UUID, due_at: datetime, steps: Collection[str]) -> None:
    if steps:
        done = update(actions).where(
            actions.c.event_id == event_id, actions.c.due_at == due_at, actions.c.step.in_(list(steps))
        )
        conn.execute(done.values(state="DONE"))


def of_event(conn: Connection, event_id: UUID) -> dict[str, str]:
    """Step -> state."""
    found = select(actions.c.step, actions.c.state).where(actions.c.event_id == event_id)
    return {row.step: row.state for row in conn.execute(found)}
