"""Additions to the OpenAPI document beyond the schemas: the token, and the resource types of the plugins."""

from typing import Any

from flask import Flask
from marshmallow import Schema, fields

from api.openapi import document
from api.request_context import DEPLOYMENT
from api.reservation.hosts.power_schema import DriverName, DriverSettings
from api.reservation.hosts.schema import LONGEST_VALUE
from api.reservation.leases.reservation_specs import change_schema, request_schema
from api.reservation.leases.schema import AskedChange, AskedReservation
from api.reservation.microversion import HEADER
from climate.service.hosts.inventory import LONGEST_NAME

PARAMETERS = [
    {
        "in": "header",
        "name": HEADER,
        "required": False,
        "description": "`reservation 1.0` or `reservation latest`; there is one version.",
        "schema": {"type": "string", "pattern": r"^reservation (1\.0|latest)$"},
    }
]


def prepare(app: Flask) -> None:
    """Add the token, and the schemas of each plugin and power driver, to the document of an app."""
    described = document(app)
    described.spec.components.security_scheme(
        "token", {"type": "apiKey", "in": "header", "name": "X-Auth-Token", "description": "From /identity/v3."}
    )
    described.spec.options["security"] = [{"token": []}]
    plugins = [plugin for _, plugin in sorted(app.extensions[DEPLOYMENT].climate.plugins.items())]
    drivers = app.extensions[DEPLOYMENT].climate.power
    requests = [request_schema(plugin) for plugin in plugins]
    changes = [change_schema(plugin) for plugin in plugins]

    def parts(self: Any, field: fields.Field[Any], **_: object) -> dict[str, object]:
        """Add the alternatives: a reservation has one plugin's schema, power settings have one driver's schema."""
        if isinstance(field, AskedReservation):
            return _one_of(self, requests, [plugin.resource_type for plugin in plugins])
        if isinstance(field, AskedChange):
            return {"anyOf": [self.resolve_nested_schema(schema) for schema in changes]}
        if drivers and isinstance(field, DriverName):
            return {"enum": sorted(drivers)}
        if drivers and isinstance(field, DriverSettings):
            return {"anyOf": [self.resolve_nested_schema(driver.schema()) for _, driver in sorted(drivers.items())]}
        return {}

    described.ma_plugin.converter.add_attribute_function(parts)


def finish(app: Flask) -> None:
    """Add what schemas cannot say: unknown keys of a host are its extra capabilities."""
    schemas = document(app).spec.components.schemas
    types = ["string", "number", "boolean"]
    text = {"type": types, "maxLength": LONGEST_VALUE, "pattern": r"\S"}
    removable = {**text, "type": [*types, "null"]}
    names = {"pattern": f"^[A-Za-z0-9_:.-]{{1,{LONGEST_NAME}}}$"}
    schemas["HostOrder"].update(additionalProperties=text, propertyNames=names)
    schemas["HostChanges"].update(additionalProperties=removable, propertyNames=names, minProperties=1)


def _one_of(converter: Any, schemas: list[Schema], types: list[str]) -> dict[str, object]:
    choices = [converter.resolve_nested_schema(schema) for schema in schemas]
    mapping = {name: choice["$ref"] for name, choice in zip(types, choices, strict=True)}
    return {"oneOf": choices, "discriminator": {"propertyName": "resource_type", "mapping": mapping}}
