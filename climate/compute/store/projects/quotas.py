"""What a project may have."""

import json
from collections.abc import Mapping

from sqlalchemy import Connection, text

_ENSURE = text("INSERT INTO compute_quotas (project_id) VALUES (:project_id) ON CONFLICT DO NOTHING")

_COLUMNS = "instances, cores, ram_mb, server_groups, server_group_members, key_pairs, fixed_ips, floating_ips"

_LOCKED = text(f"SELECT {_COLUMNS} FROM compute_quotas WHERE project_id = :project_id FOR NO KEY UPDATE")

_LIMITS = text(f"SELECT {_COLUMNS} FROM compute_quotas WHERE project_id = :project_id")

# Of columns that are not given the row keeps what it has.
_SET = text("""
    UPDATE compute_quotas q
    SET instances = coalesce(r.instances, q.instances), cores = coalesce(r.cores, q.cores),
        ram_mb = coalesce(r.ram_mb, q.ram_mb), server_groups = coalesce(r.server_groups, q.server_groups),
        server_group_members = coalesce(r.server_group_members, q.server_group_members),
        key_pairs = coalesce(r.key_pairs, q.key_pairs), fixed_ips = coalesce(r.fixed_ips, q.fixed_ips),
        floating_ips = coalesce(r.floating_ips, q.floating_ips)
    FROM jsonb_to_record(CAST(:limits AS jsonb)) AS r(instances int, cores int, ram_mb int, server_groups int,
                                                      server_group_members int, key_pairs int,
                                                      fixed_ips int, floating_ips int)
    WHERE q.project_id = :project_id
""")

# The row stays: whoever is about to lock it finds it.
_FORGET = text(f"""
    UPDATE compute_quotas SET {", ".join(f"{column} = DEFAULT" for column in _COLUMNS.split(", "))}
    WHERE project_id = :project_id
""")

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
"""The limits of a project that has no others."""


def lock_limits(conn: Connection, project_id: str) -> Mapping[str, int]:
    """The limits of a project, locked: one request of a project at a time counts against them."""
    conn.execute(_ENSURE, {"project_id": project_id})
    return dict(conn.execute(_LOCKED, {"project_id": project_id}).mappings().one())


def limits(conn: Connection, project_id: str) -> Mapping[str, int]:
    """The limits of a project."""
    row = conn.execute(_LIMITS, {"project_id": project_id}).mappings().one_or_none()
    return dict(row) if row else DEFAULT_LIMITS


def set_limits(conn: Connection, project_id: str, changes: Mapping[str, int]) -> None:
    """Change limits of a project, which are locked."""
    conn.execute(_SET, {"project_id": project_id, "limits": json.dumps(dict(changes))})


def forget_limits(conn: Connection, project_id: str) -> None:
    """Give a project the limits of those that have no others."""
    conn.execute(_FORGET, {"project_id": project_id})
