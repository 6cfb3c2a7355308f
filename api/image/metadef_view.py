"""JSON views of metadata definitions."""

from collections.abc import Mapping
from datetime import datetime

from climate.compute.models.metadef import OBJECTS, PROPERTIES, RESOURCE_TYPES, TAGS, Namespace

View = dict[str, object]


def namespace_view(one: Namespace, *, with_parts: bool = False) -> View:
    """Return a namespace with its resource types; `with_parts` adds its other parts, without empty lists."""
    path = f"/v2/metadefs/namespaces/{one.namespace}"
    body = {
        "namespace": one.namespace,
        "display_name": one.display_name,
        "description": one.description,
        "visibility": one.visibility,
        "protected": one.protected,
        "owner": one.owner,
        **_times(one),
        "self": path,
        "schema": "/v2/schemas/metadefs/namespace",
    }
    if one.of(RESOURCE_TYPES):
        body["resource_type_associations"] = [association(one, name) for name in one.of(RESOURCE_TYPES)]
    if with_parts:
        body |= {kind: parts_view(one, kind) for kind in (OBJECTS, PROPERTIES, TAGS) if one.of(kind)}
    return body


def association(one: Namespace, name: str) -> View:
    """Return the association of a namespace with a resource type."""
    return {"name": name, **one.part(RESOURCE_TYPES, name), **_times(one)}


def parts_view(one: Namespace, kind: str) -> list[View] | View:
    """Return the parts of a kind: properties by name, others as a list."""
    if kind == PROPERTIES:
        return dict(one.of(PROPERTIES))
    return [part_view(one, kind, name) for name in one.of(kind)]


def part_view(one: Namespace, kind: str, name: str) -> View:
    """Return one part; NotFound. Its times are those of its namespace."""
    part: Mapping[str, object] = one.part(kind, name)
    if kind == PROPERTIES:
        return {"name": name, **part}
    if kind == TAGS:
        return {"name": name, **_times(one)}
    path = f"/v2/metadefs/namespaces/{one.namespace}/objects/{name}"
    return {"name": name, **part, **_times(one), "self": path, "schema": "/v2/schemas/metadefs/object"}


def _times(one: Namespace) -> View:
    return {"created_at": _moment(one.created_at), "updated_at": _moment(one.updated_at)}


def _moment(time: datetime | None) -> str | None:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}" if time else None
