"""OpenAPI document of the reservation API, and the blueprint class whose routes appear in it."""

from typing import Any, NoReturn, cast
from weakref import WeakKeyDictionary

import flask
import flask_smorest  # type: ignore[import-untyped]
import marshmallow
from flask import Flask
from flask_smorest import Api
from webargs.flaskparser import FlaskParser

from api.body import read_object
from api.errors import describe
from climate.domain.errors import InvalidInput


class ErrorSchema(marshmallow.Schema):
    """A refusal: `error_code` and `error_name` if climate refused, `error` if the framework did."""

    error_message = marshmallow.fields.String(required=True)
    error_code = marshmallow.fields.Integer()
    error_name = marshmallow.fields.Raw(metadata={"description": "The status again"})
    error = marshmallow.fields.Raw(metadata={"description": "The status; an object if the token is missing or invalid"})
    leases = marshmallow.fields.List(
        marshmallow.fields.Dict(), metadata={"description": "The conflicting leases: lease_id, lease_name, host, …"}
    )
    limit = marshmallow.fields.Dict(metadata={"description": "The exceeded limit: name, value, used, asked"})


PLAIN = (bool, int, str, type(None))
"""Types of immutable values."""


class StrictParser(FlaskParser):
    """Parser that reads bodies with `api.body`; errors of a schema become a 400 that names the fields."""

    DEFAULT_VALIDATION_STATUS = 400

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self._defaults: WeakKeyDictionary[marshmallow.Schema, dict[str, object]] = WeakKeyDictionary()

    def parse(self, argmap: Any, req: Any = None, *, location: str | None = None, **more: Any) -> object:
        """Parse as webargs does, but cache the constant result of an absent query or of absent headers."""
        if not isinstance(argmap, marshmallow.Schema) or not _is_absent(argmap, location):
            return super().parse(argmap, req, location=location, **more)
        known = self._defaults.get(argmap)
        if known is None:
            known = super().parse(argmap, req, location=location, **more)
            if not all(isinstance(value, PLAIN) for value in known.values()):
                return known
            self._defaults[argmap] = known
        return dict(known)

    def _raw_load_json(self, req: flask.Request) -> object:
        return read_object()

    def handle_error(self, error: marshmallow.ValidationError, *args: object, **kwargs: object) -> NoReturn:
        raise InvalidInput(describe(error.messages)) from None


def _is_absent(schema: marshmallow.Schema, location: str | None) -> bool:
    """Return whether the request has nothing that the schema reads at this location."""
    if location == "headers":
        sent = flask.request.headers
        return not any((field.data_key or name) in sent for name, field in schema.load_fields.items())
    return location == "query" and not flask.request.query_string


class Blueprint(flask_smorest.Blueprint):  # type: ignore[misc]
    """Blueprint with routes in the OpenAPI document and strict reading of arguments."""

    ARGUMENTS_PARSER = StrictParser()


class Document(Api):  # type: ignore[misc]
    """The OpenAPI document of an app."""

    ERROR_SCHEMA = ErrorSchema
    DEFAULT_ERROR_RESPONSE_NAME = None
    """Each operation names its refusals: "default" would make every status a documented one."""


def install(app: Flask) -> Document:
    """Create the document; packages add routes by `document(app).register_blueprint`."""
    app.config.update(API_TITLE="climate", API_VERSION="1.0", OPENAPI_VERSION="3.1.0")
    return Document(app)


def document(app: Flask) -> Document:
    """Return the OpenAPI document of `app`, which registers the blueprints that appear in it."""
    return cast(Document, app.extensions["flask-smorest"]["apis"][""]["ext_obj"])
