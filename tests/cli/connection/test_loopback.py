"""Requests to this machine and to others: the same answers and errors."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from climate.cli.connection.http_protocols import Connection
from climate.cli.connection.loopback import LoopbackConnection
from climate.cli.connection.remote import RemoteConnection
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


Way = Callable[[float], Connection]

WAYS: dict[str, Way] = {
    "standard library": LoopbackConnection,
    "httpx": lambda seconds: RemoteConnection(seconds, True, trust_env=False),
}

each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@each_way
def test_bodies_queries_and_headers_arrive(wire: Wire, way: Way) -> None:
    params = {"a": "ü& +", "more": True, "none": None, "many": ["1", 2]}
    with closing(way(5)) as http:
        answer = http.request("POST", f"{wire.url}/x/y%2Fz", params=params, json={"b": "ü"}, headers={"X-One": "1"})
    asked = wire.asked[-1]
    assert asked.query == {"a": "ü& +", "more": "true", "none": "", "many": "1"}
    assert (asked.method, asked.body, asked.headers["X-One"]) == ("POST", {"b": "ü"}, "1")
    assert (answer.status_code, answer.reason_phrase, answer.json()["error"]["code"]) == (401, "UNAUTHORIZED", 401)
    assert (answer.headers["content-TYPE"], answer.headers.get("X-None")) == ("application/json", None)


@each_way
def test_a_query_of_the_url_stays(wire: Wire, way: Way) -> None:
    with closing(way(5)) as http:
        http.request("GET", f"{wire.url}/x?y=a%20b&z=c d")
    assert wire.asked[-1].query == {"y": "a b", "z": "c d"}


@each_way
def test_chunks_are_joined(way: Way) -> None:
    with (
        answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n") as url,
        closing(way(5)) as http,
    ):
        assert http.request("GET", url).text == "ab"


@each_way
@pytest.mark.parametrize("text", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"])
def test_a_broken_answer_is_an_error_of_the_connection(text: bytes, way: Way) -> None:
    with answering(text) as url, closing(way(5)) as http, pytest.raises(ConnectionError):
        http.request("GET", url)


@each_way
def test_silence_is_a_timeout_and_a_closed_port_an_error(way: Way) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with closing(way(0.2)) as http, pytest.raises(TimeoutError):
            http.request("GET", url)
    with closing(way(5)) as http, pytest.raises(ConnectionError):
        http.request("GET", url)


@each_way
@pytest.mark.parametrize("url", ["http://127.0.0.1:0x5/", "http://127.0.0.1:99999/"])
def test_a_port_that_is_no_port_is_an_error_of_the_connection(url: str, way: Way) -> None:
    with closing(way(5)) as http, pytest.raises(ConnectionError):
        http.request("GET", url)


def test_a_header_of_two_lines_is_refused(wire: Wire) -> None:
    with closing(LoopbackConnection(5)) as http, pytest.raises(ConnectionError):
        http.request("GET", wire.url, headers={"X-One": "1\r\nX-Two: 2"})
    assert wire.asked == []


def test_https_on_this_machine_is_left_to_httpx() -> None:
    with answering(b"no certificate") as url, closing(LoopbackConnection(5)) as http, pytest.raises(ConnectionError):
        http.request("GET", url.replace("http:", "https:"))
