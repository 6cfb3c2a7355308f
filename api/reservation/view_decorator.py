"""Operations of the API: the policy rule, the schemas of request and answer, and the OpenAPI entry of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from http import HTTPStatus
from typing import Any, TypeVar

from flask import jsonify
from flask.typing import ResponseReturnValue
from marshmallow import RAISE, Schema, fields

from api.auth import public
from api.openapi import Blueprint
from api.request_context import caller
from api.reservation.unchanged_fields import Reader, Unchanged, Update
from climate.domain.policy import require

PREFIX = "/reservation/v1"

ALWAYS = (400, 401, 403, 406, 429, 503, 507)
"""Errors of any request: headers or query, token, role, a busy or full database."""

WITH_BODY = (413, 415)

Read = dict[str, Any]
"""Body, query or headers of a request as their schema has read them."""

View = TypeVar("View", bound=Callable[..., object])


class Strict(Schema):
    """Schema that refuses unknown keys and lists the known ones."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        names = sorted(known.data_key or name for name, known in self.load_fields.items())
        message = f"known are {', '.join(names)}" if names else "no parameter is known"
        self.error_messages = {**self.error_messages, "unknown": f"Unknown parameter; {message}"}


class NotSignedIn(Schema):
    """Error body for an invalid token, as Keystone's middleware has it."""

    code = fields.Integer(required=True)
    title = fields.String(required=True)
    message = fields.String(required=True)


class Unauthorized(Schema):
    error = fields.Nested(NotSignedIn, required=True)


class NoQuery(Strict):
    """Schema without query parameters."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.  `action` names the policy rule, None allows all.  `answers`: good statuses and their bodies."""

    action: str | None
    answers: Mapping[int, type[Schema] | None]
    query: type[Schema] = NoQuery
    headers: type[Schema] | None = None
    body: type[Schema] | None = None
    refuses: tuple[int, ...] = ()
    """Statuses of errors in addition to the common ones."""
    example: Mapping[str, object] = field(default_factory=dict)
    """An example of a body."""
    shows: Reader | None = None
    """Returns what GET answers for the same path; a body that repeats it changes nothing."""


def serve(blueprint: Blueprint, method: str, path: str, operation: Operation) -> Callable[[View], View]:
    """Register a function as the view of an operation.  It gets the parsed `query`, `headers` and `body`."""

    def decorate(view: View) -> View:
        served: Any = _reading(blueprint, operation, view)
        served = blueprint.doc(**_described(operation))(served)
        served = public(served) if operation.action is None else _for_allowed(operation.action, served)
        blueprint.route(path, methods=[method])(served)
        return view

    return decorate


def nothing() -> ResponseReturnValue:
    """Return 204 with an empty body and the content type JSON, as Blazar does."""
    answer = jsonify()
    answer.data = b""
    answer.status_code = 204
    return answer


def _reading(blueprint: Blueprint, operation: Operation, view: object) -> object:
    """Create the schemas once, because creating one costs more than reading with it."""
    read = blueprint.arguments
    if operation.body is not None:
        shown = {"example": dict(operation.example)} if operation.example else {}
        view = _unless_unchanged(read(_body_schema(operation, operation.body), arg_name="body", **shown)(view))
    if operation.headers is not None:
        view = read(operation.headers(), location="headers", arg_name="headers")(view)
    return read(operation.query(), location="query", arg_name="query", unknown=RAISE)(view)


def _body_schema(operation: Operation, schema: type[Schema]) -> Schema:
    made = schema()
    if isinstance(made, Update):
        made.reads = operation.shows
    return made


def _unless_unchanged(view: Any) -> object:
    """Answer a body that repeats the answer of GET with that answer."""

    @wraps(view)
    def answered(*args: object, **kwargs: object) -> object:
        try:
            return view(*args, **kwargs)
        except Unchanged as same:
            return same.answer

    return answered


def _for_allowed(action: str, view: Any) -> object:
    """Check the policy before the body, so that refused callers learn nothing about the body."""

    @wraps(view)
    def guarded(*args: object, **kwargs: object) -> object:
        require(caller(), action)
        return view(*args, **kwargs)

    return guarded


def _described(operation: Operation) -> dict[str, object]:
    responses: dict[int, object] = {}
    always = (400, 406) if operation.action is None else ALWAYS
    refusals = {*always, *operation.refuses, *(WITH_BODY if operation.body else ())}
    responses.update({status: HTTPStatus(status).name for status in sorted(refusals)})
    own = {**operation.answers, **({401: Unauthorized} if 401 in refusals else {})}
    for status, schema in own.items():
        content = {"content": {"application/json": {"schema": schema}}} if schema else {}
        responses[status] = {"description": HTTPStatus(status).phrase, **content}
    return {"responses": responses, **({"security": []} if operation.action is None else {})}
