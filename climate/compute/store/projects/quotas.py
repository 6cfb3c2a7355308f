"""Quota limits of projects."""

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert

from climate.compute.store.tables.servers import quotas

DEFAULT_LIMITS: Mapping[str, int] = {
    "instances": 50,
    "cores": 200,
    "ram_mb": 512000,
    "server_groups": 10,
    "server_group_members": 10,
    "key_pairs": 100,
    "fixed_ips": -1,
    "floating_ips": 10,
}
"""The default limits of projects."""

_OF_PROJECT = quotas.c.project_id == bindparam("project")

_ENSURE = insert(quotas).on_conflict_do_nothing()

_LIMITS = select(*(quotas.c[name] for name in DEFAULT_LIMITS)).where(_OF_PROJECT)

_LOCKED = _LIMITS.with_for_update(key_share=True)

# Sets the given columns.
_SET = update(quotas).where(_OF_PROJECT)

# The row stays, so that a transaction that waits for its lock finds it.
_FORGET = update(quotas).where(_OF_PROJECT).values(dict.fromkeys(DEFAULT_LIMITS, literal_column("DEFAULT")))


def lock_limits(conn: Connection, project_id: str) -> Mapping[str, int]:
    """Return the limits of a project, locked: its requests are counted one at a time."""
    conn.execute(_ENSURE, {"project_id": project_id})
    return dict(conn.execute(_LOCKED, {"project": project_id}).mappings().one())


def limits(conn: Connection, project_id: str) -> Mapping[str, int]:
    """Return the limits of a project."""
    row = conn.execute(_LIMITS, {"project": project_id}).mappings().one_or_none()
    return dict(row) if row else DEFAULT_LIMITS


def set_limits(conn: Connection, project_id: str, changes: Mapping[str, int]) -> None:
    """Update limits of a project, which are locked."""
    if changes:
        conn.execute(_SET, {"project": project_id, **changes})


def forget_limits(conn: Connection, project_id: str) -> None:
    """Reset a project to the default limits."""
    conn.execute(_FORGET, {"project": project_id})
