"""Tasks of servers: claimed, finished or failed by one worker at a time."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, func, insert, or_, select, text, update

from climate.compute.store.tables.nodes import nodes
from climate.compute.store.tables.servers import actions, servers

FAILED = "Error"
"""The message of a failed action; one that succeeded has none."""

_OWN_NODES = select(nodes.c.id).where(nodes.c.service_host == bindparam("host"))

_CLAIM = (
    update(servers)
    .where(servers.c.id == bindparam("server"), servers.c.task.is_not(None))
    .where(or_(servers.c.worker_until.is_(None), servers.c.worker_until < bindparam("now")))
    .where(or_(servers.c.node_id.is_(None), servers.c.node_id.in_(_OWN_NODES)))
    .values(worker=bindparam("by"), worker_until=bindparam("until"))
    .returning(servers.c.id)
)

# Only if the task is still the one that was carried out: otherwise the worker reads it again.
_FINISH = text("""
    WITH done AS (
        UPDATE compute_servers
        SET status = coalesce(:status, status), task = NULL, task_image = NULL, task_details = '{}', worker = NULL,
            worker_until = NULL, launched_at = CASE WHEN CAST(:launched AS boolean) THEN :now ELSE launched_at END,
            updated_at = :now, fault = CAST(:fault AS jsonb)
        WHERE id = CAST(:id AS uuid) AND worker = CAST(:worker AS uuid) AND task = :task
        RETURNING id),
    told AS (
        UPDATE compute_actions a SET finished_at = :now, message = :message
        FROM done WHERE a.server_id = done.id AND a.finished_at IS NULL)
    SELECT id FROM done
""")

# Orders to the services of cluster members are included in the statement, because pollers run it often.
_UNFINISHED = text("""
    WITH orders AS (
        UPDATE compute_member_orders SET rung_at = :now
        WHERE begun_at IS NULL AND until > :now
          AND (rung_at IS NULL OR rung_at < CAST(:now AS timestamptz) - make_interval(secs => :again))
        RETURNING service_host, id::text),
    served AS (
    UPDATE compute_servers s SET rung_at = :now
    FROM compute_nodes n
    WHERE n.id = s.node_id AND s.id IN (
        SELECT id FROM compute_servers
        WHERE task IS NOT NULL AND (worker_until IS NULL OR worker_until < :now)
          AND task_at < CAST(:now AS timestamptz) - make_interval(secs => :wait)
          AND (rung_at IS NULL OR rung_at < CAST(:now AS timestamptz) - make_interval(secs => :again))
        ORDER BY task_at LIMIT 500 FOR NO KEY UPDATE SKIP LOCKED)
    RETURNING n.service_host, s.id::text)
    SELECT * FROM served UNION ALL SELECT * FROM orders
""")


# Statements of each life of a server are built once.
_OF_SERVER = servers.c.id == bindparam("server")

_UPDATE = update(servers).where(_OF_SERVER)

# What is left of a server is the time that it ran.
_DELETE = text("""
    WITH gone AS (DELETE FROM compute_servers WHERE id = CAST(:server AS uuid)
                  RETURNING id, project_id, name, flavor, vcpus, ram_mb, disk_mb, launched_at)
    INSERT INTO compute_server_usage (server_id, project_id, name, flavor, vcpus, ram_mb, disk_mb, started_at)
    SELECT id, project_id, name, flavor ->> 'name', vcpus, ram_mb, disk_mb, launched_at
    FROM gone WHERE launched_at IS NOT NULL
    ON CONFLICT DO NOTHING
""")

_END = update(actions).where(actions.c.server_id == bindparam("server"), actions.c.finished_at.is_(None))
_END = _END.values(finished_at=func.clock_timestamp())

# The first action of a server is its creation, by a user of its project.
_OWNER = select(actions.c.project_id).where(actions.c.server_id == bindparam("server")).order_by(actions.c.id).limit(1)

_ACTION = insert(actions)


def record(
    conn: Connection,
    server_id: str,
    task: str,
    now: datetime,
    image: str | None = None,
    details: Mapping[str, object] | None = None,
) -> None:
    """Set the task of a server whose row is locked; its fault stays until the task is done."""
    values = {"task": task, "task_at": now, "rung_at": None, "task_image": image, "tried": [], "updated_at": now}
    conn.execute(_UPDATE, {"server": server_id, **values, "task_details": dict(details or {})})


def fence(conn: Connection, server_id: str, token: int) -> bool:
    """Record the token; False if it is outdated."""
    this = (servers.c.id == server_id, servers.c.fence <= token)
    return conn.scalar(update(servers).where(*this).values(fence=token).returning(servers.c.id)) is not None


def claim(conn: Connection, server_id: str, host: str, worker: str, now: datetime, seconds: float) -> bool:
    """Claim the task of a server for so many seconds; False if there is none, it is claimed or it is not `host`'s."""
    given = {"server": server_id, "host": host, "by": worker, "now": now, "until": now + timedelta(seconds=seconds)}
    return conn.scalar(_CLAIM, given) is not None


def finish(
    conn: Connection, server_id: str, worker: str, task: str, outcome: Mapping[str, object], now: datetime
) -> bool:
    """Finish a task with success (status, launched) or failure (fault, failed); False if another task was requested.

    All unfinished actions of the server are finished with it.
    """
    fault = outcome.get("fault")
    given = {
        "id": server_id,
        "worker": worker,
        "task": task,
        "status": outcome.get("status"),
        "launched": outcome.get("launched", False),
        "fault": json.dumps(fault) if fault else None,
        "message": FAILED if fault or outcome.get("failed") else None,
        "now": now,
    }
    return conn.execute(_FINISH, given).first() is not None


def failed(conn: Connection, server_id: str, now: datetime) -> None:
    """Record that the action on a server has failed, though its task continues."""
    unfinished = (actions.c.server_id == server_id, actions.c.finished_at.is_(None))
    conn.execute(update(actions).where(*unfinished).values(finished_at=now, message=FAILED))


def let_go(conn: Connection, server_id: str, worker: str, now: datetime) -> None:
    """Release the claim on an unfinished task; another wake-up follows later."""
    own = update(servers).where(servers.c.id == server_id, servers.c.worker == worker)
    conn.execute(own.values(worker=None, worker_until=None, task_at=now, rung_at=now))


def delete(conn: Connection, server_id: str) -> None:
    """Delete the row of a server, whose addresses are deallocated, and record the time that it ran.

    Its actions stay, and are finished.
    """
    conn.execute(_END, {"server": server_id})
    conn.execute(_DELETE, {"server": server_id})


def unfinished(conn: Connection, now: datetime, wait: float, again: float) -> list[tuple[str, str]]:
    """Return (service host, id of a server or an order) of unclaimed work, each at most every `again` seconds."""
    given = {"now": now, "wait": wait, "again": again}
    return [(host, server_id) for host, server_id in conn.execute(_UNFINISHED, given)]


def note(
    conn: Connection, server_id: str, action: str, by: Mapping[str, str], now: datetime, *, done: bool = False
) -> None:
    """Add an action to the list of a server; `by`: project_id, user_id, request_id; `done`: it is finished."""
    row = {"server_id": server_id, "action": action, "started_at": now, "finished_at": now if done else None}
    conn.execute(_ACTION, row | {key: by[key] for key in ("project_id", "user_id", "request_id")})


def owner(conn: Connection, server_id: str) -> str | None:
    """Return the project of a server that is deleted, by its actions; None if it has none."""
    return conn.scalar(_OWNER, {"server": server_id})


def notes(conn: Connection, server_id: str) -> list[dict[str, object]]:
    """Return the actions on a server, newest first."""
    names = ("action", "request_id", "user_id", "project_id", "message", "started_at", "finished_at")
    query = select(*(actions.c[name] for name in names)).where(actions.c.server_id == server_id)
    return [dict(row) for row in conn.execute(query.order_by(actions.c.id.desc()).limit(1000)).mappings()]
