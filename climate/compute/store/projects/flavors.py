"""Flavors."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, text

from climate.compute.models.flavor import Flavor

_COLUMNS = "id, name, vcpus, ram_mb, disk_gb, ephemeral_gb, swap_mb, is_public, projects, extra_specs, description"

_INSERT = text(f"""
    INSERT INTO compute_flavors ({_COLUMNS})
    VALUES (:id, :name, :vcpus, :ram_mb, :disk_gb, :ephemeral_gb, :swap_mb, :is_public, CAST(:projects AS text[]),
            CAST(:extra_specs AS jsonb), :description)
    ON CONFLICT DO NOTHING RETURNING id
""")

_WRITE = text(f"""
    INSERT INTO compute_flavors ({_COLUMNS})
    SELECT :id, :name, :vcpus, :ram_mb, :disk_gb, :ephemeral_gb, :swap_mb, :is_public, CAST(:projects AS text[]),
           CAST(:extra_specs AS jsonb), :description
    WHERE NOT EXISTS (SELECT FROM compute_flavors WHERE name = :name AND id <> :id)
    ON CONFLICT (id) DO UPDATE
    SET name = excluded.name, vcpus = excluded.vcpus, ram_mb = excluded.ram_mb, disk_gb = excluded.disk_gb,
        ephemeral_gb = excluded.ephemeral_gb, swap_mb = excluded.swap_mb, is_public = excluded.is_public,
        projects = excluded.projects, extra_specs = excluded.extra_specs
    RETURNING id
""")

_GET = text(f"SELECT {_COLUMNS} FROM compute_flavors WHERE id = :id")

_FIND = text(f"SELECT {_COLUMNS} FROM compute_flavors WHERE id = :named OR name = :named ORDER BY id = :named DESC")

_LIST = text(f"SELECT {_COLUMNS} FROM compute_flavors ORDER BY id")

_DELETE = text("DELETE FROM compute_flavors WHERE id = :id RETURNING id")

_ADD_SPECS = text("""
    UPDATE compute_flavors SET extra_specs = extra_specs || CAST(:specs AS jsonb) WHERE id = :id
    RETURNING extra_specs
""")

_DROP_SPEC = text("""
    UPDATE compute_flavors SET extra_specs = extra_specs - :key WHERE id = :id AND extra_specs ? :key RETURNING id
""")

_DESCRIBE = text("UPDATE compute_flavors SET description = :description WHERE id = :id RETURNING id")

# Two at a time keep each other's: the second looks at the row again when the first has committed.
_ADMIT = text("""
    UPDATE compute_flavors SET projects = array_append(projects, CAST(:project AS text))
    WHERE id = :id AND NOT is_public AND NOT CAST(:project AS text) = ANY(projects) RETURNING projects
""")

_EXPEL = text("""
    UPDATE compute_flavors SET projects = array_remove(projects, CAST(:project AS text))
    WHERE id = :id AND CAST(:project AS text) = ANY(projects) RETURNING projects
""")


def insert(conn: Connection, flavor: Flavor) -> bool:
    """Write a flavor down; False when its id or name is taken."""
    return conn.execute(_INSERT, _fields(flavor)).first() is not None


def write(conn: Connection, flavor: Flavor) -> bool:
    """Write a flavor down, in the place of one of its id; False when another one has its name."""
    return conn.execute(_WRITE, _fields(flavor)).first() is not None


def get(conn: Connection, flavor_id: str) -> Flavor | None:
    """The flavor, or None."""
    row = conn.execute(_GET, {"id": flavor_id}).mappings().one_or_none()
    return _flavor(dict(row)) if row else None


def find(conn: Connection, named: str) -> Flavor | None:
    """The flavor of that id, else the one of that name, or None."""
    row = conn.execute(_FIND, {"named": named}).mappings().first()
    return _flavor(dict(row)) if row else None


def listed(conn: Connection) -> list[Flavor]:
    """All flavors."""
    return [_flavor(dict(row)) for row in conn.execute(_LIST).mappings()]


def delete(conn: Connection, flavor_id: str) -> bool:
    """Drop a flavor; servers keep the size they have.  False when there is none."""
    return conn.execute(_DELETE, {"id": flavor_id}).first() is not None


def add_extra_specs(conn: Connection, flavor_id: str, specs: Mapping[str, str]) -> dict[str, str] | None:
    """Add to the extra specs of a flavor, or change them; all of them then, None when there is no such flavor."""
    found = conn.execute(_ADD_SPECS, {"id": flavor_id, "specs": json.dumps(dict(specs))}).scalar()
    return None if found is None else dict(found)


def drop_extra_spec(conn: Connection, flavor_id: str, key: str) -> bool:
    """Take one extra spec away; False when there is none of that key."""
    return conn.execute(_DROP_SPEC, {"id": flavor_id, "key": key}).first() is not None


def describe(conn: Connection, flavor_id: str, description: str | None) -> bool:
    """Give a flavor another description; False when there is no such flavor."""
    return conn.execute(_DESCRIBE, {"id": flavor_id, "description": description}).first() is not None


def admit(conn: Connection, flavor_id: str, project_id: str) -> list[str] | None:
    """Let a project use a flavor that is not public; all that may then, None when it might already."""
    return conn.execute(_ADMIT, {"id": flavor_id, "project": project_id}).scalar()


def expel(conn: Connection, flavor_id: str, project_id: str) -> list[str] | None:
    """Take a flavor away from a project; all that may use it then, None when the project might not."""
    return conn.execute(_EXPEL, {"id": flavor_id, "project": project_id}).scalar()


def _fields(flavor: Flavor) -> dict[str, Any]:
    return asdict(flavor) | {"extra_specs": json.dumps(dict(flavor.extra_specs)), "projects": list(flavor.projects)}


def _flavor(row: dict[str, Any]) -> Flavor:
    return Flavor(**{**row, "projects": tuple(row["projects"])})
