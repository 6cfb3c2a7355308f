"""Tasks of servers: claimed, finished or failed by one worker at a time."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

FAILED = "Error"
"""The message of a failed action; one that succeeded has none."""

_RECORD = text("""
    UPDATE compute_servers
    SET task = :task, task_at = :now, rung_at = NULL, task_image = CAST(:image AS uuid), tried = '{}',
        task_details = CAST(:details AS jsonb), updated_at = :now
    WHERE id = CAST(:id AS uuid)
""")

_FENCE = text("""
    UPDATE compute_servers SET fence = :token WHERE id = CAST(:id AS uuid) AND fence <= :token RETURNING id
""")

_CLAIM = text("""
    UPDATE compute_servers
    SET worker = CAST(:worker AS uuid), worker_until = CAST(:now AS timestamptz) + make_interval(secs => :seconds)
    WHERE id = CAST(:id AS uuid) AND task IS NOT NULL AND (worker_until IS NULL OR worker_until < :now)
      AND (node_id IS NULL OR node_id IN (SELECT id FROM compute_nodes WHERE service_host = :host))
    RETURNING id
""")

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

_FAILED = text("""
    UPDATE compute_actions SET finished_at = :now, message = :message
    WHERE server_id = CAST(:id AS uuid) AND finished_at IS NULL
""")

_LET_GO = text("""
    UPDATE compute_servers SET worker = NULL, worker_until = NULL, task_at = :now, rung_at = :now
    WHERE id = CAST(:id AS uuid) AND worker = CAST(:worker AS uuid)
""")

_DELETE = text("DELETE FROM compute_servers WHERE id = CAST(:id AS uuid)")

_FORGET = text("DELETE FROM compute_actions WHERE server_id = CAST(:id AS uuid)")

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

_ACTION = text("""
    INSERT INTO compute_actions (server_id, project_id, action, request_id, user_id, started_at, finished_at)
    VALUES (CAST(:server_id AS uuid), :project_id, :action, :request_id, :user_id, :now,
            CASE WHEN CAST(:done AS boolean) THEN :now END)
""")

_ACTIONS = text("""
    SELECT action, request_id, user_id, project_id, message, started_at, finished_at
    FROM compute_actions WHERE server_id = CAST(:server_id AS uuid) ORDER BY id DESC LIMIT 1000
""")


def record(
    conn: Connection,
    server_id: str,
    task: str,
    now: datetime,
    image: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Set the task of a server whose row is locked; its fault stays until the task is done."""
    given = {"id": server_id, "task": task, "now": now, "image": image, "details": json.dumps(details or {})}
    conn.execute(_RECORD, given)


def fence(conn: Connection, server_id: str, token: int) -> bool:
    """Record the token; False if it is outdated."""
    return conn.execute(_FENCE, {"id": server_id, "token": token}).first() is not None


def claim(conn: Connection, server_id: str, host: str, worker: str, now: datetime, seconds: float) -> bool:
    """Claim the task of a server for so many seconds; False if there is none, it is claimed or it is not `host`'s."""
    given = {"id": server_id, "host": host, "worker": worker, "now": now, "seconds": seconds}
    return conn.execute(_CLAIM, given).first() is not None


def finish(conn: Connection, server_id: str, worker: str, task: str, outcome: Mapping[str, Any], now: datetime) -> bool:
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
    conn.execute(_FAILED, {"id": server_id, "message": FAILED, "now": now})


def let_go(conn: Connection, server_id: str, worker: str, now: datetime) -> None:
    """Release the claim on an unfinished task; another wake-up follows later."""
    conn.execute(_LET_GO, {"id": server_id, "worker": worker, "now": now})


def delete(conn: Connection, server_id: str) -> None:
    """Delete the row of a server, whose addresses are deallocated."""
    conn.execute(_FORGET, {"id": server_id})
    conn.execute(_DELETE, {"id": server_id})


def unfinished(conn: Connection, now: datetime, wait: float, again: float) -> list[tuple[str, str]]:
    """Return (service host, id of a server or an order) of unclaimed work, each at most every `again` seconds."""
    given = {"now": now, "wait": wait, "again": again}
    return [(host, server_id) for host, server_id in conn.execute(_UNFINISHED, given)]


def note(
    conn: Connection, server_id: str, action: str, by: Mapping[str, str], now: datetime, *, done: bool = False
) -> None:
    """Add an action to the list of a server; `by`: project_id, user_id, request_id; `done`: it is finished."""
    conn.execute(_ACTION, {"server_id": server_id, "action": action, "now": now, "done": done, **by})


def notes(conn: Connection, server_id: str) -> list[dict[str, Any]]:
    """Return the actions on a server, newest first."""
    return [dict(row) for row in conn.execute(_ACTIONS, {"server_id": server_id}).mappings()]
