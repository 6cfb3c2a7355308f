"""Reconciliation of server rows with the driver's findings: read in one statement, written in one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, func, select, text

from climate.compute.models.node import FREEPOOL
from climate.compute.models.server import ERROR
from climate.compute.store.tables.nodes import aggregates, nodes
from climate.compute.store.tables.servers import servers

# A locked row is about to change: its finding is outdated, and the next round looks again.
_SETTLE = text("""
    WITH f AS (SELECT * FROM jsonb_to_recordset(CAST(:findings AS jsonb))
               AS r(id uuid, seen timestamptz, status text, task text, fault text, action text, message text)),
    free AS (SELECT s.id FROM compute_servers s JOIN f ON f.id = s.id
             WHERE s.task IS NULL AND s.updated_at = f.seen FOR NO KEY UPDATE OF s SKIP LOCKED),
    changed AS (
        UPDATE compute_servers s
        SET status = f.status, task = f.task, rung_at = NULL, updated_at = :now,
            task_at = CASE WHEN f.task IS NULL THEN s.task_at ELSE :now END,
            fault = CASE WHEN f.fault IS NOT NULL
                         THEN jsonb_build_object('code', 500, 'created', CAST(:created AS text), 'message', f.fault) END
        FROM f JOIN free ON free.id = f.id WHERE s.id = f.id
        RETURNING s.id, s.project_id, f.action, f.message),
    noted AS (
        INSERT INTO compute_actions (server_id, project_id, action, request_id, user_id, message,
                                     started_at, finished_at)
        SELECT id, project_id, action, :request_id, :user_id, message, :now, :now FROM changed)
    SELECT id::text FROM changed
""")


@dataclass(frozen=True, slots=True)
class IdleServer:
    """A server without a task, as its row describes it."""

    id: str
    status: str
    seen: datetime
    """Time of the last change of the row."""
    node: str
    lost: bool
    """It is ERROR because its node disappeared."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The correction of a server: new status, task, and the entry for its list of actions."""

    id: str
    seen: datetime
    status: str
    task: str | None
    fault: str | None
    action: str
    message: str


def settled(conn: Connection, host: str, gone: str) -> list[IdleServer]:
    """Return the servers of a service without a task; `gone`: the fault of those whose node disappeared."""
    own = servers.c
    is_lost = and_(own.status == ERROR, own.fault["message"].astext == gone)
    seen, node, lost = own.updated_at.label("seen"), nodes.c.name.label("node"), func.coalesce(is_lost, False)
    query = select(own.id, own.status, seen, node, lost.label("lost")).join(nodes, nodes.c.id == own.node_id)
    rows = conn.execute(query.where(nodes.c.service_host == host, own.task.is_(None)).order_by(own.id))
    return [IdleServer(**row) for row in rows.mappings()]


def settle(conn: Connection, findings: Sequence[Finding], by: Mapping[str, str], now: datetime) -> set[str]:
    """Write findings, each unless its server has changed since it was seen; return those that were written.

    `by`: request_id and user_id for the servers' lists of actions.
    """
    rows = [asdict(finding) | {"seen": finding.seen.isoformat()} for finding in findings]
    given = {"findings": json.dumps(rows), "now": now, "created": f"{now:%Y-%m-%dT%H:%M:%SZ}", **by}
    return set(conn.execute(_SETTLE, given).scalars())


def cloud(conn: Connection) -> str | None:
    """Return the identity of this cloud: the id of its reservation pool; None before the first heartbeat."""
    return conn.scalar(select(aggregates.c.uuid).where(aggregates.c.name == FREEPOOL))
