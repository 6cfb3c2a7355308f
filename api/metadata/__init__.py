"""Application of the metadata service, which runs on the network host and answers guests in plain text."""

from http import HTTPStatus

import structlog
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from climate.compute import Compute
from climate.compute.errors import NotFound
from climate.compute.metadata import metadata_service
from climate.store import db_errors

FORWARDED = ("X-Forwarded-For", "Forwarded", "X-Forwarded-Host")
"""Headers of proxies: a server that forwards requests of others would otherwise disclose its metadata."""

LONGEST_PATH = 1000

log = structlog.get_logger("climate.metadata")


def create_app(compute: Compute) -> Flask:
    """Return the application; it identifies a server by the source address of the connection alone."""
    app = Flask("metadata", static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.merge_slashes = False

    def view(path: str = "") -> Response:
        refusal = _refusal(path)
        if refusal is not None:
            return refusal
        made = metadata_service.document(compute, request.remote_addr or "", path)
        return _answer(HTTPStatus.OK, made.content, made.kind)

    app.add_url_rule("/", "root", view)
    app.add_url_rule("/<path:path>", "document", view)
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
    if isinstance(error, NotFound):
        return _plain(HTTPStatus.NOT_FOUND, str(error))
    if isinstance(error, HTTPException):
        refused = error.get_response()
        allowed = {"Allow": refused.headers["Allow"]} if "Allow" in refused.headers else {}
        answer = _plain(refused.status_code, error.description or refused.status)
        answer.headers.update(allowed)
        return answer
    if db_errors.passing(error):
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
