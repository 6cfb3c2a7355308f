"""Facts of what administrators had decided about pools, projects and hosts before such decisions were facts."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

NAMESPACE = UUID("9d6d4f0e-3a55-4a0b-8f0e-6f2f3f0f7c21")
AUTHOR = json.dumps({"user_id": "climate:migration", "project_id": ""})
NO_TERMS = ("pool", "updated_at")

APPEND = sa.text("""
    INSERT INTO journal (stream, version, kind, body, actor, request_id)
    VALUES (:stream, 1, :kind, CAST(:body AS jsonb), CAST(:actor AS jsonb), '')
""")


DESCRIBE = sa.text("""
    WITH described AS (UPDATE hosts SET version = version + 1 WHERE extra <> '{}' RETURNING stream, version, extra)
    INSERT INTO journal (stream, version, kind, body, actor, request_id)
    SELECT stream, version, 'HostDescribed', jsonb_build_object('at', now(), 'extra', extra),
        CAST(:actor AS jsonb), ''
    FROM described
""")

WIRE = sa.text("""
    WITH wired AS (
        UPDATE hosts h SET version = version + 1 FROM host_power p WHERE p.host = h.id
        RETURNING h.stream, h.version, p.driver, p.settings, p.watts, p.secrets)
    INSERT INTO journal (stream, version, kind, body, actor, request_id)
    SELECT stream, version, 'HostPowerSet', jsonb_build_object(
            'at', now(), 'driver', driver, 'settings', settings, 'watts', watts, 'secrets', secrets <> ''),
        CAST(:actor AS jsonb), ''
    FROM wired
""")


PLAN = sa.text("""
    INSERT INTO journal (stream, version, kind, body, actor, request_id)
    SELECT id, 1, 'WindowPlanned', jsonb_build_object('at', created_at, 'host', host, 'reason', reason,
            'during', jsonb_build_object('start', lower(during), 'end', upper(during))),
        jsonb_build_object('user_id', created_by, 'project_id', ''), ''
    FROM maintenance_windows
    UNION ALL
    SELECT id, 2, CASE state WHEN 'active' THEN 'WindowBegun' ELSE 'WindowClosed' END,
        jsonb_build_object('at', coalesce(updated_at, created_at))
            || CASE state WHEN 'active' THEN '{}'::jsonb ELSE jsonb_build_object('state', state) END,
        CAST(:actor AS jsonb), ''
    FROM maintenance_windows WHERE state <> 'planned'
""")


def upgrade() -> None:
    conn = op.get_bind()
    for statement in (DESCRIBE, WIRE, PLAN):
        conn.execute(statement, {"actor": AUTHOR})
    for row in conn.execute(sa.text("SELECT * FROM pool_terms")).mappings().all():
        terms = {name: value for name, value in row.items() if name not in NO_TERMS and value is not None}
        body = {"at": row["updated_at"].isoformat(), "pool": row["pool"], "terms": terms}
        _append(conn, f"terms of {row['pool']}", "PoolTermsSet", body)
    limits = sa.text("""
        SELECT project_id, jsonb_object_agg(name, value) AS limits, max(updated_at) AS at
        FROM limits GROUP BY project_id
    """)
    for row in conn.execute(limits).mappings().all():
        body = {"at": row["at"].isoformat(), "project_id": row["project_id"], "limits": row["limits"]}
        _append(conn, f"limits of {row['project_id']}", "LimitsSet", body)


def _append(conn: sa.Connection, stream: str, kind: str, body: Mapping[str, Any]) -> None:
    given = {"stream": uuid5(NAMESPACE, stream), "kind": kind, "body": json.dumps(body), "actor": AUTHOR}
    conn.execute(APPEND, given)
