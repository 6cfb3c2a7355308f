"""One operation of the API: who may do it, what it reads, how it is answered; and its place in the OpenAPI document."""

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
from climate.domain.policy import require

PREFIX = "/reservation/v1"

ALWAYS = (400, 401, 403, 406, 429, 503, 507)
"""Refusals that any request may meet: its headers or query, its token, its role, a database that is busy or full."""

WITH_BODY = (413, 415)

View = TypeVar("View", bound=Callable[..., Any])


class Strict(Schema):
    """A schema that refuses what it does not know, and says what it knows."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        names = sorted(known.data_key or name for name, known in self.load_fields.items())
        told = f"known are {', '.join(names)}" if names else "nothing is known here"
        self.error_messages = {**self.error_messages, "unknown": f"Unknown parameter; {told}"}


class NotSignedIn(Schema):
    """What is wrong with a token, in the words of Keystone's middleware."""

    code = fields.Integer(required=True)
    title = fields.String(required=True)
    message = fields.String(required=True)


class Unauthorized(Schema):
    error = fields.Nested(NotSignedIn, required=True)


class NoQuery(Strict):
    """No query parameters at all."""


@dataclass(frozen=True, slots=True)
class Operation:
    """`action` names the rule of the policy, None is for everybody.  `answers`: the good statuses and their bodies."""

    action: str | None
    answers: Mapping[int, type[Schema] | None]
    query: type[Schema] = NoQuery
    headers: type[Schema] | None = None
    body: type[Schema] | None = None
    refuses: tuple[int, ...] = ()
    """Statuses of refusals, beyond those of every operation."""
    example: Mapping[str, Any] = field(default_factory=dict)
    """An example of a body."""


def serve(blueprint: Blueprint, method: str, path: str, operation: Operation) -> Callable[[View], View]:
    """Make a function the view of an operation.  It gets what was read as `query`, `headers` and `body`."""

    def decorate(view: View) -> View:
        served: Any = _reading(blueprint, operation, view)
        served = blueprint.doc(**_described(operation))(served)
        served = public(served) if operation.action is None else _for_allowed(operation.action, served)
        blueprint.route(path, methods=[method])(served)
        return view

    return decorate


def nothing() -> ResponseReturnValue:
    """204: empty, and called JSON all the same, as the peer does."""
    answer = jsonify()
    answer.data = b""
    answer.status_code = 204
    return answer


def _reading(blueprint: Blueprint, operation: Operation, view: Any) -> Any:
    """The schemas are made here, once: making one costs more than reading with it."""
    read = blueprint.arguments
    if operation.body is not None:
        shown = {"example": dict(operation.example)} if operation.example else {}
        view = read(operation.body(), arg_name="body", **shown)(view)
    if operation.headers is not None:
        view = read(operation.headers(), location="headers", arg_name="headers")(view)
    return read(operation.query(), location="query", arg_name="query", unknown=RAISE)(view)


def _for_allowed(action: str, view: Any) -> Any:
    """Who may not do a thing need not get its body right first."""

    @wraps(view)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        require(caller(), action)
        return view(*args, **kwargs)

    return guarded


def _described(operation: Operation) -> dict[str, Any]:
    responses: dict[int, Any] = {}
    always = (400, 406) if operation.action is None else ALWAYS
    refusals = {*always, *operation.refuses, *(WITH_BODY if operation.body else ())}
    responses.update({status: HTTPStatus(status).name for status in sorted(refusals)})
    own = {**operation.answers, **({401: Unauthorized} if 401 in refusals else {})}
    for status, schema in own.items():
        content = {"content": {"application/json": {"schema": schema}}} if schema else {}
        responses[status] = {"description": HTTPStatus(status).phrase, **content}
    return {"responses": responses, **({"security": []} if operation.action is None else {})}
