"""A client that costs little: connections that stay open, requests put together beforehand."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from climate.settings import Settings


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, and how long it took, in seconds."""

    status: int
    seconds: float


class Connection:
    """One open connection; opened anew when the server has closed it."""

    def __init__(self, settings: Settings, token: str) -> None:
        self._address = (settings.host, settings.port)
        self._head = f"Host: {settings.host}:{settings.port}\r\nX-Auth-Token: {token}\r\n"
        self._socket: socket.socket | None = None

    def get(self, path: str) -> Answer:
        sent = f"GET {path} HTTP/1.1\r\n{self._head}\r\n".encode()
        begun = time.perf_counter()
        status = self._exchange(sent)
        return Answer(status, time.perf_counter() - begun)

    def post(self, path: str, body: bytes) -> Answer:
        head = f"POST {path} HTTP/1.1\r\n{self._head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        sent = f"{head}\r\n".encode() + body
        begun = time.perf_counter()
        status = self._exchange(sent)
        return Answer(status, time.perf_counter() - begun)

    def close(self) -> None:
        if self._socket:
            self._socket.close()
        self._socket = None

    def _exchange(self, sent: bytes) -> int:
        if self._socket is None:
            self._socket = socket.create_connection(self._address)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(sent)
        head, rest = self._head_of_answer()
        length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        while len(rest) < length:
            rest += self._receive()
        if b"connection: close" in head.lower():
            self.close()
        return int(head[9:12])

    def _head_of_answer(self) -> tuple[bytes, bytes]:
        known = b""
        while b"\r\n\r\n" not in known:
            known += self._receive()
        head, _, rest = known.partition(b"\r\n\r\n")
        return head, rest

    def _receive(self) -> bytes:
        part = self._socket.recv(65536) if self._socket else b""
        if not part:
            raise ConnectionError("the server closed the connection in the middle of an answer")
        return part


def at_once(connections: Sequence[Connection], path: str, bodies: Sequence[Iterator[bytes]]) -> list[list[Answer]]:
    """Let each connection post its bodies one after the other, all connections at the same time."""
    answers: list[list[Answer]] = [[] for _ in connections]
    start = threading.Barrier(len(connections))

    def work(number: int) -> None:
        start.wait()
        answers[number] = [connections[number].post(path, body) for body in bodies[number]]

    _together([lambda number=number: work(number) for number in range(len(connections))])  # type: ignore[misc]
    return answers


def _together(acts: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=act) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
