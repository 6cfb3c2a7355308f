"""Roles and role assignments."""

from flask import Blueprint, request

from api.body import read_object
from api.identity import bodies, views
from api.identity.scopes import require_reader
from api.request_context import caller, identity
from climate.domain.errors import InvalidInput
from climate.domain.policy import require
from climate.identity import lookup
from climate.identity import roles as verbs
from climate.identity.models import Role
from climate.identity.store.assignments import Filter

blueprint = Blueprint("identity-roles", __name__, url_prefix="/identity/v3")

IN_PROJECT = "/projects/<project_id>/users/<user_id>/roles"
IN_SYSTEM = "/system/users/<user_id>/roles"
NO_DOMAIN_ROLES = "domain_id must be null: roles belong to no domain"


@blueprint.get("/roles")
def listing() -> dict[str, object]:
    """List all roles."""
    name = request.args.get("name")
    return _roles(lookup.all_roles(identity()) if "domain_id" not in request.args else [], name)


@blueprint.post("/roles")
def create() -> tuple[dict[str, object], int]:
    """Create a role; it allows only what a rule of the policy file says."""
    require(caller(), "identity:admin")
    given = bodies.ROLE.read(read_object())
    if given["domain_id"] is not None:
        raise InvalidInput(NO_DOMAIN_ROLES)
    made = verbs.create(identity(), caller(), given["name"], given["description"])
    return {"role": views.role(made)}, 201


@blueprint.get("/roles/<role_id>")
def show(role_id: str) -> dict[str, object]:
    """Show a role; the id of a default role is its name."""
    return {"role": views.role(lookup.role(identity(), role_id))}


@blueprint.patch("/roles/<role_id>")
def change(role_id: str) -> dict[str, object]:
    """Update the name or description of a role that is not a default one."""
    require(caller(), "identity:admin")
    given = bodies.CHANGED_ROLE.read(read_object())
    changed = verbs.change(identity(), caller(), role_id, given.get("name"), given.get("description"))
    return {"role": views.role(changed)}


@blueprint.delete("/roles/<role_id>")
def remove(role_id: str) -> tuple[str, int]:
    """Delete a role that is not a default one, and take it from all users."""
    require(caller(), "identity:admin")
    verbs.remove(identity(), caller(), role_id)
    return "", 204


@blueprint.get(IN_PROJECT)
@blueprint.get(IN_SYSTEM)
def roles_of(user_id: str, project_id: str | None = None) -> dict[str, object]:
    """List the roles of a user in a project or in the system."""
    require_reader()
    return _roles(lookup.roles(identity(), user_id, project_id))


@blueprint.get(f"{IN_PROJECT}/<role_id>")
@blueprint.get(f"{IN_SYSTEM}/<role_id>")
def check(user_id: str, role_id: str, project_id: str | None = None) -> tuple[str, int]:
    """Check whether a user has a role in a project or in the system; clients use HEAD."""
    require_reader()
    lookup.check_role(identity(), user_id, project_id, role_id)
    return "", 204


@blueprint.put(f"{IN_PROJECT}/<role_id>")
@blueprint.put(f"{IN_SYSTEM}/<role_id>")
def give(user_id: str, role_id: str, project_id: str | None = None) -> tuple[str, int]:
    """Assign a role in a project or in the system to a user."""
    require(caller(), "identity:admin")
    verbs.give(identity(), caller(), user_id, project_id, role_id)
    return "", 204


@blueprint.delete(f"{IN_PROJECT}/<role_id>")
@blueprint.delete(f"{IN_SYSTEM}/<role_id>")
def take(user_id: str, role_id: str, project_id: str | None = None) -> tuple[str, int]:
    """Remove a role in a project or in the system from a user."""
    require(caller(), "identity:admin")
    verbs.take(identity(), caller(), user_id, project_id, role_id)
    return "", 204


@blueprint.get("/role_assignments")
def all_assignments() -> dict[str, object]:
    """List role assignments; other users than administrators see their own."""
    asked = request.args
    wanted = Filter(asked.get("user.id"), asked.get("scope.project.id"), asked.get("role.id"), "scope.system" in asked)
    if wanted.user_id != caller().user_id:
        require_reader()
    names = asked.get("include_names", "0").lower() not in ("0", "false")
    result = lookup.role_assignments(identity(), wanted)
    return views.listing("role_assignments", [views.assignment(one, names=names) for one in result])


def _roles(found: list[Role], name: str | None = None) -> dict[str, object]:
    return views.listing("roles", [views.role(role) for role in found if name in (None, role.name)])
