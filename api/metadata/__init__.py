"""Application of the metadata service, which runs on the network host and answers guests in plain text."""

from collections.abc import Mapping
from http import HTTPStatus

import structlog
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from climate.compute import Compute
from climate.compute.errors import BadRequest, Conflict, NotFound
from climate.compute.metadata import guest_password, metadata_service
from climate.store import db_errors

FORWARDED = ("X-Forwarded-For", "Forwarded", "X-Forwarded-Host")
"""Headers of proxies: a server that forwards requests of others would otherwise disclose its metadata."""

LONGEST_PATH = 1000
LONGEST_BODY = 4096
"""Maximum number of bytes of a posted body; a longer one gets 413."""
STATUS: Mapping[type[Exception], HTTPStatus] = {
    NotFound: HTTPStatus.NOT_FOUND,
    BadRequest: HTTPStatus.BAD_REQUEST,
    Conflict: HTTPStatus.CONFLICT,
}

log = structlog.get_logger("climate.metadata")


def create_app(compute: Compute) -> Flask:
    """Return the application; it identifies a server by the source address of the connection alone."""
    app = Flask("metadata", static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.config["MAX_CONTENT_LENGTH"] = LONGEST_BODY
    app.url_map.merge_slashes = False

    def view(path: str = "") -> Response:
        refusal = _refusal(path)
        if refusal is not None:
            return refusal
        made = metadata_service.document(compute, request.remote_addr or "", path)
        return _answer(HTTPStatus.OK, made.content, made.kind)

    def post(version: str) -> Response:
        refusal = _refusal(request.path.removeprefix("/"))
        if refusal is not None:
            return refusal
        if version not in metadata_service.OPENSTACK_VERSIONS:
            raise MethodNotAllowed(("GET", "HEAD"))
        guest_password.post(compute, request.remote_addr or "", request.get_data())
        return _answer(HTTPStatus.OK, b"", metadata_service.TEXT)

    app.add_url_rule("/", "root", view)
    app.add_url_rule("/<path:path>", "document", view)
    password = f"/{metadata_service.OPENSTACK}/<version>/{metadata_service.PASSWORD}"
    app.add_url_rule(password, "password", post, methods=["POST"])
    app.register_error_handler(Exception, _failed)
    app.after_request(_log)
    return app


def _refusal(path: str) -> Response | None:
    header = next((name for name in FORWARDED if name in request.headers), None)
    if header is not None:
        message = f"The request has the header {header}, which proxies add; send it from the server without a proxy."
        return _plain(HTTPStatus.FORBIDDEN, message)
    if len(path) > LONGEST_PATH:
        message = f"The path has {len(path)} characters; the longest path has {LONGEST_PATH}."
        return _plain(HTTPStatus.REQUEST_URI_TOO_LONG, message)
    return None


def _failed(error: Exception) -> Response:
    status = STATUS.get(type(error))
    if status is not None:
        return _plain(status, str(error))
    if isinstance(error, HTTPException):
        refused = error.get_response()
        allowed = {"Allow": refused.headers["Allow"]} if "Allow" in refused.headers else {}
        answer = _plain(refused.status_code, error.description or refused.status)
        answer.headers.update(allowed)
        return answer
    if db_errors.is_transient(error):
        log.warning("the database did not serve a request", error=type(error).__name__, reason=str(error)[:200])
        return _plain(HTTPStatus.SERVICE_UNAVAILABLE, "The metadata cannot be read at the moment; try again.")
    log.error("unforeseen failure", exc_info=error)
    return _plain(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal Server Error")


def _plain(status: int, message: str) -> Response:
    return _answer(status, f"{message}\n".encode(), metadata_service.TEXT)


def _answer(status: int, content: bytes, kind: str) -> Response:
    headers = {"Content-Type": kind, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    return Response(content, status, headers)


def _log(response: Response) -> Response:
    log.info(
        "request",
        method=request.method,
        path=request.path[:200],
        status=response.status_code,
        address=request.remote_addr,
    )
    return response
