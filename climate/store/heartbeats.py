"""Signs of life of the processes, for readiness and for operators."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, exists, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from climate.store.batch_delete import drop
from climate.store.tables.hosts import beats

FORGOTTEN = timedelta(hours=1)

ROLE_FORGOTTEN = timedelta(days=7)
"""After this long not even the last sign of life of a role is kept: nothing has that role any more."""

QUEUE = "queue:"
"""Roles of workers begin with it; the name of a queue that the worker reads follows."""

HOST_QUEUES = ("queue:compute.", "queue:network.")
"""Roles of one host begin with these.  The tables of services know since when such a host is silent."""


@dataclass(frozen=True, slots=True)
class QueueBeat:
    """Signs of life of the workers that read one queue."""

    at: datetime
    """The last one."""
    alive: int
    """Workers that were heard of lately."""


def beat(conn: Connection, roles: Sequence[str], process: str, now: datetime) -> None:
    """Note that a process has just done what each of the roles stands for; one statement."""
    mark = insert(beats).values([{"role": role, "process": process, "at": now} for role in roles])
    conn.execute(mark.on_conflict_do_update(index_elements=["role", "process"], set_={"at": now}))


def latest(conn: Connection, role: str) -> datetime | None:
    """When any process of that role was last heard of."""
    last: datetime | None = conn.execute(select(func.max(beats.c.at)).where(beats.c.role == role)).scalar_one()
    return last


def by_queue(conn: Connection, alive_since: datetime) -> dict[str, QueueBeat]:
    """Return for each queue when a worker that reads it was last heard of, and how many were since a moment."""
    alive = func.count().filter(beats.c.at >= alive_since)
    query = select(beats.c.role, func.max(beats.c.at), alive).where(beats.c.role.startswith(QUEUE, autoescape=True))
    found = conn.execute(query.group_by(beats.c.role))
    return {role.removeprefix(QUEUE): QueueBeat(at, count) for role, at, count in found}


def forget_old(conn: Connection, now: datetime) -> int:
    """Delete a portion of the processes that were not heard of for long; how many.

    The last sign of life of each role stays for a week: it says since when there is none.  That of a queue of one
    host goes with the others: the host may be gone for good.
    """
    later = beats.alias("later")
    is_outlived = exists().where(later.c.role == beats.c.role, later.c.at > beats.c.at)
    of_host = [beats.c.role.startswith(prefix, autoescape=True) for prefix in HOST_QUEUES]
    is_needless = or_(is_outlived, *of_host, beats.c.at < now - ROLE_FORGOTTEN)
    return drop(conn, beats, (beats.c.at < now - FORGOTTEN) & is_needless)
