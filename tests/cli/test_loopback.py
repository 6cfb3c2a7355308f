"""Requests to this machine: the same answers and errors as by httpx."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from climate.cli.loopback import LoopbackTransport
from tests.cli.fake_server import Wire


@contextmanager
def answering(text: bytes) -> Iterator[str]:
    """Answer one connection with these bytes, and close it."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(text)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        thread.join()


def client(**more: float) -> httpx.Client:
    return httpx.Client(transport=LoopbackTransport(True), **more)  # type: ignore[arg-type]


def test_bodies_queries_and_headers_arrive(wire: Wire) -> None:
    with client() as http:
        answer = http.post(f"{wire.url}/x/y%2Fz", params={"a": "ü&"}, json={"b": 1}, headers={"X-One": "1"})
    asked = wire.asked[-1]
    assert (asked.method, asked.query, asked.body, asked.headers["X-One"]) == ("POST", {"a": "ü&"}, {"b": 1}, "1")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, 401)


def test_chunks_are_joined() -> None:
    with (
        answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n") as url,
        client() as http,
    ):
        assert http.get(url).text == "ab"


@pytest.mark.parametrize("text", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"])
def test_a_broken_answer_is_a_transport_error(text: bytes) -> None:
    with answering(text) as url, client() as http, pytest.raises(httpx.TransportError):
        http.get(url)


def test_silence_is_a_timeout_and_a_closed_port_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with client(timeout=0.2) as http, pytest.raises(httpx.TimeoutException):
            http.get(url)
    with client() as http, pytest.raises(httpx.ConnectError):
        http.get(url)


def test_a_header_of_two_lines_is_refused(wire: Wire) -> None:
    with client() as http, pytest.raises((httpx.TransportError, ValueError)):
        http.get(wire.url, headers={"X-One": "1\r\nX-Two: 2"})
    assert wire.asked == []
