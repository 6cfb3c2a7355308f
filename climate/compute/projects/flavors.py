"""Flavors: read by projects, created, described, deleted, and shared with projects."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict

from sqlalchemy import Connection

from climate.compute.audit_trail import FLAVOR, Change
from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, NotFound
from climate.compute.models.flavor import Flavor
from climate.compute.reservations import shared_capacity
from climate.compute.store.projects import flavors as rows
from climate.compute.zones.builds import request_spec
from climate.database.connections import reading


def find(compute: Compute, named: str, project_id: str) -> Flavor | None:
    """Return the flavor of that id, else of that name, if the project may use it."""
    with reading(compute.engine) as conn:
        result = rows.find(conn, named)
    return result if result and result.usable_by(project_id) else None


def listed(compute: Compute, project_id: str | None) -> list[Flavor]:
    """Return the flavors that a project may use, by id; None: all."""
    with reading(compute.engine) as conn:
        result = rows.listed(conn)
    return [flavor for flavor in result if project_id is None or flavor.usable_by(project_id)]


def get(compute: Compute, flavor_id: str, project_id: str | None) -> Flavor:
    """Return a flavor by its id; NotFound, also if the project may not use it. None: any project's."""
    with reading(compute.engine) as conn:
        result = rows.get(conn, flavor_id)
    if result is None or not (project_id is None or result.usable_by(project_id)):
        raise _none(flavor_id)
    return result


def requested(compute: Compute, flavor_id: str, project_id: str | None) -> Flavor:
    """Return the flavor of a request for servers. None: of an administrator.

    Raises BadRequest for an unknown flavor, and for one that the project may not use: NotFound would send the request
    for a server to child zones.
    """
    with reading(compute.engine) as conn:
        result = rows.get(conn, flavor_id)
    if result is None or not (project_id is None or result.usable_by(project_id)):
        raise BadRequest(f"Flavor {flavor_id[:80]} could not be found.")
    return result


def named(compute: Compute, name: str, project_id: str, *, admin: bool) -> Flavor:
    """Return the flavor by the name that a parent zone gives; BadRequest if the project may use none of that name."""
    with reading(compute.engine) as conn:
        return request_spec.flavor_named(conn, name, project_id, admin=admin)


def create(compute: Compute, flavor: Flavor) -> None:
    """Create a flavor; Conflict if its id or name is taken."""
    with compute.engine.begin() as conn:
        if not rows.insert(conn, flavor):
            raise Conflict(f"Flavor with name {flavor.name} or ID {flavor.id} already exists.")
        compute.tell_change(conn, Change(FLAVOR, flavor.id, flavor.name, None, _fields(flavor)))


def describe(compute: Compute, flavor_id: str, description: str | None) -> None:
    """Update the description of a flavor; NotFound, Conflict for the flavor of a reservation."""
    with _changing(compute, flavor_id) as conn:
        if not rows.describe(conn, flavor_id, description):
            raise _none(flavor_id)


def delete(compute: Compute, flavor_id: str) -> None:
    """Delete a flavor; servers keep their size. NotFound, Conflict for the flavor of a reservation."""
    with _changing(compute, flavor_id) as conn:
        if not rows.delete(conn, flavor_id):
            raise _none(flavor_id)


def add_extra_specs(compute: Compute, flavor_id: str, specs: Mapping[str, str]) -> dict[str, str]:
    """Add or update extra specs of a flavor; return all. NotFound, Conflict for the flavor of a reservation."""
    with _changing(compute, flavor_id) as conn:
        result = rows.add_extra_specs(conn, flavor_id, specs)
    if result is None:
        raise _none(flavor_id)
    return result


def delete_extra_spec(compute: Compute, flavor_id: str, key: str) -> None:
    """Delete an extra spec of a flavor; NotFound, Conflict for the flavor of a reservation."""
    with _changing(compute, flavor_id) as conn:
        if not rows.drop_extra_spec(conn, flavor_id, key):
            raise no_extra_spec(flavor_id, key)


def add_project(compute: Compute, flavor_id: str, project_id: str) -> list[str]:
    """Let a project use a flavor that is not public; return the projects that may.

    Raises Conflict if the project may already, and for the flavor of a reservation.
    """
    with _changing(compute, flavor_id) as conn:
        result = rows.add_project(conn, flavor_id, project_id)
    if result is None:
        raise Conflict(f"Project {project_id} may use flavor {flavor_id} already.")
    return result


def remove_project(compute: Compute, flavor_id: str, project_id: str) -> list[str]:
    """Remove a project's access to a flavor; return the projects that still have it.

    Raises NotFound if the project has no access, Conflict for the flavor of a reservation.
    """
    with _changing(compute, flavor_id) as conn:
        result = rows.remove_project(conn, flavor_id, project_id)
    if result is None:
        raise NotFound(f"Project {project_id} has no access to flavor {flavor_id}.")
    return result


@contextmanager
def _changing(compute: Compute, flavor_id: str) -> Iterator[Connection]:
    """Open a transaction that changes a flavor which belongs to no lease, and record the change."""
    with compute.engine.begin() as conn:
        shared_capacity.check_own(conn, flavor_id)
        before = rows.get(conn, flavor_id, lock=True)
        yield conn
        after = rows.get(conn, flavor_id)
        if before is not None:
            change = Change(FLAVOR, flavor_id, before.name, _fields(before), _fields(after) if after else None)
            compute.tell_change(conn, change)


def _fields(flavor: Flavor) -> dict[str, object]:
    known = {name: value for name, value in asdict(flavor).items() if name != "id"}
    return {**known, "extra_specs": dict(flavor.extra_specs), "projects": list(flavor.projects)}


def no_extra_spec(flavor_id: str, key: str) -> NotFound:
    """Return the error for a flavor without an extra spec of that key."""
    return NotFound(f"Flavor {flavor_id[:80]} has no extra specs with key {key[:80]}.")


def _none(flavor_id: str) -> NotFound:
    return NotFound(f"Flavor {flavor_id[:80]} could not be found.")
