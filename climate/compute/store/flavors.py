"""Flavors."""

import json
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, text

from climate.compute.flavor import Flavor

_COLUMNS = "id, name, vcpus, ram_mb, disk_gb, ephemeral_gb, swap_mb, is_public, projects, extra_specs, description"

_INSERT = text(f"""
    INSERT INTO compute_flavors ({_COLUMNS})
    VALUES (:id, :name, :vcpus, :ram_mb, :disk_gb, :ephemeral_gb, :swap_mb, :is_public, CAST(:projects AS text[]),
            CAST(:extra_specs AS jsonb), :description)
    ON CONFLICT DO NOTHING RETURNING id
""")

_GET = text(f"SELECT {_COLUMNS} FROM compute_flavors WHERE id = :id")

_LIST = text(f"SELECT {_COLUMNS} FROM compute_flavors ORDER BY id")

_DELETE = text("DELETE FROM compute_flavors WHERE id = :id RETURNING id")

_SPECS = text("UPDATE compute_flavors SET extra_specs = CAST(:specs AS jsonb) WHERE id = :id")


def insert(conn: Connection, flavor: Flavor) -> bool:
    """Write a flavor down; False when its id or name is taken."""
    given = asdict(flavor) | {"extra_specs": json.dumps(dict(flavor.extra_specs)), "projects": list(flavor.projects)}
    return conn.execute(_INSERT, given).first() is not None


def get(conn: Connection, flavor_id: str) -> Flavor | None:
    """The flavor, or None."""
    row = conn.execute(_GET, {"id": flavor_id}).mappings().one_or_none()
    return _flavor(dict(row)) if row else None


def listed(conn: Connection) -> list[Flavor]:
    """All flavors."""
    return [_flavor(dict(row)) for row in conn.execute(_LIST).mappings()]


def delete(conn: Connection, flavor_id: str) -> bool:
    """Drop a flavor; servers keep the size they have.  False when there is none."""
    return conn.execute(_DELETE, {"id": flavor_id}).first() is not None


def set_extra_specs(conn: Connection, flavor_id: str, specs: dict[str, str]) -> None:
    """Replace the extra specs of a flavor."""
    conn.execute(_SPECS, {"id": flavor_id, "specs": json.dumps(specs)})


def _flavor(row: dict[str, Any]) -> Flavor:
    return Flavor(**{**row, "projects": tuple(row["projects"])})
