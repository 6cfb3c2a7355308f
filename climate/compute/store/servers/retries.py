"""What a retry asks of a server's row: whether the work is still this worker's, and to be put on another node."""

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
    """Keep the work on a server for so many seconds more, with its row locked: what is wanted of it now.

    None when another worker has it, or when there is nothing to do any more.
    """
    found: str | None = conn.execute(
        _HOLD, {"id": server_id, "worker": worker, "now": now, "seconds": seconds}
    ).scalar_one_or_none()
    return found


def move(conn: Connection, server_id: str, node_id: int, now: datetime) -> None:
    """Put a server on another node after it failed on its own; the work is free for that node's service."""
    conn.execute(_MOVE, {"id": server_id, "node_id": node_id, "now": now})
