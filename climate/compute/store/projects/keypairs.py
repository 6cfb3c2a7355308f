"""Keypairs: public keys of users, by name."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, text

from climate.advisory_locks import Subject

_COLUMNS = "id, name, public_key, fingerprint, created_at"

_LIST = text(f"""
    SELECT {_COLUMNS} FROM compute_keypairs
    WHERE user_id = :user_id AND (CAST(:name AS text) IS NULL OR name = :name) ORDER BY name
""")

_COUNT = text("SELECT count(*) FROM compute_keypairs WHERE user_id = :user_id")

_ADD = text(f"""
    INSERT INTO compute_keypairs (user_id, name, public_key, fingerprint)
    VALUES (:user_id, :name, :public_key, :fingerprint) ON CONFLICT DO NOTHING RETURNING {_COLUMNS}
""")

_DROP = text("DELETE FROM compute_keypairs WHERE user_id = :user_id AND name = :name RETURNING name")

# Whoever adds a key to those of a user waits here for whoever does already, so that they are counted one by one.
_ALONE = text(Subject.KEYPAIRS.lock("user_id"))

Row = Mapping[str, Any]


def listed(conn: Connection, user_id: str, name: str | None = None) -> list[Row]:
    """The keypairs of a user by name, or the one of that name."""
    return [dict(row) for row in conn.execute(_LIST, {"user_id": user_id, "name": name}).mappings()]


def count(conn: Connection, user_id: str) -> int:
    """How many keypairs a user has; it stays so for others until the end of the transaction."""
    conn.execute(_ALONE, {"user_id": user_id})
    found: int = conn.execute(_COUNT, {"user_id": user_id}).scalar_one()
    return found


def add(conn: Connection, user_id: str, name: str, public_key: str, fingerprint: str) -> Row | None:
    """Write a keypair down; None when the name is taken."""
    given = {"user_id": user_id, "name": name, "public_key": public_key, "fingerprint": fingerprint}
    row = conn.execute(_ADD, given).mappings().one_or_none()
    return dict(row) if row else None


def drop(conn: Connection, user_id: str, name: str) -> bool:
    """Drop a keypair; False when there is none."""
    return conn.execute(_DROP, {"user_id": user_id, "name": name}).first() is not None
