"""Keypairs: public keys of users, by name."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, select, text
from sqlalchemy.dialects.postgresql import insert

from climate.compute.store.tables.servers import keypairs
from climate.database.advisory_locks import Subject

COLUMNS = (keypairs.c.id, keypairs.c.name, keypairs.c.public_key, keypairs.c.fingerprint, keypairs.c.created_at)

_OF_USER = keypairs.c.user_id == bindparam("user_id")
_OF_NAME = keypairs.c.name == bindparam("name")

_LIST = select(*COLUMNS).where(_OF_USER).order_by(keypairs.c.name)

_GET = select(*COLUMNS).where(_OF_USER, _OF_NAME)

_COUNT = select(func.count()).where(_OF_USER)

_ADD = insert(keypairs).on_conflict_do_nothing().returning(*COLUMNS)

_DROP = delete(keypairs).where(_OF_USER, _OF_NAME).returning(keypairs.c.name)

# Additions to the keys of a user are serialized here, so that the quota is exact.
_ALONE = text(Subject.KEYPAIRS.lock("user_id"))

Row = Mapping[str, Any]


def listed(conn: Connection, user_id: str, name: str | None = None) -> list[Row]:
    """Return the keypairs of a user by name, or the one of that name."""
    if name is None:
        rows = conn.execute(_LIST, {"user_id": user_id})
    else:
        rows = conn.execute(_GET, {"user_id": user_id, "name": name})
    return [dict(row) for row in rows.mappings()]


def public_key(conn: Connection, user_id: str, name: str) -> str:
    """Return the public key of a keypair of a user; empty if it does not exist."""
    row = conn.execute(_GET, {"user_id": user_id, "name": name}).mappings().one_or_none()
    return str(row["public_key"]) if row else ""


def count(conn: Connection, user_id: str) -> int:
    """Return the number of keypairs of a user; additions by others wait until the end of the transaction."""
    conn.execute(_ALONE, {"user_id": user_id})
    value: int = conn.execute(_COUNT, {"user_id": user_id}).scalar_one()
    return value


def add(conn: Connection, user_id: str, name: str, public_key: str, fingerprint: str) -> Row | None:
    """Insert a keypair; None if the name is taken."""
    given = {"user_id": user_id, "name": name, "public_key": public_key, "fingerprint": fingerprint}
    row = conn.execute(_ADD, given).mappings().one_or_none()
    return dict(row) if row else None


def drop(conn: Connection, user_id: str, name: str) -> bool:
    """Delete a keypair; False if it does not exist."""
    return conn.execute(_DROP, {"user_id": user_id, "name": name}).first() is not None
