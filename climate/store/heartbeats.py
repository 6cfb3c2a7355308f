"""Heartbeats of the processes, for readiness and for operators."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, Text, bindparam, exists, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY, insert

from climate.database.batch_delete import drop
from climate.store.schema import Time
from climate.store.tables.limits_and_notices import beats

FORGOTTEN = timedelta(hours=1)

ROLE_FORGOTTEN = timedelta(days=7)
"""Age after which even the last heartbeat of a role is deleted, since no process has that role any more."""

QUEUE = "queue:"
"""Prefix of the roles of workers; the name of the queue that the worker reads follows."""

HOST_QUEUES = ("queue:compute.", "queue:network.")
"""Prefixes of the roles of single hosts. The tables of services record since when such a host is silent."""


@dataclass(frozen=True, slots=True)
class QueueBeat:
    """Heartbeats of the workers that read one queue."""

    at: datetime
    """Time of the last heartbeat."""
    alive: int
    """Number of workers with a recent heartbeat."""


def beat(conn: Connection, roles: Sequence[str], process: str, now: datetime | None) -> None:
    """Record heartbeats of a process for each of the roles, in one statement.

    `now` is None for the database's clock.
    """
    conn.execute(_BEAT, {"roles": list(roles), "who": process, "now": now})


def latest(conn: Connection, role: str) -> datetime | None:
    """Return the time of the last heartbeat of any process of that role."""
    last: datetime | None = conn.execute(select(func.max(beats.c.at)).where(beats.c.role == role)).scalar_one()
    return last


def by_queue(conn: Connection, alive_since: datetime) -> dict[str, QueueBeat]:
    """Return for each queue its last heartbeat, and the number of workers with one since a moment."""
    alive = func.count().filter(beats.c.at >= alive_since)
    query = select(beats.c.role, func.max(beats.c.at), alive).where(beats.c.role.startswith(QUEUE, autoescape=True))
    rows = conn.execute(query.group_by(beats.c.role))
    return {role.removeprefix(QUEUE): QueueBeat(at, count) for role, at, count in rows}


def forget_old(conn: Connection, now: datetime) -> int:
    """Delete a batch of old heartbeats; return their number.

    The last heartbeat of each role stays for a week, to show since when there is none. That of a queue of one host is
    deleted with the others, since the host may be gone for good.
    """
    later = beats.alias("later")
    is_outlived = exists().where(later.c.role == beats.c.role, later.c.at > beats.c.at)
    of_host = [beats.c.role.startswith(prefix, autoescape=True) for prefix in HOST_QUEUES]
    is_needless = or_(is_outlived, *of_host, beats.c.at < now - ROLE_FORGOTTEN)
    return drop(conn, beats, (beats.c.at < now - FORGOTTEN) & is_needless)


# The roles are one value, because a statement with a list of rows is compiled anew each time.
_ROWS = select(
    func.unnest(bindparam("roles", type_=ARRAY(Text))),
    bindparam("who", type_=Text),
    func.coalesce(bindparam("now", type_=Time), func.statement_timestamp()),
)
_MARK = insert(beats).from_select(["role", "process", "at"], _ROWS)
_BEAT = _MARK.on_conflict_do_update(index_elements=["role", "process"], set_={"at": _MARK.excluded.at})
