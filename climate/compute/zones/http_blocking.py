"""HTTP on blocking sockets, in the thread that asks: every wait ends at the deadline of that thread.

An event loop and the switches between threads cost one talk more processor time
than the talk itself.  The time-outs of httpcore are for each read, and with them
an answer that drips would never be late: the streams here know the deadline.
"""

import socket
import ssl
import threading
import time
from concurrent.futures import Executor
from typing import Any

import httpcore

from climate.compute.zones.http_exchange import FAILED, POOL, Body, answer_of, fail, request_to
from climate.compute.zones.http_messages import HttpAnswer, HttpRequest


class Deadline(threading.local):
    """The moment at which the talk of a thread ends."""

    def __init__(self) -> None:
        self._at = 0.0

    def set(self, seconds: float) -> None:
        """End the waits of the calling thread in so many seconds."""
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left; TimeoutError when there are none."""
        seconds = self._at - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds


class BlockingPool:
    """Connections that threads share.  `executor` looks up names, since a look-up cannot be ended."""

    def __init__(self, tls: ssl.SSLContext, executor: Executor) -> None:
        self.deadline = Deadline()
        backend = _Backend(self.deadline, executor)
        self.connections = httpcore.ConnectionPool(ssl_context=tls, network_backend=backend, **POOL)

    def exchange(self, request: HttpRequest, address: tuple[str, int]) -> HttpAnswer:
        """Send one request until the deadline, and read its answer; the errors are those of `Transport.hold`."""
        body = Body()
        try:
            response = self.connections.handle_request(request_to(address, request))
            try:
                for piece in response.iter_stream():
                    body.add(piece)
            finally:
                response.close()
        except FAILED as error:
            self.deadline.left()  # the time-out of a wait is that of the talk, unless the system has ended it
            fail(error)
        return answer_of(response, body)


class _Backend(httpcore.NetworkBackend):
    """Opens connections."""

    def __init__(self, deadline: Deadline, executor: Executor) -> None:
        self._deadline, self._executor, self._sockets = deadline, executor, httpcore.SyncBackend()

    def connect_tcp(self, host: str, port: int, *_args: Any, **_options: Any) -> httpcore.NetworkStream:
        """Connect to the first address of a host that accepts; each gets its share of the time that is left."""
        addresses = self._addresses(host, port)
        for place, address in enumerate(addresses, start=1):
            share = self._deadline.left() / (len(addresses) - place + 1)
            try:
                return _Stream(self._sockets.connect_tcp(address, port, timeout=share), self._deadline)
            except FAILED:
                if place == len(addresses):
                    raise
        raise httpcore.ConnectError("the host has no address")

    def _addresses(self, host: str, port: int) -> list[str]:
        looked_up = self._executor.submit(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        try:
            return [str(found[4][0]) for found in looked_up.result(self._deadline.left())]
        except socket.gaierror as error:
            raise httpcore.ConnectError(str(error)) from error


class _Stream(httpcore.NetworkStream):
    """A connection whose waits end at the deadline of the thread that uses it."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream, self._deadline = stream, deadline
        self._socket: socket.socket = stream.get_extra_info("socket")

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what has come; nothing at the end of the connection."""
        return self._stream.read(max_bytes, self._deadline.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of it."""
        try:
            while buffer:
                self._socket.settimeout(self._deadline.left())
                buffer = buffer[self._socket.send(buffer) :]
        except OSError as error:
            self._deadline.left()
            raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
        """End the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Encrypt the connection."""
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, self._deadline.left()), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """Return what is known of the connection."""
        return self._stream.get_extra_info(info)
