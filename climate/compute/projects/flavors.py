"""Flavors, as projects use them."""

from climate.compute.context import Compute
from climate.compute.models.flavor import Flavor
from climate.compute.store.projects import flavors as rows
from climate.connections import reading


def find(compute: Compute, named: str, project_id: str) -> Flavor | None:
    """The flavor of that id, else of that name, if the project may use it."""
    with reading(compute.engine) as conn:
        found = rows.find(conn, named)
    return found if found and found.usable_by(project_id) else None
