"""HTTP over blocking sockets in the calling thread; every wait ends at the thread's deadline.

An event loop and thread switches cost more CPU time per request than the request itself. Timeouts per read would not
stop a slow drip of bytes, so all waits share one deadline.
"""

import select
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from threading import Lock

from climate.compute.zones.http.exchange import KEPT_SECONDS, MOST_KEPT
from climate.compute.zones.http.messages import BrokenOff, HttpAnswer, HttpRequest, Origin, Unreachable
from climate.compute.zones.http.reading import read_answer

PIECE = 64 * 1024
"""Size of one read in bytes."""


class Deadline(threading.local):
    """Deadline of the current thread's request."""

    def __init__(self) -> None:
        self._at = 0.0

    def set(self, seconds: float) -> None:
        """Set the deadline of the calling thread, in seconds from now."""
        self._at = time.monotonic() + seconds

    def remaining(self) -> float:
        """Return the remaining seconds. Raise TimeoutError if there are none."""
        seconds = self._at - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds


@dataclass(frozen=True, slots=True)
class Server:
    """Server of a connection: its name in requests, and its host and port."""

    origin: Origin
    host: str
    port: int


@dataclass(eq=False, slots=True)
class KeptConnection:
    """Connection to a server, used by one thread at a time."""

    server: Server
    socket: socket.socket
    idle_since: float = 0.0
    """Monotonic time when its last answer was complete."""

    def has_expired(self) -> bool:
        """Return whether it was idle for too long, or the server closed it; a request on it would be lost."""
        if time.monotonic() - self.idle_since > KEPT_SECONDS:
            return True
        readable = select.poll()
        readable.register(self.socket, select.POLLIN)
        return bool(readable.poll(0))  # no request is pending: readable data means that the server closed it

    def exchange(self, request: HttpRequest, deadline: Deadline) -> tuple[HttpAnswer, bool]:
        """Send one request and read its answer; return True if the connection can be reused.

        A server may answer before it has read the whole request, and then stop reading.
        """
        head = written(request)
        failed: OSError | None = None
        try:
            self._send(head + request.content, deadline)
        except OSError as error:
            deadline.remaining()
            failed = error
        try:
            read = read_answer(lambda: self._receive(deadline), request.method)
        except OSError as error:
            deadline.remaining()  # the timeout is that of the deadline, unless the kernel reported its own
            raise BrokenOff from failed or error
        return read.answer, read.is_reusable and failed is None

    def _send(self, data: bytes, deadline: Deadline) -> None:
        left = memoryview(data)
        while left:
            self.socket.settimeout(deadline.remaining())
            left = left[self.socket.send(left) :]

    def _receive(self, deadline: Deadline) -> bytes:
        self.socket.settimeout(deadline.remaining())
        return self.socket.recv(PIECE)


class BlockingPool:
    """Connection pool shared by threads. `executor` resolves names, because a lookup cannot be interrupted."""

    def __init__(self, tls: ssl.SSLContext, executor: Executor) -> None:
        self.deadline = Deadline()
        self._tls, self._executor = tls, executor
        self._lock = Lock()
        self._idle: list[KeptConnection] = []
        """Idle connections, the longest idle first."""
        self._is_closed = False

    @property
    def idle(self) -> Sequence[KeptConnection]:
        """Return the idle connections."""
        with self._lock:
            return tuple(self._idle)

    def exchange(self, request: HttpRequest, address: tuple[str, int]) -> HttpAnswer:
        """Send one request until the deadline, and return its answer. Raises as `Transport.hold` does."""
        server = Server(request.origin, *address)
        connection = self._taken(server) or self._opened(server)
        try:
            answer, is_reusable = connection.exchange(request, self.deadline)
        except BaseException:
            connection.socket.close()
            raise
        if is_reusable:
            self._release(connection)
        else:
            connection.socket.close()
        return answer

    def close(self) -> None:
        """Close idle connections now, and others after their answer."""
        with self._lock:
            self._is_closed, closed, self._idle = True, self._idle, []
        for connection in closed:
            connection.socket.close()

    def _taken(self, server: Server) -> KeptConnection | None:
        """Return the most recently used working connection to a server, or None."""
        while True:
            with self._lock:
                result = next((one for one in reversed(self._idle) if one.server == server), None)
                if result is None:
                    return None
                self._idle.remove(result)
            if not result.has_expired():
                return result
            result.socket.close()

    def _release(self, connection: KeptConnection) -> None:
        """Return a connection to the pool; close connections that are idle for too long or exceed the maximum."""
        connection.idle_since = now = time.monotonic()
        closed = []
        with self._lock:
            if self._is_closed:
                closed.append(connection)
            else:
                self._idle.append(connection)
            while len(self._idle) > MOST_KEPT or (self._idle and now - self._idle[0].idle_since > KEPT_SECONDS):
                closed.append(self._idle.pop(0))
        for one in closed:
            one.socket.close()

    def _opened(self, server: Server) -> KeptConnection:
        """Open a connection. Raise Unreachable with the cause, or TimeoutError."""
        try:
            plain = self._connected(server)
            return KeptConnection(server, self._encrypted(plain, server.origin))
        except OSError as error:
            self.deadline.remaining()
            raise Unreachable from error

    def _connected(self, server: Server) -> socket.socket:
        """Connect to the first address of a host that accepts; each gets a share of the remaining time."""
        addresses = self._addresses(server)
        for index, address in enumerate(addresses, start=1):
            share = self.deadline.remaining() / (len(addresses) - index + 1)
            try:
                result = socket.create_connection((address, server.port), timeout=share)
                result.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return result
            except OSError:
                if index == len(addresses):
                    raise
        raise OSError("the host has no address")

    def _addresses(self, server: Server) -> list[str]:
        looked_up = self._executor.submit(socket.getaddrinfo, server.host, server.port, type=socket.SOCK_STREAM)
        try:
            return [str(result[4][0]) for result in looked_up.result(self.deadline.remaining())]
        finally:
            looked_up.cancel()  # one that has not begun must not wait for its turn when nobody waits for it

    def _encrypted(self, plain: socket.socket, origin: Origin) -> socket.socket:
        if origin.scheme == "http":
            return plain
        try:
            plain.settimeout(self.deadline.remaining())
            return self._tls.wrap_socket(plain, server_hostname=origin.host)
        except BaseException:
            plain.close()
            raise


def written(request: HttpRequest) -> bytes:
    """Return the head of a request. Raise ValueError for line breaks or non-ASCII characters."""
    lines = [
        f"{request.method} {request.target} HTTP/1.1",
        f"Host: {request.origin.authority}",
        *(f"{name}: {value}" for name, value in request.headers),
        f"Content-Length: {len(request.content)}",
    ]
    text = "\r\n".join(lines)
    breaks = len(lines) - 1
    if text.count("\r") != breaks or text.count("\n") != breaks or "\0" in text or lines[0].count(" ") != 2:
        raise ValueError("a header or the path of a request has a line break or a blank")
    return f"{text}\r\n\r\n".encode("ascii")
