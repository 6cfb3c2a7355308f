"""Keypairs of users: listed, created and deleted."""

from climate.compute.context import Compute
from climate.compute.errors import Conflict, NotFound, QuotaExceeded
from climate.compute.models import keypair
from climate.compute.store.projects import keypairs as rows
from climate.compute.store.projects import quotas
from climate.compute.store.projects.keypairs import Row
from climate.database.connections import reading


def listed(compute: Compute, user_id: str) -> list[Row]:
    """Return the keypairs of a user by name."""
    with reading(compute.engine) as conn:
        return rows.listed(conn, user_id)


def get(compute: Compute, user_id: str, name: str) -> Row:
    """Return a keypair of a user. Raise NotFound if there is none."""
    with reading(compute.engine) as conn:
        result = rows.listed(conn, user_id, name)
    if not result:
        raise _none(name, user_id)
    return result[0]


def exists(compute: Compute, user_id: str, name: str) -> bool:
    """Return whether a user has a keypair of that name."""
    with reading(compute.engine) as conn:
        return bool(rows.listed(conn, user_id, name))


def public_key(compute: Compute, user_id: str, name: str) -> str:
    """Return the public key of a keypair of a user; empty if it does not exist."""
    with reading(compute.engine) as conn:
        return rows.public_key(conn, user_id, name)


def create(compute: Compute, user_id: str, project_id: str, name: str, public_key: str) -> Row:
    """Store a public key of a user under a name; the quota is that of the project.

    Raises QuotaExceeded, Conflict if the name is taken.
    """
    with compute.engine.begin() as conn:
        most = quotas.limits(conn, project_id)["key_pairs"]
        if 0 <= most <= rows.count(conn, user_id):
            raise QuotaExceeded(f"Quota exceeded, too many key pairs: a user may have {most}.")
        row = rows.add(conn, user_id, name, public_key, keypair.fingerprint(public_key))
    if row is None:
        raise Conflict(f"Key pair '{name}' already exists.")
    return row


def delete(compute: Compute, user_id: str, name: str) -> None:
    """Delete a keypair of a user. Raise NotFound if there is none."""
    with compute.engine.begin() as conn:
        if not rows.drop(conn, user_id, name):
            raise _none(name, user_id)


def _none(name: str, user_id: str) -> NotFound:
    return NotFound(f"Keypair {name[:80]} not found for user {user_id[:80]}")
