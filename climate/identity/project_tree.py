"""Projects below others: rules that hold between a project and the projects above and below it.

A change of a project locks it, and then waits for changes of the project above it.
"""

from dataclasses import replace

from sqlalchemy import Connection

from climate.domain.errors import Forbidden, InvalidInput, NotFound
from climate.identity.models import NameOrId, Project
from climate.identity.store import projects

DEEPEST = 5
"""Maximum number of levels, as in Keystone: the domain is the first."""


def placed(conn: Connection, project: Project) -> Project:
    """Return a new project in the domain of the project above it.

    Raise NotFound if that project is unknown, Forbidden at the deepest level, InvalidInput for another domain.
    """
    level = 2
    above = project.parent_id
    while above is not None:
        parent = projects.find(conn, NameOrId(id=above), share=True)
        if parent is None:
            raise NotFound(f"Could not find project: {above[:80]}.")
        if above == project.parent_id:
            _check_enabled(project, parent)
            if project.domain_id not in (None, parent.domain_id):
                raise InvalidInput(f"domain_id must be that of project {parent.name}, which is above the new one")
            project = replace(project, domain_id=parent.domain_id)
        above = parent.parent_id
        level += 1
    if level > DEEPEST:
        raise Forbidden(f"A project can be at most {DEEPEST - 2} projects deep below another")
    return project


def check_change(conn: Connection, before: Project, enabled: bool) -> None:
    """Check a new state. Raise Forbidden for an enabled project below or above a disabled one."""
    if before.enabled and not enabled and projects.has_children(conn, before.id, enabled=True):
        raise Forbidden(f"Project {before.name} has enabled projects below it; disable them first")
    if enabled and not before.enabled and before.parent_id is not None:
        parent = projects.find(conn, NameOrId(id=before.parent_id), share=True)
        if parent is not None:
            _check_enabled(before, parent, enabled=True)


def check_removal(conn: Connection, project: Project) -> None:
    """Raise Forbidden if there are projects below the one to delete."""
    if projects.has_children(conn, project.id):
        raise Forbidden(f"Project {project.name} has projects below it; delete them first")


def _check_enabled(project: Project, parent: Project, *, enabled: bool | None = None) -> None:
    wanted = project.enabled if enabled is None else enabled
    if wanted and not parent.enabled:
        raise Forbidden(f"Project {parent.name}, above {project.name}, is disabled; enable it first")
