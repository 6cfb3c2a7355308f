"""Users."""

from flask import Blueprint, request

from api.body import read_object
from api.identity import bodies, filters, views
from api.identity.read_access import require_reader
from api.request_context import caller, identity
from climate.domain.errors import Forbidden
from climate.domain.policy import require
from climate.identity import projects_and_users, read_operations
from climate.identity.authentication import sign_in
from climate.identity.models import NameOrId
from climate.identity.projects_and_users import NewUser

blueprint = Blueprint("identity-users", __name__, url_prefix="/identity/v3/users")


@blueprint.get("")
def listing() -> dict[str, object]:
    """All users."""
    require_reader()
    users = read_operations.users(identity(), request.args.get("name"))
    return views.listing("users", [views.user(user) for user in users if filters.fits(request.args, user)])


@blueprint.post("")
def create() -> tuple[dict[str, object], int]:
    """Create a user; without a password it cannot sign in."""
    require(caller(), "identity:admin")
    new = NewUser(**bodies.USER.read(read_object()))
    return {"user": views.user(projects_and_users.create_user(identity(), caller(), new))}, 201


@blueprint.get("/<user_id>")
def show(user_id: str) -> dict[str, object]:
    """Show a user; users may see themselves."""
    _self_or_admin(user_id)
    return {"user": views.user(read_operations.user(identity(), user_id))}


@blueprint.patch("/<user_id>")
def change(user_id: str) -> dict[str, object]:
    """Update the name, password or description of a user, or disable it, so that it gets no more tokens."""
    require(caller(), "identity:admin")
    changed = projects_and_users.change_user(identity(), caller(), user_id, bodies.CHANGED_USER.read(read_object()))
    return {"user": views.user(changed)}


@blueprint.delete("/<user_id>")
def remove(user_id: str) -> tuple[str, int]:
    """Delete a user."""
    require(caller(), "identity:admin")
    if user_id == caller().user_id:
        raise Forbidden("You cannot delete yourself")
    projects_and_users.remove_user(identity(), caller(), user_id)
    return "", 204


@blueprint.post("/<user_id>/password")
def change_password(user_id: str) -> tuple[str, int]:
    """Change a user's password; the request must have the current one."""
    if user_id != caller().user_id:
        require(caller(), "identity:admin")
    given = bodies.CHANGED_PASSWORD.read(read_object())
    address = request.remote_addr or ""
    sign_in.by_password(identity(), NameOrId(id=user_id), given["original_password"], sign_in.UNSCOPED, address)
    projects_and_users.change_user(identity(), caller(), user_id, {"password": given["password"]})
    return "", 204


@blueprint.get("/<user_id>/projects")
def own_projects(user_id: str) -> dict[str, object]:
    """List the projects in which a user has a role."""
    _self_or_admin(user_id)
    projects = read_operations.projects(identity(), user_id=user_id)
    return views.listing("projects", [views.project(project) for project in projects])


def _self_or_admin(user_id: str) -> None:
    if user_id != caller().user_id:
        require_reader()
