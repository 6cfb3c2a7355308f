"""Projects."""

from flask import Blueprint, request

from api.body import read_object
from api.identity import bodies, filters, read_access, views
from api.request_context import caller, identity
from climate.domain.errors import Forbidden
from climate.domain.policy import require
from climate.identity import projects_and_users, read_operations
from climate.identity.projects_and_users import NewProject

blueprint = Blueprint("identity-projects", __name__, url_prefix="/identity/v3")


@blueprint.get("/projects")
def listing() -> dict[str, object]:
    """List all projects (administrator); users list their own by `/auth/projects`."""
    read_access.require_reader()
    projects = read_operations.projects(identity(), request.args.get("name"))
    return views.listing(
        "projects", [views.project(project) for project in projects if filters.fits_project(request.args, project)]
    )


@blueprint.post("/projects")
def create() -> tuple[dict[str, object], int]:
    """Create a project."""
    require(caller(), "identity:admin")
    made = projects_and_users.create_project(identity(), caller(), NewProject(**bodies.PROJECT.read(read_object())))
    return {"project": views.project(made)}, 201


@blueprint.get("/projects/<project_id>")
def show(project_id: str) -> dict[str, object]:
    """Show a project; other users than administrators see only their own."""
    return {"project": views.project(read_operations.project(identity(), project_id, read_access.own_user_id()))}


@blueprint.patch("/projects/<project_id>")
def change(project_id: str) -> dict[str, object]:
    """Update the name or description of a project, or disable it, so that it gets no more tokens."""
    require(caller(), "identity:admin")
    changed = projects_and_users.change_project(
        identity(), caller(), project_id, bodies.CHANGED_PROJECT.read(read_object())
    )
    return {"project": views.project(changed)}


@blueprint.delete("/projects/<project_id>")
def remove(project_id: str) -> tuple[str, int]:
    """Delete a project that has no resources, with its roles, application credentials, quotas and limits."""
    require(caller(), "identity:admin")
    if project_id == caller().project_id:
        raise Forbidden("You cannot delete the project of your own token")
    projects_and_users.remove_project(identity(), caller(), project_id)
    return "", 204
