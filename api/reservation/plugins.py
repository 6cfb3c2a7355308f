"""Resource types that can be reserved."""

import inspect

from flask.typing import ResponseReturnValue
from marshmallow import Schema, fields

from api.openapi import Blueprint
from api.request_context import climate
from api.reservation.view_decorator import PREFIX, Operation, serve

blueprint = Blueprint("plugins", __name__, url_prefix=PREFIX, description="Resource types.")


class PluginOut(Schema):
    name = fields.String(required=True)
    resource_type = fields.String(required=True)
    description = fields.String(required=True)


class PluginsAnswer(Schema):
    plugins = fields.List(fields.Nested(PluginOut), required=True)


@serve(blueprint, "GET", "/plugins", Operation("plugins:get", {200: PluginsAnswer}))
def list_plugins(query: object) -> ResponseReturnValue:
    """List the resource types."""
    known = sorted(climate().plugins.items())
    return {
        "plugins": [
            {
                "name": type(plugin).__name__,
                "resource_type": resource_type,
                "description": (inspect.getdoc(type(plugin)) or "").partition("\n")[0],
            }
            for resource_type, plugin in known
        ]
    }
