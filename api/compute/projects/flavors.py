"""Routes of flavors, their extra specs, and the projects that may use them."""

from collections.abc import Iterable

from flask import request

from api.audited import audited
from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.projects import flavor_bodies, flavor_query, flavor_view
from api.paging import cut, next_links, page
from api.request_context import caller, compute, here
from climate.compute.models.flavor import Flavor
from climate.compute.projects import flavors
from climate.domain.errors import Conflict, InvalidInput, NotFound

Body = dict[str, object]

blueprint = compute_blueprint("flavors")


@blueprint.get("/flavors")
def listing() -> Body:
    """List flavors by name and id only."""
    listed, links = _listed()
    return {"flavors": [flavor_view.brief(flavor) for flavor in listed]} | links


@blueprint.get("/flavors/detail")
def detailed() -> Body:
    """List flavors with all details."""
    listed, links = _listed()
    return {"flavors": [flavor_view.full(flavor) for flavor in listed]} | links


@blueprint.post("/flavors")
def create() -> Body:
    """Create a flavor."""
    validation.may_administer()
    flavor = flavor_bodies.flavor(read_object())
    flavors.create(audited(), flavor)
    return {"flavor": flavor_view.full(flavor)}


@blueprint.get("/flavors/<flavor_id>")
def show(flavor_id: str) -> Body:
    """Show one flavor by its id; names are not accepted."""
    return {"flavor": flavor_view.full(_find(flavor_id))}


@blueprint.put("/flavors/<flavor_id>")
def describe(flavor_id: str) -> Body:
    """Update the description of a flavor; since 2.55."""
    validation.may_administer()
    if not since(55):
        raise NotFound("Descriptions of flavors need microversion 2.55 or later.")
    given = flavor_bodies.DESCRIBED.read(read_object())
    flavors.describe(audited(), flavor_id, given["description"])
    return {"flavor": flavor_view.full(_find(flavor_id))}


@blueprint.delete("/flavors/<flavor_id>")
def delete(flavor_id: str) -> tuple[str, int]:
    """Delete a flavor; existing servers keep their size."""
    validation.may_administer()
    flavors.delete(audited(), flavor_id)
    return "", 202


@blueprint.get("/flavors/<flavor_id>/os-extra_specs")
def extra_specs(flavor_id: str) -> Body:
    """List the extra specs of a flavor."""
    return {"extra_specs": dict(_find(flavor_id).extra_specs)}


@blueprint.post("/flavors/<flavor_id>/os-extra_specs")
def add_extra_specs(flavor_id: str) -> Body:
    """Create or update extra specs of a flavor."""
    validation.may_administer()
    specs = flavor_bodies.EXTRA_SPECS.read(read_object())["extra_specs"]
    return {"extra_specs": flavors.add_extra_specs(audited(), flavor_id, specs)}


@blueprint.get("/flavors/<flavor_id>/os-extra_specs/<key>")
def extra_spec(flavor_id: str, key: str) -> Body:
    """Show one extra spec of a flavor."""
    specs = _find(flavor_id).extra_specs
    if key not in specs:
        raise flavors.no_extra_spec(flavor_id, key)
    return {key: specs[key]}


@blueprint.put("/flavors/<flavor_id>/os-extra_specs/<key>")
def set_extra_spec(flavor_id: str, key: str) -> Body:
    """Set one extra spec of a flavor."""
    validation.may_administer()
    specs = flavor_bodies.specs(read_object())
    if set(specs) != {key}:
        raise InvalidInput("The body must hold the key of the path, and nothing else")
    flavors.add_extra_specs(audited(), flavor_id, specs)
    return dict(specs)


@blueprint.delete("/flavors/<flavor_id>/os-extra_specs/<key>")
def drop_extra_spec(flavor_id: str, key: str) -> tuple[str, int]:
    """Delete one extra spec of a flavor."""
    validation.may_administer()
    _find(flavor_id)
    flavors.delete_extra_spec(audited(), flavor_id, key)
    return "", 200


@blueprint.get("/flavors/<flavor_id>/os-flavor-access")
def access(flavor_id: str) -> Body:
    """List the projects that may use a private flavor."""
    validation.may_administer()
    flavor = _find(flavor_id)
    if flavor.is_public:
        raise NotFound("Access list not available for public flavors.")
    return _access(flavor.id, flavor.projects)


@blueprint.post("/flavors/<flavor_id>/action")
def change_access(flavor_id: str) -> Body:
    """Add or remove a project that may use a private flavor."""
    validation.may_administer()
    action, given = flavor_bodies.ACCESS.read(read_object())
    if _find(flavor_id).is_public:
        raise Conflict(f"Flavor {flavor_id} is public; only private flavors have access lists.")
    change = flavors.add_project if action == "addTenantAccess" else flavors.remove_project
    return _access(flavor_id, change(audited(), flavor_id, given["tenant"]))


def _access(flavor_id: str, projects: Iterable[str]) -> Body:
    return {"flavor_access": [{"flavor_id": flavor_id, "tenant_id": project} for project in projects]}


def _listed() -> tuple[list[Flavor], Body]:
    validation.may_read()
    wanted = page()
    public = _public()
    usable = flavors.listed(compute(), validation.own_project())
    usable = [flavor for flavor in usable if public is None or flavor.is_public is public]
    usable = flavor_query.sorted_and_large(usable)
    shown, more = cut(usable, wanted, lambda flavor: flavor.id)
    return shown, {"flavors_links": next_links(here(), shown[-1].id, wanted)} if more else {}


def _public() -> bool | None:
    """Return True for public flavors, False for private ones, None for all that the caller may use."""
    text = request.args.get("is_public")
    if not caller().is_admin:
        return None
    if text is None:
        return True
    return None if text.lower() == "none" else validation.flag(text, "is_public")


def _find(flavor_id: str) -> Flavor:
    validation.may_read()
    return flavors.get(compute(), flavor_id, validation.own_project())
