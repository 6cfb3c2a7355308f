"""Rows of rescheduled servers: renewal of the claim, and the move to another node."""

from datetime import datetime

from sqlalchemy import Connection, text

_HOLD = text("""
    UPDATE compute_servers
    SET worker_until = greatest(worker_until, CAST(:now AS timestamptz) + make_interval(secs => :seconds))
    WHERE id = CAST(:id AS uuid) AND worker = CAST(:worker AS uuid)
    RETURNING task
""")

_MOVE = text("""
    UPDATE compute_servers
    SET node_id = :node_id, tried = tried || node_id, worker = NULL, worker_until = NULL, task_at = :now,
        rung_at = NULL, updated_at = :now
    WHERE id = CAST(:id AS uuid)
""")


def hold(conn: Connection, server_id: str, worker: str, now: datetime, seconds: float) -> str | None:
    """Renew the claim on a server for so many seconds, with its row locked; return its current task.

    None if another worker has the claim, or if there is no task any more.
    """
    value: str | None = conn.execute(
        _HOLD, {"id": server_id, "worker": worker, "now": now, "seconds": seconds}
    ).scalar_one_or_none()
    return value


def move(conn: Connection, server_id: str, node_id: int, now: datetime) -> None:
    """Move a server to another node after it failed on its own; that node's service may claim the task."""
    conn.execute(_MOVE, {"id": server_id, "node_id": node_id, "now": now})
