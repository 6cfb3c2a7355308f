"""Flavors: listed, shown, made and dropped."""

from typing import Any
from uuid import uuid4

from flask import request

from api.body import read_object
from api.compute import asked, flavor_view
from api.compute.blueprint import compute_blueprint
from api.compute.servers import compute
from api.current import caller, deployment
from api.paging import cut, next_links, page
from climate.compute.flavor import Flavor
from climate.compute.store import flavors
from climate.domain.errors import Conflict, InvalidInput, NotFound

Body = dict[str, Any]

blueprint = compute_blueprint("flavors")


@blueprint.get("/flavors")
def listing() -> Body:
    """Flavors, by name and id only."""
    found, links = _listed()
    return {"flavors": [flavor_view.brief(flavor) for flavor in found]} | links


@blueprint.get("/flavors/detail")
def detailed() -> Body:
    """Flavors with all there is to know."""
    found, links = _listed()
    return {"flavors": [flavor_view.full(flavor) for flavor in found]} | links


@blueprint.post("/flavors")
def create() -> Body:
    """Make a flavor."""
    asked.may_administer()
    flavor = _read(asked.part(read_object(), "flavor"))
    with compute().engine.begin() as conn:
        if not flavors.insert(conn, flavor):
            raise Conflict(f"Flavor with name {flavor.name} or ID {flavor.id} already exists.")
    return {"flavor": flavor_view.full(flavor)}


@blueprint.get("/flavors/<flavor_id>")
def show(flavor_id: str) -> Body:
    """One flavor, by its id; a name is nobody's."""
    return {"flavor": flavor_view.full(_find(flavor_id))}


@blueprint.delete("/flavors/<flavor_id>")
def delete(flavor_id: str) -> tuple[str, int]:
    """Drop a flavor; servers keep the size they have."""
    asked.may_administer()
    with compute().engine.begin() as conn:
        if not flavors.delete(conn, flavor_id):
            raise _none(flavor_id)
    return "", 202


@blueprint.get("/flavors/<flavor_id>/os-extra_specs")
def extra_specs(flavor_id: str) -> Body:
    """The extra specs of a flavor."""
    return {"extra_specs": dict(_find(flavor_id).extra_specs)}


@blueprint.post("/flavors/<flavor_id>/os-extra_specs")
def add_extra_specs(flavor_id: str) -> Body:
    """Add extra specs to a flavor, or change them."""
    asked.may_administer()
    specs = dict(_find(flavor_id).extra_specs) | asked.metadata(read_object().get("extra_specs"), "extra_specs")
    _set_extra_specs(flavor_id, specs)
    return {"extra_specs": specs}


@blueprint.delete("/flavors/<flavor_id>/os-extra_specs/<key>")
def drop_extra_spec(flavor_id: str, key: str) -> tuple[str, int]:
    """Take one extra spec of a flavor away."""
    asked.may_administer()
    specs = dict(_find(flavor_id).extra_specs)
    if specs.pop(key, None) is None:
        raise NotFound(f"Flavor {flavor_id} has no extra specs with key {key[:80]}.")
    _set_extra_specs(flavor_id, specs)
    return "", 200


@blueprint.get("/flavors/<flavor_id>/os-flavor-access")
def access(flavor_id: str) -> Body:
    """The projects that may use a flavor which is not public."""
    asked.may_administer()
    flavor = _find(flavor_id)
    if flavor.is_public:
        raise NotFound("Access list not available for public flavors.")
    return {"flavor_access": [{"flavor_id": flavor.id, "tenant_id": project} for project in flavor.projects]}


def _listed() -> tuple[list[Flavor], Body]:
    asked.may_read()
    wanted = page()
    public = _public()
    with compute().engine.connect() as conn:
        found = [flavor for flavor in flavors.listed(conn) if public is None or flavor.is_public is public]
    if not caller().is_admin:
        found = [flavor for flavor in found if flavor.usable_by(caller().project_id)]
    shown, more = cut(found, wanted, lambda flavor: flavor.id)
    url = f"{deployment().settings.base_url}{request.path}"
    return shown, {"flavors_links": next_links(url, shown[-1].id, wanted)} if more else {}


def _public() -> bool | None:
    """Which flavors are wanted: public ones, others, or by the word None all that the caller may use."""
    text = request.args.get("is_public")
    if not caller().is_admin:
        return None
    if text is None:
        return True
    return None if text.lower() == "none" else asked.flag(text, "is_public")


def _find(flavor_id: str) -> Flavor:
    asked.may_read()
    with compute().engine.connect() as conn:
        found = flavors.get(conn, flavor_id)
    if found is None or not (caller().is_admin or found.usable_by(caller().project_id)):
        raise _none(flavor_id)
    return found


def _read(body: Body) -> Flavor:
    flavor_id = body.get("id")
    if flavor_id is not None and not isinstance(flavor_id, (str, int)):
        raise InvalidInput("id must be a text, or null to have one made")
    swap = body.get("swap")
    return Flavor(
        id=str(uuid4()) if flavor_id in (None, "auto", "") else asked.name(str(flavor_id), "id"),
        name=asked.name(body.get("name")),
        vcpus=asked.count(body.get("vcpus"), "vcpus", 1, 1 << 16),
        ram_mb=asked.count(body.get("ram"), "ram", 1, 1 << 26),
        disk_gb=asked.count(body.get("disk"), "disk", 0, 1 << 20),
        ephemeral_gb=asked.count(body.get("OS-FLV-EXT-DATA:ephemeral", 0), "ephemeral", 0, 1 << 20),
        swap_mb=asked.count(swap or 0, "swap", 0, 1 << 26),
        is_public=asked.flag(body.get("os-flavor-access:is_public", True), "is_public"),
        description=None if body.get("description") is None else asked.name(body["description"], "description"),
    )


def _set_extra_specs(flavor_id: str, specs: dict[str, str]) -> None:
    with compute().engine.begin() as conn:
        flavors.set_extra_specs(conn, flavor_id, specs)


def _none(flavor_id: str) -> NotFound:
    return NotFound(f"Flavor {flavor_id[:80]} could not be found.")
