"""A server that says over HTTP what a test tells it to, and remembers what it was sent."""

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

SYSTEM = {
    "PowerState": "Off",
    "Actions": {
        "#ComputerSystem.Reset": {
            "target": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset",
            "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "GracefulShutdown"],
        }
    },
}


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def system(**changes: Any) -> bytes:
    return answer(json.dumps({**SYSTEM, **changes}).encode())


def action(**changes: Any) -> bytes:
    """A system whose reset is described otherwise; what is None is not described."""
    reset = {**SYSTEM["Actions"]["#ComputerSystem.Reset"], **changes}  # type: ignore[index]
    return system(Actions={"#ComputerSystem.Reset": {key: value for key, value in reset.items() if value is not None}})


@dataclass
class Hostile:
    """Gives its answers to one connection each, then takes no more; `drip`: one byte at a time, for ever."""

    listener: socket.socket
    answers: list[bytes] = field(default_factory=list)
    drip: bytes = b""
    requests: list[bytes] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def posted(self) -> list[Mapping[str, Any]]:
        return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in self.requests if request[:4] == b"POST"]

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with connection, suppress(OSError):
                    self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        self.requests.append(_request(connection))
        connection.sendall(self.answers.pop(0) if self.answers else b"")
        while self.drip and not self.over.wait(0.02):
            connection.sendall(self.drip)


def _request(connection: socket.socket) -> bytes:
    """One request, whole."""
    read = b""
    while piece := connection.recv(65536):
        read += piece
        head, ended, body = read.partition(b"\r\n\r\n")
        sizes = [int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        if ended and len(body) >= sum(sizes):
            break
    return read


@contextmanager
def serving() -> Iterator[Hostile]:
    hostile = Hostile(socket.create_server(("127.0.0.1", 0)))
    thread = threading.Thread(target=hostile.serve)
    thread.start()
    try:
        yield hostile
    finally:
        hostile.over.set()
        hostile.listener.shutdown(socket.SHUT_RDWR)
        hostile.listener.close()
        thread.join()
