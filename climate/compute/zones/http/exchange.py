"""The exchange of one HTTP request by httpcore, with its errors translated."""

from typing import Any, NoReturn

import httpcore

from climate import exception_chain
from climate.compute.zones.http.messages import MOST_BYTES, BrokenOff, HttpAnswer, HttpRequest, TooLong, Unreachable

MOST_KEPT = 64
"""Maximum number of connections in a pool, over all servers."""

KEPT_SECONDS = 15.0
"""Seconds after which an idle connection is closed."""

POOL: dict[str, Any] = {
    "max_connections": None,
    "max_keepalive_connections": MOST_KEPT,
    "keepalive_expiry": KEPT_SECONDS,
}
"""Arguments of connection pools."""

UNREACHABLE = (httpcore.ConnectError, httpcore.ConnectTimeout)
FAILED = (httpcore.ProtocolError, httpcore.NetworkError, httpcore.TimeoutException)


def request_to(address: tuple[str, int], request: HttpRequest) -> httpcore.Request:
    """Return the request for httpcore to a host and port."""
    origin = request.origin
    name, port = address
    return httpcore.Request(
        request.method,
        httpcore.URL(
            scheme=origin.scheme,
            host=name if name.isascii() else name.encode("idna"),
            port=port,
            target=request.target,
        ),
        headers=[("Host", origin.authority), *request.headers, ("Content-Length", str(len(request.content)))],
        content=request.content,
        extensions={"sni_hostname": origin.host},
    )


class Body:
    """Body of an answer. Raises TooLong above MOST_BYTES."""

    def __init__(self) -> None:
        self.content = bytearray()

    def add(self, piece: bytes) -> None:
        """Append a chunk."""
        self.content += piece
        if len(self.content) > MOST_BYTES:
            raise TooLong


def answer_of(response: httpcore.Response, body: Body) -> HttpAnswer:
    """Return a completely read answer."""
    known = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
    return HttpAnswer(response.status, known, bytes(body.content))


def fail(error: Exception) -> NoReturn:
    """Convert an error of httpcore to Unreachable or BrokenOff, with the cause."""
    if isinstance(error, UNREACHABLE):
        raise Unreachable from _reason(error)
    raise BrokenOff from error


def _reason(error: Exception) -> BaseException:
    """Return the operating system's error behind an error, or the error itself."""
    causes = [
        cause for cause in exception_chain.of(error) if isinstance(cause, OSError) and (cause.strerror or cause.errno)
    ]
    return causes[-1] if causes else error
