"""Groups of users."""

from flask import Blueprint, request

from api.body import read_object
from api.identity import filters, views
from api.identity.domains import domain_and_group_bodies
from api.identity.read_access import require_reader
from api.request_context import caller, identity
from climate.domain.errors import NotFound
from climate.domain.policy import require
from climate.identity import groups, read_operations
from climate.identity.models import Group

blueprint = Blueprint("identity-groups", __name__, url_prefix="/identity/v3")


@blueprint.get("/groups")
def listing() -> dict[str, object]:
    """List all groups."""
    require_reader()
    return _listed(read_operations.groups(identity()))


@blueprint.post("/groups")
def create() -> tuple[dict[str, object], int]:
    """Create a group."""
    require(caller(), "identity:admin")
    made = groups.create(identity(), caller(), **domain_and_group_bodies.GROUP.read(read_object()))
    return {"group": views.group(made)}, 201


@blueprint.get("/groups/<group_id>")
def show(group_id: str) -> dict[str, object]:
    """Show a group."""
    require_reader()
    return {"group": views.group(read_operations.group(identity(), group_id))}


@blueprint.patch("/groups/<group_id>")
def change(group_id: str) -> dict[str, object]:
    """Update the name or description of a group."""
    require(caller(), "identity:admin")
    changed = groups.change(identity(), caller(), group_id, domain_and_group_bodies.CHANGED_GROUP.read(read_object()))
    return {"group": views.group(changed)}


@blueprint.delete("/groups/<group_id>")
def remove(group_id: str) -> tuple[str, int]:
    """Delete a group; its members lose its roles."""
    require(caller(), "identity:admin")
    groups.remove(identity(), caller(), group_id)
    return "", 204


@blueprint.get("/groups/<group_id>/users")
def members(group_id: str) -> dict[str, object]:
    """List the users in a group."""
    require_reader()
    users = read_operations.members(identity(), group_id)
    name = request.args.get("name")
    found = [user for user in users if name in (None, user.name) and filters.fits(request.args, user)]
    return views.listing("users", [views.user(one) for one in found])


@blueprint.get("/groups/<group_id>/users/<user_id>")
def check_member(group_id: str, user_id: str) -> tuple[str, int]:
    """Check whether a user is in a group; clients use HEAD."""
    require_reader()
    if user_id not in [one.id for one in read_operations.members(identity(), group_id)]:
        raise NotFound("The user is not in this group")
    return "", 204


@blueprint.put("/groups/<group_id>/users/<user_id>")
def add_member(group_id: str, user_id: str) -> tuple[str, int]:
    """Add a user to a group."""
    require(caller(), "identity:admin")
    groups.add_member(identity(), caller(), group_id, user_id)
    return "", 204


@blueprint.delete("/groups/<group_id>/users/<user_id>")
def remove_member(group_id: str, user_id: str) -> tuple[str, int]:
    """Remove a user from a group, and revoke its tokens."""
    require(caller(), "identity:admin")
    groups.remove_member(identity(), caller(), group_id, user_id)
    return "", 204


@blueprint.get("/users/<user_id>/groups")
def groups_of(user_id: str) -> dict[str, object]:
    """List the groups of a user; users may see their own."""
    if user_id != caller().user_id:
        require_reader()
    read_operations.user(identity(), user_id)
    return _listed(read_operations.groups(identity(), user_id))


def _listed(groups: list[Group]) -> dict[str, object]:
    name = request.args.get("name")
    found = [group for group in groups if name in (None, group.name) and filters.fits_domain(request.args, group)]
    return views.listing("groups", [views.group(one) for one in found])
