"""One HTTP/1.1 connection that never blocks: where it would, it yields the socket that it waits for."""

import errno
import os
import select
import socket
import ssl
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import h11
import httpx

MOST_BYTES = 16 * 1024 * 1024
"""Longest answer that is read."""

PIECE = 64 * 1024
LONGEST_HEAD = 64 * 1024

PATIENCE = 1.0
"""Seconds after which the next address of a host is tried, when it has several."""

SAFE = frozenset({"GET", "HEAD"})
"""Methods of requests that may be sent twice."""

PORTS = {"http": 80, "https": 443}

Address = tuple[int, Any]
"""Family, and address as sockets of that family take it."""


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


@dataclass(frozen=True, slots=True)
class Wait:
    """A file descriptor and the events of select.poll that are waited for, or the seconds until it goes on without."""

    number: int
    events: int
    seconds: float | None = None


Addresses = Generator[Wait, bool, Sequence[Address]]


class _Closed(Exception):
    """The server closed the connection before it answered anything."""

    def __init__(self, *, is_unsent: bool) -> None:
        super().__init__()
        self.is_unsent = is_unsent


class Connection:
    """An open connection, used by one thread at a time."""

    def __init__(self, sock: socket.socket, origin: Origin) -> None:
        self.origin = origin
        self.idle_since = time.monotonic()
        self._socket = sock
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD)
        self._is_kept = False

    @property
    def is_quiet(self) -> bool:
        """Return whether nothing has come since the last answer, not even the end of the connection."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)

    @property
    def is_reusable(self) -> bool:
        """Return whether both sides are ready for another request."""
        return self._is_kept

    def close(self) -> None:
        """Close the socket; an answer that is still under way is lost."""
        self._socket.close()

    def exchange(self, request: HttpRequest) -> Generator[Wait, bool, HttpAnswer | None]:
        """Send a request and read its answer.

        None: the server had closed the connection, which was kept from earlier,
        and the request may be sent over another one.
        """
        was_kept, self._is_kept = self._is_kept, False
        try:
            is_sent = yield from self._send(self._written(request))
            answer = yield from self._read()
        except _Closed as closed:
            if was_kept and (request.is_safe or closed.is_unsent):
                return None
            raise BrokenOff from closed
        except h11.ProtocolError as error:
            raise BrokenOff from error
        if is_sent and self._http.our_state is self._http.their_state is h11.DONE and not self._http.trailing_data[0]:
            self._http.start_next_cycle()
            self._is_kept, self.idle_since = True, time.monotonic()
        return answer

    def _written(self, request: HttpRequest) -> bytes:
        headers = [("Host", self.origin.authority), *request.headers]
        if request.content or not request.is_safe:
            headers.append(("Content-Length", str(len(request.content))))
        head = h11.Request(method=request.method, target=request.target, headers=headers)
        body = [h11.Data(data=request.content)] if request.content else []
        return b"".join(self._http.send(event) or b"" for event in (head, *body, h11.EndOfMessage()))

    def _send(self, content: bytes) -> Generator[Wait, bool, bool]:
        """Return whether all was sent: a server may answer before, and close."""
        left = memoryview(content)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                yield Wait(self._socket.fileno(), select.POLLOUT)
            except ssl.SSLWantReadError:
                yield Wait(self._socket.fileno(), select.POLLIN)
            except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                if len(left) == len(content):
                    raise _Closed(is_unsent=True) from None
                return False
        return True

    def _read(self) -> Generator[Wait, bool, HttpAnswer]:
        head: h11.Response | None = None
        content, is_begun = bytearray(), False
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                piece = yield from self._receive()
                if not piece and not is_begun:
                    raise _Closed(is_unsent=False)
                is_begun = True
                self._http.receive_data(piece)
            elif isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                content += event.data
                if len(content) > MOST_BYTES:
                    raise TooLong
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
                return HttpAnswer(head.status_code, headers, bytes(content))
            elif not isinstance(event, h11.InformationalResponse):
                raise BrokenOff

    def _receive(self) -> Generator[Wait, bool, bytes]:
        while True:
            try:
                return self._socket.recv(PIECE)
            except (BlockingIOError, ssl.SSLWantReadError):
                yield Wait(self._socket.fileno(), select.POLLIN)
            except ssl.SSLWantWriteError:
                yield Wait(self._socket.fileno(), select.POLLOUT)
            except (ConnectionResetError, ssl.SSLError):
                return b""


def connect(
    origin: Origin, addresses: Addresses, tls: Callable[[], ssl.SSLContext]
) -> Generator[Wait, bool, Connection]:
    """Connect to the first address that accepts; Unreachable when none does.  `tls` is for https."""
    problem: Exception | None = None
    try:
        found = yield from addresses
    except (OSError, UnicodeError) as error:
        raise Unreachable from error
    for number, address in enumerate(found, 1):
        try:
            sock = yield from _connected(address, PATIENCE if number < len(found) else None)
            return Connection((yield from _secured(sock, origin, tls)), origin)
        except OSError as error:
            problem = error
    raise Unreachable from problem


def _connected(address: Address, seconds: float | None) -> Generator[Wait, bool, socket.socket]:
    family, place = address
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        problem = sock.connect_ex(place)
        if problem == errno.EINPROGRESS:
            ready = yield Wait(sock.fileno(), select.POLLOUT, seconds)
            problem = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if ready else errno.ETIMEDOUT
        if problem:
            raise OSError(problem, os.strerror(problem))
    except BaseException:
        sock.close()
        raise
    return sock


def _secured(
    sock: socket.socket, origin: Origin, tls: Callable[[], ssl.SSLContext]
) -> Generator[Wait, bool, socket.socket]:
    if origin.scheme != "https":
        return sock
    secured = tls().wrap_socket(sock, server_hostname=origin.host, do_handshake_on_connect=False)
    try:
        yield from _shake_hands(secured)
    except BaseException:
        secured.close()
        raise
    return secured


def _shake_hands(sock: ssl.SSLSocket) -> Generator[Wait, bool, None]:
    while True:
        try:
            return sock.do_handshake()
        except ssl.SSLWantReadError:
            yield Wait(sock.fileno(), select.POLLIN)
        except ssl.SSLWantWriteError:
            yield Wait(sock.fileno(), select.POLLOUT)


@cache
def authorities() -> ssl.SSLContext:
    """The authorities that are trusted; read once, because reading them takes longer than a talk."""
    return httpx.create_ssl_context()
