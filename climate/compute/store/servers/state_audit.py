"""What was found of servers against their rows: read at once, written at once."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from climate.compute.models.node import FREEPOOL

_SETTLED = text("""
    SELECT s.id::text, s.status, s.updated_at AS seen, n.name AS node,
           coalesce(s.status = 'ERROR' AND s.fault ->> 'message' = :gone, false) AS lost
    FROM compute_servers s JOIN compute_nodes n ON n.id = s.node_id
    WHERE n.service_host = :host AND s.task IS NULL
    ORDER BY s.id
""")

# Whoever has a row locked is about to change it: what was found of it is old then, and is looked at again.
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

_CLOUD = text("SELECT uuid::text FROM compute_aggregates WHERE name = :name")


@dataclass(frozen=True, slots=True)
class Settled:
    """A server for which nothing is under way, as its row says it is."""

    id: str
    status: str
    seen: datetime
    """When the row was last changed."""
    node: str
    lost: bool
    """It is ERROR because its node went away."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a server turns out to be, what is to be done, and how it is told in its list of actions."""

    id: str
    seen: datetime
    status: str
    task: str | None
    fault: str | None
    action: str
    message: str


def settled(conn: Connection, host: str, gone: str) -> list[Settled]:
    """The servers of a service for which nothing is under way; `gone`: the fault of those whose node went away."""
    return [Settled(**row) for row in conn.execute(_SETTLED, {"host": host, "gone": gone}).mappings()]


def settle(conn: Connection, findings: Sequence[Finding], by: Mapping[str, str], now: datetime) -> set[str]:
    """Write findings down, each unless its server has changed since it was seen; those that were written.

    `by`: request_id and user_id for the servers' lists of actions.
    """
    rows = [asdict(finding) | {"seen": finding.seen.isoformat()} for finding in findings]
    given = {"findings": json.dumps(rows), "now": now, "created": f"{now:%Y-%m-%dT%H:%M:%SZ}", **by}
    return set(conn.execute(_SETTLE, given).scalars())


def cloud(conn: Connection) -> str | None:
    """What tells this cloud from every other one: the id of its reservation pool; None before the first beat."""
    found: str | None = conn.execute(_CLOUD, {"name": FREEPOOL}).scalar()
    return found
