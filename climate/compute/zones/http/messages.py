"""One HTTP request to a child zone, its answer, and the ways in which it can fail."""

from collections.abc import Sequence
from dataclasses import dataclass, field

MOST_BYTES = 16 * 1024 * 1024
"""Longest answer that is read."""

SAFE = frozenset({"GET", "HEAD"})
"""Methods of requests that may be sent twice."""

PORTS = {"http": 80, "https": 443}


class Unreachable(Exception):
    """No connection could be made, so nothing was sent.  The cause is the OSError."""


class BrokenOff(Exception):
    """The connection ended before the answer did, or what came is not HTTP."""


class TooLong(Exception):
    """The answer is longer than MOST_BYTES."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A server: scheme, host and port of a URL."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """The server as a Host header names it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request for a path of a server, with its query; both are quoted."""

    origin: Origin
    method: str
    target: str
    headers: Sequence[tuple[str, str]] = field(repr=False)
    content: bytes = field(default=b"", repr=False)

    @property
    def is_safe(self) -> bool:
        """Return whether sending it twice does no more than sending it once."""
        return self.method in SAFE


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer, whatever its status; names of headers are in lower case."""

    status: int
    headers: dict[str, str] = field(repr=False)
    content: bytes = field(repr=False)
