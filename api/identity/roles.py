"""Roles and role assignments."""

from flask import Blueprint, request

from api.identity import views
from api.request_context import caller, identity
from climate.domain.policy import require
from climate.identity import admin, lookup
from climate.identity.models import ROLES
from climate.identity.store.assignments import Filter

blueprint = Blueprint("identity-roles", __name__, url_prefix="/identity/v3")

ONE = "/projects/<project_id>/users/<user_id>/roles/<role>"


@blueprint.get("/roles")
def listing() -> dict[str, object]:
    """List all roles."""
    name = request.args.get("name")
    return views.listing("roles", [views.role(role) for role in ROLES if name in (None, role)])


@blueprint.get("/roles/<role>")
def show(role: str) -> dict[str, object]:
    """Show a role; its id is its name."""
    if role not in ROLES:
        raise admin.no_such("role", role)
    return {"role": views.role(role)}


@blueprint.get("/projects/<project_id>/users/<user_id>/roles")
def roles_of(project_id: str, user_id: str) -> dict[str, object]:
    """List the roles of a user in a project."""
    require(caller(), "identity:admin")
    result = lookup.roles(identity(), user_id, project_id)
    return views.listing("roles", [views.role(role) for role in result])


@blueprint.get(ONE)
def check(project_id: str, user_id: str, role: str) -> tuple[str, int]:
    """Check whether a user has a role in a project; clients use HEAD."""
    require(caller(), "identity:admin")
    lookup.check_role(identity(), user_id, project_id, role)
    return "", 204


@blueprint.put(ONE)
def give(project_id: str, user_id: str, role: str) -> tuple[str, int]:
    """Assign a role in a project to a user."""
    require(caller(), "identity:admin")
    admin.give_role(identity(), caller(), user_id, project_id, role)
    return "", 204


@blueprint.delete(ONE)
def take(project_id: str, user_id: str, role: str) -> tuple[str, int]:
    """Remove a role in a project from a user."""
    require(caller(), "identity:admin")
    admin.take_role(identity(), caller(), user_id, project_id, role)
    return "", 204


@blueprint.get("/role_assignments")
def all_assignments() -> dict[str, object]:
    """List role assignments; other users than administrators see their own."""
    asked = request.args
    wanted = Filter(asked.get("user.id"), asked.get("scope.project.id"), asked.get("role.id"))
    if wanted.user_id != caller().user_id:
        require(caller(), "identity:admin")
    names = asked.get("include_names", "0").lower() not in ("0", "false")
    result = lookup.role_assignments(identity(), wanted)
    return views.listing("role_assignments", [views.assignment(one, names=names) for one in result])
