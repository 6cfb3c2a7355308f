"""Quota limits of projects, and of the quota class whose limits are the defaults of projects."""

from collections.abc import Mapping

from sqlalchemy import Connection, Integer, bindparam, cast, func, null, select, update
from sqlalchemy.dialects.postgresql import insert

from climate.compute.store.tables.servers import quota_classes, quotas

BUILT_IN: Mapping[str, int] = {
    "instances": 50,
    "cores": 200,
    "ram_mb": 512000,
    "server_groups": 10,
    "server_group_members": 10,
    "key_pairs": 100,
    "fixed_ips": -1,
    "floating_ips": 10,
    "ports": 500,
    "networks": 10,
}
"""The limits of projects for which neither the project nor the default class has others."""

DEFAULT_CLASS = "default"
"""The quota class whose limits are those of projects without limits of their own."""

_OF_PROJECT = quotas.c.project_id == bindparam("project")

_ENSURE = insert(quotas).on_conflict_do_nothing()

_class = select(quota_classes.c.limits).where(quota_classes.c.name == DEFAULT_CLASS).scalar_subquery()


def _limit(name: str) -> object:
    return cast(_class[name].astext, Integer)


_LIMITS = select(*(func.coalesce(quotas.c[name], _limit(name), limit).label(name) for name, limit in BUILT_IN.items()))

_OF = _LIMITS.where(_OF_PROJECT)
_LOCKED = _OF.with_for_update(key_share=True, of=quotas)
_DEFAULTS = select(*(func.coalesce(_limit(name), limit).label(name) for name, limit in BUILT_IN.items()))

# Sets the given columns.
_SET = update(quotas).where(_OF_PROJECT)

# The row stays, so that a transaction that waits for its lock finds it.
_FORGET = update(quotas).where(_OF_PROJECT).values(dict.fromkeys(BUILT_IN, null()))

_CLASS = select(quota_classes.c.limits).where(quota_classes.c.name == bindparam("class"))

_NEW_CLASS = insert(quota_classes)

_SET_CLASS = _NEW_CLASS.on_conflict_do_update(
    index_elements=["name"], set_={"limits": quota_classes.c.limits.op("||")(_NEW_CLASS.excluded.limits)}
).returning(quota_classes.c.limits)


def lock_limits(conn: Connection, project_id: str) -> Mapping[str, int]:
    """Return the limits of a project, locked: its requests are counted one at a time."""
    conn.execute(_ENSURE, {"project_id": project_id})
    return dict(conn.execute(_LOCKED, {"project": project_id}).mappings().one())


def limits(conn: Connection, project_id: str) -> Mapping[str, int]:
    """Return the limits of a project."""
    row = conn.execute(_OF, {"project": project_id}).mappings().one_or_none()
    return dict(row) if row else defaults(conn)


def defaults(conn: Connection) -> Mapping[str, int]:
    """Return the limits of projects without limits of their own."""
    return dict(conn.execute(_DEFAULTS).mappings().one())


def set_limits(conn: Connection, project_id: str, changes: Mapping[str, int | None]) -> None:
    """Update limits of a project, which are locked; None: the default."""
    if changes:
        conn.execute(_SET, {"project": project_id, **changes})


def forget_limits(conn: Connection, project_id: str) -> None:
    """Reset a project to the default limits."""
    conn.execute(_FORGET, {"project": project_id})


def class_limits(conn: Connection, name: str) -> Mapping[str, int]:
    """Return the limits that were set for a quota class."""
    return dict(conn.execute(_CLASS, {"class": name}).scalar_one_or_none() or {})


def set_class_limits(conn: Connection, name: str, changes: Mapping[str, int]) -> Mapping[str, int]:
    """Update limits of a quota class; return all that were set."""
    return dict(conn.execute(_SET_CLASS, {"name": name, "limits": dict(changes)}).scalar_one())
