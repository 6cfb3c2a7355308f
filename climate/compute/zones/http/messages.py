"""Values of an HTTP request to a child zone: request, answer, errors."""

from collections.abc import Sequence
from dataclasses import dataclass, field

MOST_BYTES = 16 * 1024 * 1024
"""Maximum size of an answer in bytes."""

SAFE = frozenset({"GET", "HEAD"})
"""Idempotent methods, which may be sent twice."""

PORTS = {"http": 80, "https": 443}


class Unreachable(Exception):
    """Raised if no connection could be made, so that nothing was sent. The cause is the OSError."""


class BrokenOff(Exception):
    """Raised if the connection ended before the answer was complete, or the answer is not HTTP."""


class TooLong(Exception):
    """Raised if the answer is longer than MOST_BYTES."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Server: scheme, host and port of a URL."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """Return the value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """Request for a path of a server, with its query; both are quoted."""

    origin: Origin
    method: str
    target: str
    headers: Sequence[tuple[str, str]] = field(repr=False)
    content: bytes = field(default=b"", repr=False)

    @property
    def is_safe(self) -> bool:
        """Return whether the request is idempotent."""
        return self.method in SAFE


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Answer with any status; header names are in lower case."""

    status: int
    headers: dict[str, str] = field(repr=False)
    content: bytes = field(repr=False)
