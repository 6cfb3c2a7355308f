"""HTTP status and body of each error, in the form of the API that was called."""

import errno
import time
from collections.abc import Iterator, Mapping

import structlog
from flask import Flask, Response, current_app, jsonify, request
from gunicorn.http.errors import ParseException  # type: ignore[import-untyped]
from marshmallow import ValidationError
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge

from api import unknown_paths
from api.error_formats import Problem, body_of
from api.path_aliases import ASKED
from api.request_context import IDENTITY_URL, disk_watch
from climate.domain import errors
from climate.store import db_errors

STATUS: Mapping[type[Exception], int] = {
    errors.InvalidInput: 400,
    errors.NotAuthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.PreconditionFailed: 412,
    errors.KeyReused: 422,
    errors.TooManyAttempts: 429,
    errors.TooManyRequests: 429,
    errors.Unavailable: 503,
    errors.UnreadableLease: 503,
    errors.UnreadableFact: 503,
    errors.DiskFull: 507,
    ParseException: 400,
}
"""An error's status is that of its nearest ancestor; ParseException is the web server's, of a body in wrong pieces."""

KNOWN = "climate.statuses"
DRAINED = 16 * 1024 * 1024
"""Bytes of a refused body that are still read, so that the client receives the answer."""

DRAIN_SECONDS = 2.0
"""Time in which they are read: a client that sends slowly holds no thread for longer."""
_PIECE = 8192
"""Bytes that one read waits for: the time is looked at between two reads."""

MAKE_ROOM = "An operator has to free some space."

log = structlog.get_logger(__name__)


def install(app: Flask) -> None:
    """Install the error handlers of `app`."""
    app.extensions[KNOWN] = dict(STATUS)
    app.register_error_handler(HTTPException, answer)
    app.register_error_handler(Exception, answer)


def teach(app: Flask, statuses: Mapping[type[Exception], int]) -> None:
    """Register the HTTP statuses of a package's own errors."""
    app.extensions[KNOWN].update(statuses)


def answer(error: Exception) -> Response:
    """Return the answer for an error, in the form of the API that has the path."""
    problem = problem_of(error)
    if isinstance(error, RequestEntityTooLarge):
        _drain()
    response = jsonify(body_of(request.path, problem))
    response.status_code = problem.status
    response.headers.update(problem.headers)
    if problem.status == 401:
        response.headers["WWW-Authenticate"] = f'Keystone uri="{current_app.config[IDENTITY_URL]}"'
    return response


def problem_of(error: Exception) -> Problem:
    """Return an error as clients see it; unknown errors are logged and answered with 500 without details."""
    full = _full_disk(error)
    if full:
        disk_watch().note(full)
        error = errors.DiskFull(f"{full[0].upper()}{full[1:]} is full; nothing was changed. {MAKE_ROOM}")
    if isinstance(error, errors.UnreadableLease):
        log.error("a lease cannot be read", lease_id=str(error.lease_id), exc_info=error)
    if isinstance(error, errors.UnreadableFact):
        log.error("a fact of the journal cannot be read", exc_info=error)
    status = _status(type(error))
    if status is not None:
        details = getattr(error, "details", {})
        return Problem(status, str(error), type(error).__name__, headers=_retry_after(error), details=details)
    if isinstance(error, HTTPException):
        return _of_framework(error)
    if isinstance(error, ValidationError):
        return problem_of(errors.InvalidInput(describe(error.messages)))
    if db_errors.is_transient(error):
        log.warning("the database did not serve a request", error=type(error).__name__, reason=str(error)[:200])
        return problem_of(errors.Unavailable())
    if db_errors.unusable_value(error):
        log.warning("a value reached the database that it cannot store", exc_info=error)
        return problem_of(errors.InvalidInput())
    if isinstance(error, ConnectionResetError):  # of the client: databases and brokers have errors of their own
        log.info("the body of a request did not arrive", reason=str(error))
        return Problem(408, "The body did not arrive; repeat the request", "RequestTimeout")
    log.error("unforeseen failure", exc_info=error)
    return Problem(500, "Internal Server Error", "InternalServerError", foreseen=False)


def _full_disk(error: Exception) -> str | None:
    """Return the name of the disk that was full; None for another error."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk of the web process"
    return "the disk of the database" if db_errors.disk_full(error) else None


def describe(messages: object) -> str:
    """Return the errors of a schema as one sentence with the fields and what would be right."""
    result = list(_leaves(messages, ""))
    missing = sorted(field for field, text in result if text == MISSING)
    parts = [f"Missing parameter {', '.join(missing)}"] if missing else []
    parts += [f"{field}: {text}" if field else text for field, text in result if text != MISSING]
    return "; ".join(parts)


MISSING = "Missing data for required field."
"""Message of marshmallow for a missing required field."""

WHERE = ("json", "query", "headers", "path", "_schema")
"""Levels of a schema's messages that name the location and not a field."""


def _leaves(messages: object, field: str) -> Iterator[tuple[str, str]]:
    if isinstance(messages, dict):
        for key, inner in messages.items():
            named = field if key in WHERE else f"{field}.{key}".lstrip(".")
            yield from _leaves(inner, named)
    elif isinstance(messages, list):
        for inner in messages:
            yield from _leaves(inner, field)
    else:
        yield field, str(messages)


def _status(kind: type[Exception]) -> int | None:
    known: Mapping[type, int] = current_app.extensions[KNOWN]
    return next((known[ancestor] for ancestor in kind.__mro__ if ancestor in known), None)


def _of_framework(error: HTTPException) -> Problem:
    messages = getattr(error, "data", {}).get("messages")
    if messages:
        return Problem(400, describe(messages), "InvalidInput")
    headers = {key: value for key, value in error.get_headers() if key in ("Allow", "Retry-After")}
    name = f"HTTP{error.name.replace(' ', '')}"
    return Problem(error.code or 500, _message(error, headers), name, headers, framework=True)


def _message(error: HTTPException, headers: Mapping[str, str]) -> str:
    """Return the description of an error, or of a request without a route what would be right."""
    given: str = request.environ.get(ASKED, "") or request.environ["PATH_INFO"]
    asked = given.encode("latin-1").decode("utf-8", "replace")
    if isinstance(error, MethodNotAllowed):
        return unknown_paths.no_method(request.method, asked, headers)
    if isinstance(error, NotFound) and request.url_rule is None:
        return unknown_paths.no_path(asked, request.path, current_app.url_map)
    return error.description or error.name


def _retry_after(error: Exception) -> Mapping[str, str]:
    seconds = getattr(error, "retry_after", None)
    return {} if seconds is None else {"Retry-After": str(seconds)}


def _drain() -> None:
    """Read the rest of the body, because closing with unread data resets the connection before the client reads the
    answer.
    """
    in_pieces = DRAINED if request.environ.get("wsgi.input_terminated") else 0
    stream, left = request.environ["wsgi.input"], min(request.content_length or in_pieces, DRAINED)
    ends = time.monotonic() + DRAIN_SECONDS
    while left > 0 and time.monotonic() < ends:
        piece = stream.read(min(left, _PIECE))
        if not piece:
            return
        left -= len(piece)
