"""Fields of a reservation that belong to its plugin, read by the plugin's schema and shown in the document."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields, validate

from api.errors import MISSING, describe
from climate.domain.errors import Conflict, InvalidInput
from climate.domain.lease import Lease
from climate.domain.planning.preemption import FIELD as PREEMPTIBLE
from climate.plugin import ResourcePlugin

Plugins = Mapping[str, ResourcePlugin]
Spec = dict[str, object]


def read_new(plugins: Plugins, given: Mapping[str, object]) -> Spec:
    """Return a reservation of a new lease, in the types of its plugin."""
    if given.get("resource_type") is None:
        raise InvalidInput("Missing parameter resource_type")
    schema = request_schema(plugin_of(plugins, given["resource_type"]))
    if given.get(PREEMPTIBLE) and PREEMPTIBLE not in schema.fields:
        raise InvalidInput(
            f"{PREEMPTIBLE} is for whole hosts, the resource type physical:host: a reservation of"
            f" {given['resource_type']} never gives way, so leave the field out"
        )
    return _load(schema, given)


def read_changes(plugins: Plugins, lease: Lease, given: Sequence[Mapping[str, Any]]) -> list[Spec]:
    """Return the changes of a lease's reservations; the engine refuses those of other leases."""
    own = {str(r.id): r for r in lease.reservations}
    read = []
    for one in given:
        if not isinstance(one.get("id"), str):
            raise InvalidInput("Missing parameter reservation ID")
        present = own.get(one["id"].lower())
        if present and one.get("resource_type", present.resource_type) != present.resource_type:
            raise Conflict("resource_type cannot be updated")
        plugin = plugins[present.resource_type] if present else None
        read.append(_load(change_schema(plugin), {**one, "id": str(present and present.id)}) if plugin else dict(one))
    if len({one["id"] for one in read}) < len(read):
        raise InvalidInput("Please enter valid reservation IDs: one of them is given twice")
    return read


def plugin_of(plugins: Plugins, resource_type: object) -> ResourcePlugin:
    """Return the plugin of a resource type."""
    plugin = plugins.get(resource_type) if isinstance(resource_type, str) else None
    if plugin is None:
        shown, known = str(resource_type)[:80], ", ".join(sorted(plugins))
        raise InvalidInput(f"The {shown} resource type is not supported; known are: {known}")
    return plugin


def request_schema(plugin: ResourcePlugin) -> Schema:
    """Return the schema of a plugin's requests."""
    return _schema(plugin.resource_type, plugin.spec_schema, "Request")


def change_schema(plugin: ResourcePlugin) -> Schema:
    """Return the schema of a plugin's updates."""
    return _schema(plugin.resource_type, plugin.spec_schema, "Change")


@cache
def _schema(resource_type: str, spec_schema: type[Schema], kind: str) -> Schema:
    """Return the plugin's schema with the keys of a reservation; its name is like `PhysicalHostRequest`."""
    new = kind == "Request"
    keys: dict[str, Any] = {
        "resource_type": fields.String(required=new, validate=validate.OneOf([resource_type])),
        **({} if new else {"id": fields.String(required=True)}),
    }
    name = "".join(word.capitalize() for word in resource_type.replace("-", ":").split(":")) + kind
    made = type(name, (spec_schema,), {**keys, "__doc__": spec_schema.__doc__})
    schema: Schema = made(unknown=RAISE, partial=None if new else True)
    return schema


def _load(schema: Schema, given: Mapping[str, object]) -> Spec:
    try:
        read: Spec = schema.load(given)
    except ValidationError as error:
        raise InvalidInput(_in_the_peers_words(schema, error.messages_dict)) from None
    return read


def _in_the_peers_words(schema: Schema, messages: Mapping[str, object]) -> str:
    missing = sorted(name for name, said in messages.items() if said == [MISSING])
    unknown = sorted(set(messages) - set(schema.fields) - {"_schema"})
    wrong = {name: said for name, said in messages.items() if name not in missing and name not in unknown}
    parts = [f"Missing parameter {', '.join(missing)}"] if missing else []
    if unknown:
        shown = ", ".join(name[:40] for name in unknown[:5])
        parts.append(f"Unknown parameter {shown} in a reservation; known are {', '.join(sorted(schema.fields))}")
    parts += [f"Malformed parameter {name}: {describe(said)}" for name, said in wrong.items()]
    return "; ".join(parts)
