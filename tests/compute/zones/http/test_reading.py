"""Answers read from bytes: framing, limits, and what is refused because it is not HTTP."""

import time
import tracemalloc
from collections.abc import Callable, Iterable

import pytest

from climate.compute.zones.http.messages import MOST_BYTES, BrokenOff, TooLong
from climate.compute.zones.http.reading import LONGEST_HEAD, MOST_INTERIM, ReadAnswer, read_answer


def coming(pieces: Iterable[bytes]) -> Callable[[], bytes]:
    left = iter(pieces)
    return lambda: next(left, b"")


def read(data: bytes, method: str = "GET", size: int = 0) -> ReadAnswer:
    """Read an answer that comes at once, or in pieces of `size` bytes."""
    step = size or len(data) or 1
    return read_answer(coming(data[at : at + step] for at in range(0, len(data), step)), method)


def http(*headers: str, body: str = "", status: str = "200 OK", version: str = "1.1") -> bytes:
    return "\r\n".join([f"HTTP/{version} {status}", *headers, "", body]).encode()


WHOLE = {
    "length": (http("Content-Length: 5", body="abcde"), "GET", b"abcde", True),
    "no reason": (http("Content-Length: 5", body="abcde", status="200"), "GET", b"abcde", True),
    "empty": (http("Content-Length: 0"), "GET", b"", True),
    "chunks": (http("Transfer-Encoding: Chunked", body="3;a=b\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), "GET", b"abcde", True),
    "trailers": (http("Transfer-Encoding: chunked", body="5\r\nabcde\r\n0\r\nX: y\r\n\r\n"), "GET", b"abcde", True),
    "until the end": (http(body="abcde"), "GET", b"abcde", False),
    "old version": (http("Content-Length: 5", body="abcde", version="1.0"), "GET", b"abcde", False),
    "told to close": (http("Connection: X, Close", "Content-Length: 5", body="abcde"), "GET", b"abcde", False),
    "told to close first": (
        http("Connection: close", "Connection: keep-alive", "Content-Length: 5", body="abcde"),
        "GET",
        b"abcde",
        False,
    ),
    "more than asked": (http("Content-Length: 5", body="abcdeHTTP/1.1 200 OK"), "GET", b"abcde", False),
    "same length twice": (http("Content-Length: 5", "content-length: 5", body="abcde"), "GET", b"abcde", True),
    "both framings": (
        http("Content-Length: 5", "Transfer-Encoding: chunked", body="5\r\nabcde\r\n0\r\n\r\n"),
        "GET",
        b"abcde",
        False,
    ),
    "no content": (http(status="204 No Content"), "DELETE", b"", True),
    "not modified": (http("Content-Length: 5", status="304 Not Modified"), "GET", b"", True),
    "head": (http("Content-Length: 5"), "HEAD", b"", True),
    "interim": (http(status="103 Early") + http("Content-Length: 5", body="abcde"), "GET", b"abcde", True),
}


@pytest.mark.parametrize("size", [0, 1, 7], ids=["at once", "byte by byte", "in pieces"])
@pytest.mark.parametrize("name", WHOLE)
def test_answer_is_read_whole_however_it_comes(name: str, size: int) -> None:
    data, method, content, is_reusable = WHOLE[name]
    found = read(data, method, size)
    assert found.answer.content == content
    # What comes after an answer is seen only when it comes together with it; the pool looks for it again.
    assert found.is_reusable == is_reusable or (size == 1 and name == "more than asked")


def test_status_and_headers_are_reported() -> None:
    answer = read(http("X-Token:  a b \t", "x-empty:", "Location: /x", status="201 Made")).answer
    assert answer.status == 201
    assert answer.headers == {"x-token": "a b", "x-empty": "", "location": "/x"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        http(status="101 Switching Protocols"),
        http("Content-Length: 6", body="abcde"),
        http("Content-Length: -1"),
        http("Content-Length: 5, 5", body="abcde"),
        http("Content-Length: 5", "Content-Length: 4", body="abcde"),
        http("Content-Length: " + "1" * 30),
        http("No colon here"),
        http("Blank : x"),
        http(": no name"),
        http("X: y", " folded"),
        http("X: a\0b"),
        http("Transfer-Encoding: gzip, chunked"),
        http("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body="0\r\n\r\n"),
        http("Transfer-Encoding: chunked", body="x\r\n"),
        http("Transfer-Encoding: chunked", body="-5\r\nabcde\r\n0\r\n\r\n"),
        http("Transfer-Encoding: chunked", body="5\r\nabcdeXX0\r\n\r\n"),
        http("Transfer-Encoding: chunked", body="5\r\nabc"),
        http("Transfer-Encoding: chunked", body="0\r\nX: y\r\n"),
        http("Transfer-Encoding: chunked", body="0" * 100_000),
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 2 * LONGEST_HEAD,
        http(status="100 Continue") * (MOST_INTERIM + 1) + http("Content-Length: 0"),
    ],
)
@pytest.mark.parametrize("size", [0, 4096])
def test_what_is_not_http_is_refused(data: bytes, size: int) -> None:
    with pytest.raises(BrokenOff):
        read(data, size=size)


def endless(first: bytes) -> Iterable[bytes]:
    """Yield a first piece, and then more than any answer may have."""
    yield first
    for _ in range(MOST_BYTES // 65536 + 100):
        yield b"x" * 65536
    raise AssertionError("all of it was read")


def chunks() -> Iterable[bytes]:
    yield http("Transfer-Encoding: chunked")
    for _ in range(MOST_BYTES // 65536 + 100):
        yield b"10000\r\n" + b"x" * 65536 + b"\r\n"
    raise AssertionError("all of it was read")


@pytest.mark.parametrize(
    "pieces",
    [endless(http(f"Content-Length: {MOST_BYTES + 1}")), endless(http()), chunks()],
    ids=["length", "until the end", "chunks"],
)
def test_long_answer_is_not_read_to_its_end(pieces: Iterable[bytes]) -> None:
    with pytest.raises(TooLong):
        read_answer(coming(pieces), "GET")


@pytest.mark.parametrize("bad", ["\0", "\r"], ids=["zero byte", "carriage return"])
def test_blanks_before_a_byte_that_is_refused_cost_no_more_than_their_number(bad: str) -> None:
    head = http(*("X:" + " " * 20_000 + bad + "x" for _ in range(3)))
    begun = time.process_time()
    with pytest.raises(BrokenOff):
        read(head)
    assert time.process_time() - begun < 1


def test_tiny_chunks_cost_no_more_memory_than_their_content() -> None:
    count = 50_000
    body = http("Transfer-Encoding: chunked", body="2\r\nab\r\n" * count + "0\r\n\r\n")
    pieces = [body[at : at + 65536] for at in range(0, len(body), 65536)]
    tracemalloc.start()
    try:
        found = read_answer(coming(pieces), "GET")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.answer.content == b"ab" * count
    assert most < 8 * len(found.answer.content)
