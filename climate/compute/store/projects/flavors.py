"""Flavors."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Text, any_, bindparam, cast, func, or_, select, text, update
from sqlalchemy import delete as delete_from
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as insert_into

from climate.compute.models.flavor import Flavor
from climate.compute.store.tables.servers import flavors

COLUMNS = tuple(
    flavors.c[name]
    for name in (
        "id",
        "name",
        "vcpus",
        "ram_mb",
        "disk_gb",
        "ephemeral_gb",
        "swap_mb",
        "is_public",
        "projects",
        "extra_specs",
        "description",
    )
)

# Statements are constants: building one for each call costs twice the processor time.
_OF_ID = flavors.c.id == bindparam("flavor_id")

_PROJECT, _KEY = cast(bindparam("project"), Text), cast(bindparam("key"), Text)

_INSERT = insert_into(flavors).on_conflict_do_nothing().returning(flavors.c.id)

# The id may exist, the name must not: two conflicts, of which ON CONFLICT handles one.
_WRITE = text("""
    INSERT INTO compute_flavors (id, name, vcpus, ram_mb, disk_gb, ephemeral_gb, swap_mb, is_public, projects,
                                 extra_specs, description)
    SELECT :id, :name, :vcpus, :ram_mb, :disk_gb, :ephemeral_gb, :swap_mb, :is_public, CAST(:projects AS text[]),
           :extra_specs, :description
    WHERE NOT EXISTS (SELECT FROM compute_flavors WHERE name = :name AND id <> :id)
    ON CONFLICT (id) DO UPDATE
    SET name = excluded.name, vcpus = excluded.vcpus, ram_mb = excluded.ram_mb, disk_gb = excluded.disk_gb,
        ephemeral_gb = excluded.ephemeral_gb, swap_mb = excluded.swap_mb, is_public = excluded.is_public,
        projects = excluded.projects, extra_specs = excluded.extra_specs
    RETURNING id
""").bindparams(bindparam("extra_specs", type_=JSONB))

_GET = select(*COLUMNS).where(_OF_ID)

_GET_LOCKED = _GET.with_for_update(key_share=True)

_IS_ID = flavors.c.id == bindparam("named")
_FIND = select(*COLUMNS).where(or_(_IS_ID, flavors.c.name == bindparam("named"))).order_by(_IS_ID.desc())

_LIST = select(*COLUMNS).order_by(flavors.c.id)

_DELETE = delete_from(flavors).where(_OF_ID).returning(flavors.c.id)

_ADD_SPECS = (
    update(flavors)
    .where(_OF_ID)
    .values(extra_specs=flavors.c.extra_specs.concat(bindparam("specs", type_=JSONB)))
    .returning(flavors.c.extra_specs)
)

_DROP_SPEC = (
    update(flavors)
    .where(_OF_ID, flavors.c.extra_specs.op("?")(_KEY))
    .values(extra_specs=flavors.c.extra_specs.op("-")(_KEY))
    .returning(flavors.c.id)
)

_DESCRIBE = update(flavors).where(_OF_ID).values(description=bindparam("words", type_=Text)).returning(flavors.c.id)

# Concurrent changes are both kept: the second reads the row again when the first has committed.
_ADMIT = (
    update(flavors)
    .where(_OF_ID, ~flavors.c.is_public, ~(any_(flavors.c.projects) == _PROJECT))
    .values(projects=func.array_append(flavors.c.projects, _PROJECT))
    .returning(flavors.c.projects)
)

_EXPEL = (
    update(flavors)
    .where(_OF_ID, any_(flavors.c.projects) == _PROJECT)
    .values(projects=func.array_remove(flavors.c.projects, _PROJECT))
    .returning(flavors.c.projects)
)


def insert(conn: Connection, flavor: Flavor) -> bool:
    """Insert a flavor; False if its id or name is taken."""
    return conn.execute(_INSERT, _fields(flavor)).first() is not None


def write(conn: Connection, flavor: Flavor) -> bool:
    """Insert or replace a flavor by its id; False if another one has its name."""
    return conn.execute(_WRITE, _fields(flavor)).first() is not None


def get(conn: Connection, flavor_id: str, *, lock: bool = False) -> Flavor | None:
    """Return the flavor, with its row locked if requested, or None."""
    row = conn.execute(_GET_LOCKED if lock else _GET, {"flavor_id": flavor_id}).mappings().one_or_none()
    return _flavor(dict(row)) if row else None


def find(conn: Connection, named: str) -> Flavor | None:
    """Return the flavor of that id, else the one of that name, or None."""
    row = conn.execute(_FIND, {"named": named}).mappings().first()
    return _flavor(dict(row)) if row else None


def listed(conn: Connection) -> list[Flavor]:
    """Return all flavors."""
    return [_flavor(dict(row)) for row in conn.execute(_LIST).mappings()]


def delete(conn: Connection, flavor_id: str) -> bool:
    """Delete a flavor; servers keep their size. False if it does not exist."""
    return conn.execute(_DELETE, {"flavor_id": flavor_id}).first() is not None


def add_extra_specs(conn: Connection, flavor_id: str, specs: Mapping[str, str]) -> dict[str, str] | None:
    """Add or update extra specs of a flavor; return all, None if there is no such flavor."""
    value = conn.execute(_ADD_SPECS, {"flavor_id": flavor_id, "specs": dict(specs)}).scalar()
    return None if value is None else dict(value)


def drop_extra_spec(conn: Connection, flavor_id: str, key: str) -> bool:
    """Delete one extra spec; False if there is none of that key."""
    return conn.execute(_DROP_SPEC, {"flavor_id": flavor_id, "key": key}).first() is not None


def describe(conn: Connection, flavor_id: str, description: str | None) -> bool:
    """Update the description of a flavor; False if it does not exist."""
    return conn.execute(_DESCRIBE, {"flavor_id": flavor_id, "words": description}).first() is not None


def add_project(conn: Connection, flavor_id: str, project_id: str) -> list[str] | None:
    """Let a project use a flavor that is not public; return all that may, None if it already might."""
    return conn.execute(_ADMIT, {"flavor_id": flavor_id, "project": project_id}).scalar()


def remove_project(conn: Connection, flavor_id: str, project_id: str) -> list[str] | None:
    """Remove a project's access to a flavor; return all that still have it, None if the project had none."""
    return conn.execute(_EXPEL, {"flavor_id": flavor_id, "project": project_id}).scalar()


def _fields(flavor: Flavor) -> dict[str, object]:
    return asdict(flavor) | {"extra_specs": dict(flavor.extra_specs), "projects": list(flavor.projects)}


def _flavor(row: dict[str, Any]) -> Flavor:
    return Flavor(**{**row, "projects": tuple(row["projects"])})
