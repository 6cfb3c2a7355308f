"""Request ids, access log and request counters."""

import re
from time import perf_counter
from uuid import uuid4

import structlog
from flask import Flask, Response, current_app, g, request
from structlog.contextvars import bind_contextvars, clear_contextvars

from api.ops.request_counters import tally
from api.path_aliases import without_secret

GLOBAL_ID = re.compile(r"req-[0-9a-fA-F-]{36}")

log = structlog.get_logger("climate.access")


def install(app: Flask) -> None:
    """Install the request id, and the log line and counters of each answered request."""
    app.before_request(_begin)
    app.after_request(_end)


def _begin() -> None:
    g.began = perf_counter()
    g.request_id = f"req-{uuid4()}"
    clear_contextvars()
    bind_contextvars(request_id=g.request_id)
    inbound = request.headers.get("X-OpenStack-Request-ID", "")
    if GLOBAL_ID.fullmatch(inbound):
        bind_contextvars(global_request_id=inbound)


def _end(response: Response) -> Response:
    response.headers["x-openstack-request-id"] = g.request_id
    if request.path.startswith("/compute/"):
        response.headers["x-compute-request-id"] = g.request_id
    response.headers["X-Content-Type-Options"] = "nosniff"
    seconds = perf_counter() - g.began
    route = request.url_rule.rule if request.url_rule else "(none)"
    tally(current_app).count(route, request.method, response.status_code, seconds)
    log.info(
        "request",
        method=request.method,
        path=without_secret(request.path)[:200],
        status=response.status_code,
        milliseconds=round(seconds * 1000, 1),
        address=request.remote_addr,
    )
    return response
