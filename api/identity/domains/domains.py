"""Domains."""

from flask import Blueprint, request

from api.body import read_object
from api.identity import read_access, views
from api.identity.domains import domain_and_group_bodies
from api.request_context import caller, identity
from climate.domain.policy import require
from climate.identity import domains, read_operations
from climate.identity.models import DOMAIN_ID, Domain
from climate.identity.projects_and_users import no_such

blueprint = Blueprint("identity-domains", __name__, url_prefix="/identity/v3/domains")


@blueprint.get("")
def listing() -> dict[str, object]:
    """List all domains; users who may not read all see the default one and their own."""
    found = [views.domain(one) for one in _visible() if _fits(one)]
    return views.listing("domains", found)


@blueprint.post("")
def create() -> tuple[dict[str, object], int]:
    """Create a domain."""
    require(caller(), "identity:admin")
    made = domains.create(identity(), caller(), **domain_and_group_bodies.DOMAIN.read(read_object()))
    return {"domain": views.domain(made)}, 201


@blueprint.get("/<domain_id>")
def show(domain_id: str) -> dict[str, object]:
    """Show a domain that the caller sees."""
    found = read_operations.domain(identity(), domain_id)
    if read_access.own_user_id() is not None and found not in _visible():
        raise no_such("domain", domain_id)
    return {"domain": views.domain(found)}


@blueprint.patch("/<domain_id>")
def change(domain_id: str) -> dict[str, object]:
    """Update the name or description of a domain, or disable it, so that its users and projects get no tokens."""
    require(caller(), "identity:admin")
    changed = domains.change(
        identity(), caller(), domain_id, domain_and_group_bodies.CHANGED_DOMAIN.read(read_object())
    )
    return {"domain": views.domain(changed)}


@blueprint.delete("/<domain_id>")
def remove(domain_id: str) -> tuple[str, int]:
    """Delete a disabled domain with its users, groups and projects, which have no resources."""
    require(caller(), "identity:admin")
    domains.remove(identity(), caller(), domain_id)
    return "", 204


def _visible() -> list[Domain]:
    user_id = read_access.own_user_id()
    domains = read_operations.domains(identity())
    if user_id is None:
        return domains
    own = {DOMAIN_ID, read_operations.user(identity(), user_id).domain_id}
    own |= {one.domain_id for one in read_operations.usable_projects(identity(), user_id)}
    return [domain for domain in domains if domain.id in own]


def _fits(one: Domain) -> bool:
    enabled, name = request.args.get("enabled"), request.args.get("name")
    is_wanted = enabled is None or one.enabled == (enabled.lower() not in ("0", "false"))
    return is_wanted and (name is None or name.lower() == one.name.lower())
