"""Answers of the web server itself, to requests that reach no application: JSON in the form of Identity.

Clients of all OpenStack APIs read the message of a body with one key.
"""

import json
import ssl
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from gunicorn import util  # type: ignore[import-untyped]
from gunicorn.http import errors  # type: ignore[import-untyped]

LONGEST_MESSAGE = 300

STATUS: Mapping[type[Exception], int] = {
    errors.InvalidResponseHeader: 500,  # the application's fault, although they are kinds of the next ones
    errors.InvalidResponseHeaderName: 500,
    errors.ConfigurationProblem: 500,
    errors.LimitRequestLine: 414,
    errors.LimitRequestHeaders: 431,
    errors.UnsupportedTransferCoding: 501,
    errors.ExpectationFailed: 417,
    errors.ForbiddenProxyRequest: 403,
    ssl.SSLError: 403,
    errors.ParseException: 400,
}
"""An error's status is that of the first ancestor listed; any other is the application's, 500."""

ADVICE: Mapping[int, str] = {
    408: "send the whole request within a minute",
    414: "shorten the URL",
    431: "send fewer or shorter headers",
    501: "send the body with Content-Length, or with Transfer-Encoding: chunked",
}
"""What would be right, by status."""

SLOW = "The body came too slowly while others wait, or so slowly that it hardly came at all"
LATE = "The request did not arrive in time"
LONG_HEAD = "The request line and the headers are too long"


def answer(status: int, message: str, advice: str = "") -> bytes:
    """Return the answer that closes a connection, with this advice or the usual one of its status."""
    advice = advice or ADVICE.get(status, "")
    title = HTTPStatus(status).phrase
    error = {"code": status, "title": title, "message": f"{message[:LONGEST_MESSAGE]}{advice and f'; {advice}'}"}
    body = json.dumps({"error": error}).encode()
    lines = [f"HTTP/1.1 {status} {title}", "Connection: close", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def status_of(error: Exception) -> int:
    """Return the status for an error of the server or of the application."""
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)


class RefusesInJson:
    """Part of a worker of gunicorn: its own answers to errors are JSON instead of HTML."""

    log: Any

    def handle_error(self, req: object, client: Any, addr: Any, exc: Exception) -> None:
        """Answer an error that no application answers, and log it; an unknown one is answered without details."""
        status = status_of(exc)
        if status == HTTPStatus.INTERNAL_SERVER_ERROR:
            where = f"{getattr(req, 'method', '?')} {getattr(req, 'uri', '?')}"
            self.log.error("Error handling request %s", where, exc_info=exc)
            message = "The server failed"
        else:
            self.log.warning("Invalid request from ip=%s: %s", addr[0] if addr else "", exc)
            message = str(exc)
        with suppress(OSError):
            util.write_nonblock(client, answer(status, message))
