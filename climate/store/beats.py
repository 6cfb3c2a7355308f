"""Signs of life of the processes, for readiness and for operators."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert

from climate.store.care_tables import beats
from climate.store.portions import drop

FORGOTTEN = timedelta(hours=1)


def beat(conn: Connection, roles: Sequence[str], process: str, now: datetime) -> None:
    """Note that a process has just done what each of the roles stands for; one statement."""
    mark = insert(beats).values([{"role": role, "process": process, "at": now} for role in roles])
    conn.execute(mark.on_conflict_do_update(index_elements=["role", "process"], set_={"at": now}))


def latest(conn: Connection, role: str) -> datetime | None:
    """When any process of that role was last heard of."""
    last: datetime | None = conn.execute(select(func.max(beats.c.at)).where(beats.c.role == role)).scalar_one()
    return last


def forget_old(conn: Connection, now: datetime) -> int:
    """Delete a portion of the processes that were not heard of for long; how many."""
    return drop(conn, beats, beats.c.at < now - FORGOTTEN)
