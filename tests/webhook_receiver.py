"""A server on the loopback that is posted to: it remembers what it got, and answers as a test tells it to."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Got:
    """One request."""

    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.content)


Answer = Callable[["Exchange"], None]


@dataclass
class Exchange:
    """A request that waits for its answer."""

    got: Got
    handler: BaseHTTPRequestHandler
    over: threading.Event

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.handler.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(body)

    def raw(self, content: bytes) -> None:
        self.handler.wfile.write(content)
        self.handler.close_connection = True

    def hang(self) -> None:
        self.over.wait()

    def drip(self) -> None:
        """A header without end, a byte at a time."""
        self.handler.wfile.write(b"HTTP/1.1 204 x\r\nX: ")
        while not self.over.wait(0.02):
            self.handler.wfile.write(b"x")


@dataclass
class Receiver:
    url: str = ""
    got: list[Got] = field(default_factory=list)
    answer: Answer = lambda exchange: exchange.say(204)
    over: threading.Event = field(default_factory=threading.Event)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that says 204 until it is told otherwise."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            got = Got(self.command, self.path, dict(self.headers), content)
            receiver.got.append(got)
            with suppress(OSError):
                receiver.answer(Exchange(got, self, receiver.over))

        do_POST = do_GET = _serve  # noqa: N815

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 64

    server = Server(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
