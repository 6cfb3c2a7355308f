"""OpenAPI documents of Compute and similar APIs: each route below a path with its body and its answers."""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass

from flask import Flask
from werkzeug.routing import Rule

from api.compute.microversion import HEADERS, HIGHEST, LOWEST, written
from api.compute.openapi.routes import OPERATIONS
from api.schema.shapes import Operation, Schema

PREFIX = "/compute/v2.1"


@dataclass(frozen=True, slots=True)
class DocumentedApi:
    """An API that has a document."""

    title: str
    version: str
    prefix: str
    operations: Mapping[tuple[str, str], Operation]
    refusal: Schema
    always: tuple[int, ...]
    """Statuses that every route may answer, with a token or without."""
    headers: tuple[dict[str, object], ...] = ()
    """Parameters that every route takes."""


REFUSAL: Schema = {
    "type": "object",
    "description": "One key that names the kind of error; see `message`.",
    "minProperties": 1,
    "additionalProperties": {
        "type": "object",
        "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
        "required": ["message"],
    },
}

SIGNED_IN = (401, 403, 429, 503, 507)
WITH_BODY = (413, 415)
SAYS = {
    400: "The request is invalid; the message names what is wrong.",
    401: "The token is missing or invalid.",
    403: "The caller may not do this, or the quota of the project does not allow it.",
    404: "The resource does not exist, or belongs to another project.",
    406: "The microversion or the type of the answer is not served.",
    409: "The present state of the resource does not allow the request.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "The body names a resource that does not exist.",
    429: "Too many requests.",
    501: "This cloud cannot do that.",
    508: "The request came back to a zone that has forwarded it.",
    503: "The cloud or its database does not answer.",
    507: "The disk of the database is full; nothing was changed.",
}


def document(app: Flask, face: DocumentedApi | None = None) -> dict[str, object]:
    """Return the document of all routes of `app` below the path of `face`; None: Compute.

    Raises KeyError for a route without a description.
    """
    face = face or COMPUTE
    paths: dict[str, dict[str, object]] = {}
    for rule in app.url_map.iter_rules():
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            if rule.rule.startswith(f"{face.prefix}/"):
                route = face.operations[method, rule.rule.removeprefix(face.prefix)]
                paths.setdefault(_path(rule), {})[method.lower()] = _operation(app, rule, route, face)
    token = {"type": "apiKey", "in": "header", "name": "X-Auth-Token", "description": "From /identity/v3."}
    return {
        "openapi": "3.1.0",
        "info": {"title": face.title, "version": face.version},
        "paths": dict(sorted(paths.items())),
        "components": {"securitySchemes": {"token": token}, "schemas": {"Refusal": face.refusal}},
        "security": [{"token": []}],
    }


def _path(rule: Rule) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)


def _operation(app: Flask, rule: Rule, route: Operation, face: DocumentedApi) -> dict[str, object]:
    view = inspect.getdoc(app.view_functions[rule.endpoint]) or ""
    operation: dict[str, object] = {
        "summary": view.split("\n")[0].rstrip("."),
        "parameters": [*_parameters(rule, route), *face.headers],
        "responses": _responses(rule, route, face.always),
    }
    if route.takes is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": route.takes}}}
    if route.public:
        operation["security"] = []
    return operation


def _parameters(rule: Rule, route: Operation) -> list[dict[str, object]]:
    there = [
        {"in": "path", "name": name, "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in sorted(rule.arguments)
    ]
    return there + [{"in": "query", "name": name, "schema": schema} for name, schema in sorted(route.query.items())]


def _version() -> dict[str, object]:
    most = HIGHEST[1]
    return {
        "in": "header",
        "name": HEADERS[0],
        "description": f"Microversion, from {written(LOWEST)} to {written(HIGHEST)}; {written(LOWEST)} when absent.",
        "schema": {"type": "string", "enum": ["compute 2.1", f"compute 2.{most // 2}", f"compute {written(HIGHEST)}"]},
    }


def _responses(rule: Rule, route: Operation, always: tuple[int, ...]) -> dict[str, object]:
    responses: dict[str, object] = {str(status): _success(schema) for status, schema in route.answers.items()}
    statuses = {*always, *route.refuses}
    statuses |= set() if route.public else set(SIGNED_IN)
    statuses |= set(WITH_BODY) if route.takes is not None else set()
    statuses |= {404} if rule.arguments else set()
    return responses | {str(status): _refusal(status) for status in sorted(statuses)}


def _success(schema: Schema | None) -> dict[str, object]:
    response: dict[str, object] = {"description": "Done."}
    return response if schema is None else response | {"content": {"application/json": {"schema": schema}}}


def _refusal(status: int) -> dict[str, object]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    return {"description": SAYS[status], "content": content}


COMPUTE = DocumentedApi("climate: compute", written(HIGHEST), PREFIX, OPERATIONS, REFUSAL, (400, 406), (_version(),))
