"""Rows of rescheduled servers: renewal of the claim, and the move to another node."""

from datetime import datetime, timedelta

from sqlalchemy import Connection, func, update

from climate.compute.store.tables.servers import servers


def renew_claim(conn: Connection, server_id: str, worker: str, now: datetime, seconds: float) -> str | None:
    """Renew the claim on a server for so many seconds, with its row locked; return its current task.

    None if another worker has the claim, or if there is no task any more.
    """
    until = func.greatest(servers.c.worker_until, now + timedelta(seconds=seconds))
    this = update(servers).where(servers.c.id == server_id, servers.c.worker == worker)
    task: str | None = conn.scalar(this.values(worker_until=until).returning(servers.c.task))
    return task


def move(conn: Connection, server_id: str, node_id: int, now: datetime) -> None:
    """Move a server to another node after it failed on its own; that node's service may claim the task."""
    released = {"worker": None, "worker_until": None, "rung_at": None, "task_at": now, "updated_at": now}
    tried = func.array_append(servers.c.tried, servers.c.node_id)
    conn.execute(update(servers).where(servers.c.id == server_id).values(**released, node_id=node_id, tried=tried))
