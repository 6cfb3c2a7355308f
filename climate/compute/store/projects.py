"""What belongs to a project or a user: quotas and keypairs."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, text

_ENSURE = text("INSERT INTO compute_quotas (project_id) VALUES (:project_id) ON CONFLICT DO NOTHING")

_LOCKED = text("SELECT instances, cores, ram_mb FROM compute_quotas WHERE project_id = :project_id FOR NO KEY UPDATE")

_LIMITS = text("SELECT instances, cores, ram_mb FROM compute_quotas WHERE project_id = :project_id")

_KEYS = text("""
    SELECT name, public_key, fingerprint, created_at FROM compute_keypairs
    WHERE user_id = :user_id AND (CAST(:name AS text) IS NULL OR name = :name) ORDER BY name
""")

_ADD_KEY = text("""
    INSERT INTO compute_keypairs (user_id, name, public_key, fingerprint)
    VALUES (:user_id, :name, :public_key, :fingerprint) ON CONFLICT DO NOTHING RETURNING name
""")

_DROP_KEY = text("DELETE FROM compute_keypairs WHERE user_id = :user_id AND name = :name RETURNING name")

DEFAULT_LIMITS: Mapping[str, int] = {"instances": 50, "cores": 200, "ram_mb": 512000}
"""The limits of a project that has no others."""


def lock_limits(conn: Connection, project_id: str) -> Mapping[str, int]:
    """The limits of a project, locked: one request of a project at a time counts against them."""
    conn.execute(_ENSURE, {"project_id": project_id})
    return dict(conn.execute(_LOCKED, {"project_id": project_id}).mappings().one())


def limits(conn: Connection, project_id: str) -> Mapping[str, int]:
    """The limits of a project."""
    row = conn.execute(_LIMITS, {"project_id": project_id}).mappings().one_or_none()
    return dict(row) if row else DEFAULT_LIMITS


def keypairs(conn: Connection, user_id: str, name: str | None = None) -> list[dict[str, Any]]:
    """The keypairs of a user, or the one of that name."""
    return [dict(row) for row in conn.execute(_KEYS, {"user_id": user_id, "name": name}).mappings()]


def add_keypair(conn: Connection, user_id: str, name: str, public_key: str, fingerprint: str) -> bool:
    """Write a keypair down; False when the name is taken."""
    given = {"user_id": user_id, "name": name, "public_key": public_key, "fingerprint": fingerprint}
    return conn.execute(_ADD_KEY, given).first() is not None


def drop_keypair(conn: Connection, user_id: str, name: str) -> bool:
    """Drop a keypair; False when there is none."""
    return conn.execute(_DROP_KEY, {"user_id": user_id, "name": name}).first() is not None
