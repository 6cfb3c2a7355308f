"""Metadata definitions: namespaces, and their objects, properties, tags and resource types."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from flask import Blueprint, request

from api.body import read_object
from api.compute import validation
from api.image import metadef_bodies as bodies
from api.image.metadef_view import association, namespace_view, part_view, parts_view
from api.paging import cut, next_links, page
from api.request_context import caller, compute, here
from climate.compute.images import metadefs
from climate.compute.models.metadef import KINDS, RESOURCE_TYPES, TAGS, Namespace

View = dict[str, object]

blueprint = Blueprint("image-metadefs", __name__, url_prefix="/image/v2/metadefs")

ONE = "/namespaces/<namespace>"
TYPES = f"{ONE}/resource_types"
PARTS = f"{ONE}/<any(objects, properties, tags):kind>"
PART = f"{PARTS}/<name>"


@blueprint.get("/resource_types")
def resource_types() -> View:
    """List the types of resources that namespaces are associated with."""
    validation.may_read()
    names = metadefs.resource_types(compute(), validation.own_project())
    return {"resource_types": [{"name": name} for name in names]}


@blueprint.get("/namespaces")
def listing() -> View:
    """List the namespaces that the caller may see, by name."""
    validation.may_read()
    wanted = page()
    asked = request.args.get("visibility")
    types = {name for name in request.args.get("resource_types", "").split(",") if name}
    namespaces = [
        one
        for one in metadefs.listed(compute(), validation.own_project())
        if asked in (None, one.visibility) and (not types or types & one.of(RESOURCE_TYPES).keys())
    ]
    shown, more = cut(namespaces, wanted, lambda one: one.namespace)
    path = "/v2/metadefs/namespaces"
    body: View = {"namespaces": [namespace_view(one) for one in shown], "first": path}
    body["schema"] = "/v2/schemas/metadefs/namespaces"
    return body | ({"next": next_links(here(), shown[-1].namespace, wanted)[0]["href"]} if more else {})


@blueprint.post("/namespaces")
def create() -> tuple[View, int]:
    """Create a namespace, perhaps with its parts."""
    validation.may_administer()
    given = bodies.NEW.read(read_object())
    new = Namespace(given.pop("namespace"), given.pop("owner", caller().project_id))
    for kind in KINDS:
        new = new.with_all(kind, given.pop(kind, {}))
    return namespace_view(metadefs.create(compute(), replace(new, **given)), with_parts=True), 201


@blueprint.get(ONE)
def show(namespace: str) -> View:
    """Show a namespace with its parts."""
    return namespace_view(_find(namespace), with_parts=True)


@blueprint.put(ONE)
def change(namespace: str) -> View:
    """Update a namespace."""
    validation.may_administer()
    given = bodies.CHANGED.read(read_object())
    return namespace_view(metadefs.change(compute(), namespace, partial(replace, **given)))


@blueprint.delete(ONE)
def delete(namespace: str) -> tuple[str, int]:
    """Delete a namespace with its parts; refused if it is protected."""
    validation.may_administer()
    metadefs.delete(compute(), namespace)
    return "", 204


@blueprint.get(TYPES)
def associations(namespace: str) -> View:
    """List the resource types of a namespace."""
    shown = _find(namespace)
    return {"resource_type_associations": [association(shown, name) for name in shown.of(RESOURCE_TYPES)]}


@blueprint.post(TYPES)
def associate(namespace: str) -> tuple[View, int]:
    """Associate a namespace with a resource type."""
    name, part = _requested_part(RESOURCE_TYPES)
    return association(_change(namespace, lambda there: there.with_new(RESOURCE_TYPES, name, part)), name), 201


@blueprint.delete(f"{TYPES}/<name>")
def dissociate(namespace: str, name: str) -> tuple[str, int]:
    """End the association of a namespace with a resource type."""
    validation.may_administer()
    _change(namespace, lambda there: there.without(RESOURCE_TYPES, name))
    return "", 204


@blueprint.get(PARTS)
def parts(namespace: str, kind: str) -> View:
    """List the objects, the properties or the tags of a namespace."""
    return {kind: parts_view(_find(namespace), kind), "schema": f"/v2/schemas/metadefs/{kind}"}


@blueprint.post(PARTS)
def add(namespace: str, kind: str) -> tuple[View, int]:
    """Add an object or a property; for tags, replace all of them."""
    if kind == TAGS:
        validation.may_administer()
        tags = bodies.ALL_TAGS.read(read_object())["tags"]
        return {TAGS: parts_view(_change(namespace, lambda there: there.with_all(TAGS, tags)), TAGS)}, 201
    name, part = _requested_part(kind)
    return part_view(_change(namespace, lambda there: there.with_new(kind, name, part)), kind, name), 201


@blueprint.delete(PARTS)
def clear(namespace: str, kind: str) -> tuple[str, int]:
    """Delete all objects, properties or tags of a namespace."""
    validation.may_administer()
    _change(namespace, lambda there: there.with_all(kind, {}))
    return "", 204


@blueprint.get(PART)
def show_part(namespace: str, kind: str, name: str) -> View:
    """Show one object, property or tag of a namespace."""
    return part_view(_find(namespace), kind, name)


@blueprint.post(f"{ONE}/tags/<name>")
def add_tag(namespace: str, name: str) -> tuple[View, int]:
    """Add a tag to a namespace."""
    validation.may_administer()
    tag, part = bodies.part(TAGS, {"name": name})
    return part_view(_change(namespace, lambda there: there.with_new(TAGS, tag, part)), TAGS, tag), 201


@blueprint.put(PART)
def change_part(namespace: str, kind: str, name: str) -> View:
    """Replace one object, property or tag of a namespace; it may get another name."""
    after, part = _requested_part(kind)
    return part_view(_change(namespace, lambda there: there.with_changed(kind, name, after, part)), kind, after)


@blueprint.delete(PART)
def delete_part(namespace: str, kind: str, name: str) -> tuple[str, int]:
    """Delete one object, property or tag of a namespace."""
    validation.may_administer()
    _change(namespace, lambda there: there.without(kind, name))
    return "", 204


def _find(namespace: str) -> Namespace:
    validation.may_read()
    return metadefs.get(compute(), namespace, validation.own_project())


def _requested_part(kind: str) -> tuple[str, dict[str, object]]:
    validation.may_administer()
    name, part = bodies.part(kind, read_object())
    return name, dict(part)


def _change(namespace: str, changed: Callable[[Namespace], Namespace]) -> Namespace:
    return metadefs.change(compute(), namespace, changed)
