"""Roles and role assignments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from api.body import read_object
from api.identity import bodies, views
from api.identity.read_access import require_reader
from api.request_context import caller, identity
from climate.domain.errors import InvalidInput, NotFound
from climate.domain.policy import require
from climate.identity import read_operations, roles
from climate.identity.models import DOMAIN_ID, Role
from climate.identity.store.assignments import Filter, Holder

View = TypeVar("View", bound=Callable[..., ResponseReturnValue])

blueprint = Blueprint("identity-roles", __name__, url_prefix="/identity/v3")

USER_IN_PROJECT, USER_IN_SYSTEM = "/projects/<project_id>/users/<user_id>/roles", "/system/users/<user_id>/roles"
GROUP_IN_PROJECT, GROUP_IN_SYSTEM = "/projects/<project_id>/groups/<group_id>/roles", "/system/groups/<group_id>/roles"
PLACES = (USER_IN_PROJECT, USER_IN_SYSTEM, GROUP_IN_PROJECT, GROUP_IN_SYSTEM)
NO_DEFAULT_DOMAIN = f"domain_id must be null or another domain than {DOMAIN_ID}, whose projects have the roles of none"


@blueprint.get("/roles")
def listing() -> dict[str, object]:
    """List the roles of a domain or, without one in the query, those of none."""
    wanted = request.args.get("domain_id")
    found = [one for one in read_operations.all_roles(identity()) if one.domain_id == wanted]
    return _roles(found, request.args.get("name"))


@blueprint.post("/roles")
def create() -> tuple[dict[str, object], int]:
    """Create a role; it allows only what a rule of the policy file says."""
    require(caller(), "identity:admin")
    given = bodies.ROLE.read(read_object())
    if given["domain_id"] == DOMAIN_ID:
        raise InvalidInput(NO_DEFAULT_DOMAIN)
    made = roles.create(identity(), caller(), given["name"], given["description"], given["domain_id"])
    return {"role": views.role(made)}, 201


@blueprint.get("/roles/<role_id>")
def show(role_id: str) -> dict[str, object]:
    """Show a role; the id of a default role is its name."""
    return {"role": views.role(read_operations.role(identity(), role_id))}


@blueprint.patch("/roles/<role_id>")
def change(role_id: str) -> dict[str, object]:
    """Update the name or description of a role that is not a default one."""
    require(caller(), "identity:admin")
    given = bodies.CHANGED_ROLE.read(read_object())
    changed = roles.change(identity(), caller(), role_id, given.get("name"), given.get("description"))
    return {"role": views.role(changed)}


@blueprint.delete("/roles/<role_id>")
def remove(role_id: str) -> tuple[str, int]:
    """Delete a role that is not a default one, and take it from all users."""
    require(caller(), "identity:admin")
    roles.remove(identity(), caller(), role_id)
    return "", 204


@blueprint.get("/role_inferences")
def rules() -> dict[str, object]:
    """List the roles that roles imply."""
    known = {one.id: one for one in read_operations.all_roles(identity())}
    found = read_operations.role_rules(identity()).items()
    return views.listing("role_inferences", [_rules(known[prior], of) for prior, of in found if prior in known])


@blueprint.get("/roles/<role_id>/implies")
def rules_of(role_id: str) -> dict[str, object]:
    """List the roles that a role implies directly."""
    prior = read_operations.role(identity(), role_id)
    implied = read_operations.role_rules(identity()).get(role_id, [])
    return {"role_inference": _rules(prior, implied), "links": views.links(f"roles/{role_id}/implies")}


@blueprint.get("/roles/<role_id>/implies/<implied_id>")
def rule(role_id: str, implied_id: str) -> dict[str, object] | tuple[str, int]:
    """Show that a role implies another; HEAD checks it."""
    prior, implied = read_operations.role(identity(), role_id), read_operations.role(identity(), implied_id)
    if implied not in read_operations.role_rules(identity()).get(role_id, []):
        raise NotFound(f"Role {prior.name} does not imply {implied.name}")
    return ("", 204) if request.method == "HEAD" else _rule(prior, implied)


@blueprint.put("/roles/<role_id>/implies/<implied_id>")
def imply(role_id: str, implied_id: str) -> tuple[dict[str, object], int]:
    """Let a role imply another."""
    require(caller(), "identity:admin")
    return _rule(*roles.imply(identity(), caller(), role_id, implied_id)), 201


@blueprint.delete("/roles/<role_id>/implies/<implied_id>")
def end_implication(role_id: str, implied_id: str) -> tuple[str, int]:
    """Let a role imply another no more, and revoke the tokens with that role."""
    require(caller(), "identity:admin")
    roles.end_implication(identity(), caller(), role_id, implied_id)
    return "", 204


def _rules(prior: Role, implied: list[Role]) -> dict[str, object]:
    return {"prior_role": _brief(prior), "implies": [_brief(one) for one in implied]}


def _rule(prior: Role, implied: Role) -> dict[str, object]:
    path = f"roles/{prior.id}/implies/{implied.id}"
    return {"role_inference": {"prior_role": _brief(prior), "implies": _brief(implied)}, "links": views.links(path)}


def _brief(role: Role) -> dict[str, object]:
    return {"id": role.id, "name": role.name, "links": views.links(f"roles/{role.id}")}


@dataclass(frozen=True, slots=True)
class Place:
    """User or group, and project, of the path of a request; without a project it is the system."""

    user_id: str | None = None
    group_id: str | None = None
    project_id: str | None = None

    @property
    def holder(self) -> Holder:
        return Holder(self.user_id) if self.user_id is not None else Holder(self.group_id or "", is_group=True)


def _at(method: str, suffix: str = "") -> Callable[[View], View]:
    """Return the decorator of a view of the roles of users and groups, in projects and in the system."""

    def add(view: View) -> View:
        for place in PLACES:
            blueprint.add_url_rule(place + suffix, view_func=view, methods=[method])
        return view

    return add


@_at("GET")
def assigned(**path: str) -> dict[str, object]:
    """List the roles that a user or a group was given in a project or in the system."""
    require_reader()
    place = Place(**path)
    return _roles(read_operations.roles(identity(), place.holder, place.project_id))


@_at("GET", "/<role_id>")
def check(role_id: str, **path: str) -> tuple[str, int]:
    """Check whether a user or a group was given a role in a project or in the system; clients use HEAD."""
    require_reader()
    place = Place(**path)
    read_operations.check_role(identity(), place.holder, place.project_id, role_id)
    return "", 204


@_at("PUT", "/<role_id>")
def give(role_id: str, **path: str) -> tuple[str, int]:
    """Assign a role in a project or in the system to a user or a group."""
    require(caller(), "identity:admin")
    place = Place(**path)
    roles.assign(identity(), caller(), place.holder, place.project_id, role_id)
    return "", 204


@_at("DELETE", "/<role_id>")
def take(role_id: str, **path: str) -> tuple[str, int]:
    """Remove a role in a project or in the system from a user or a group."""
    require(caller(), "identity:admin")
    place = Place(**path)
    roles.take(identity(), caller(), place.holder, place.project_id, role_id)
    return "", 204


@blueprint.get("/role_assignments")
def all_assignments() -> dict[str, object]:
    """List role assignments; other users than administrators see their own."""
    asked = request.args
    wanted = Filter(
        asked.get("user.id"),
        asked.get("scope.project.id"),
        asked.get("role.id"),
        is_system="scope.system" in asked,
        group_id=asked.get("group.id"),
        effective=_is_set(asked, "effective"),
    )
    if wanted.user_id != caller().user_id:
        require_reader()
    result = read_operations.role_assignments(identity(), wanted)
    names = None
    if _is_set(asked, "include_names"):
        names = {one.id: views.domain_name(one) for one in read_operations.domains(identity())}
    return views.listing("role_assignments", [views.assignment(one, names) for one in result])


def _is_set(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "0").lower() not in ("0", "false")


def _roles(found: list[Role], name: str | None = None) -> dict[str, object]:
    return views.listing("roles", [views.role(role) for role in found if name in (None, role.name)])
