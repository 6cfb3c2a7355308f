"""Catalog of metadata definitions, which administrators write and everybody reads."""

from collections.abc import Callable

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import Conflict, Forbidden, NotFound
from climate.compute.models.metadef import PUBLIC, RESOURCE_TYPES, Namespace
from climate.compute.store.projects import metadefs as rows
from climate.database.connections import reading
from climate.database.violated_constraints import translated

KNOWN_TYPES = (
    "OS::Cinder::Volume",
    "OS::Glance::Image",
    "OS::Nova::Aggregate",
    "OS::Nova::Flavor",
    "OS::Nova::Server",
)
"""Resource types of this cloud; the association of a namespace may name others."""


def listed(compute: Compute, project_id: str | None) -> list[Namespace]:
    """Return the namespaces that a project sees by name; None: all."""
    with reading(compute.engine) as conn:
        return rows.listed(conn, project_id)


def resource_types(compute: Compute, project_id: str | None) -> list[str]:
    """Return the names of the resource types of this cloud, and of those that visible namespaces name."""
    named = (name for namespace in listed(compute, project_id) for name in namespace.of(RESOURCE_TYPES))
    return sorted({*KNOWN_TYPES, *named})


def get(compute: Compute, name: str, project_id: str | None) -> Namespace:
    """Return a namespace; NotFound, also for a private one of another project."""
    with reading(compute.engine) as conn:
        namespace = rows.get(conn, name)
    if namespace is None or (project_id not in (None, namespace.owner) and namespace.visibility != PUBLIC):
        raise _none(name)
    return namespace


def create(compute: Compute, new: Namespace) -> Namespace:
    """Create a namespace; Conflict if the name is taken."""
    with compute.engine.begin() as conn:
        made = rows.add(conn, new)
    if made is None:
        raise _taken(new.namespace)
    return made


def change(compute: Compute, name: str, changed: Callable[[Namespace], Namespace]) -> Namespace:
    """Store the result of `changed` for a namespace whose row is locked, and return it.

    Raises NotFound, Conflict if the new name is taken, and the errors of `changed`.
    """
    with compute.engine.begin() as conn:
        after = changed(_locked(conn, name))
        with translated({}, _taken(after.namespace)):
            return rows.save(conn, name, after, compute.now(conn))


def delete(compute: Compute, name: str) -> None:
    """Delete a namespace with its parts; NotFound, Forbidden if it is protected."""
    with compute.engine.begin() as conn:
        if _locked(conn, name).protected:
            raise Forbidden(f"Metadata definition namespace {name} is protected and cannot be deleted.")
        rows.drop(conn, name)


def _locked(conn: Connection, name: str) -> Namespace:
    namespace = rows.get(conn, name, lock=True)
    if namespace is None:
        raise _none(name)
    return namespace


def _none(name: str) -> NotFound:
    return NotFound(f"Metadata definition namespace={name[:80]} was not found.")


def _taken(name: str) -> Conflict:
    return Conflict(f"The metadata definition namespace={name[:80]} already exists.")
