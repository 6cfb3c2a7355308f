"""A slow client costs nobody else anything: its request takes a thread when it is there."""

import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climate.request_framing import LONGEST_BODY, LONGEST_HEAD, Arrival, Framing

ROOT = Path(__file__).parents[2]
GET = b"GET /%s HTTP/1.1\r\nHost: h\r\n\r\n"
CLOSE = b"GET /%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
POST = b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"POST /body HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
SECONDS = 15.0


@contextmanager
def server(home: Path, worker: str) -> Iterator[int]:
    """gunicorn with one process of two threads, on a port."""
    (home / "hold").touch()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    words = ["--worker-class", worker, "--threads", "2", "--keep-alive", "75", "--bind", f"127.0.0.1:{port}"]
    argv = [sys.executable, "-m", "gunicorn", *words, "--no-control-socket", "tests.api.small_app:app"]
    with (home / "log").open("wb") as log:
        child = subprocess.Popen(argv, cwd=ROOT, env={**os.environ, "HOLD": str(home / "hold")}, stderr=log)
    try:
        deadline = time.monotonic() + 240
        while not _listens(port):
            assert child.poll() is None, (home / "log").read_text()
            assert time.monotonic() < deadline
        yield port
    finally:
        child.terminate()
        child.wait(30)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with server(tmp_path_factory.mktemp("server"), "climate.web_worker.BufferingWorker") as found:
        yield found


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with server(tmp_path_factory.mktemp("server"), "tests.api.small_app.ImpatientWorker") as found:
        yield found


def client(port: int, *sent: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), SECONDS)
    for piece in sent:
        made.sendall(piece)
    return made


def answer(one: socket.socket) -> bytes:
    """The body of the next answer, the last that is waited for; its status line where it is a refusal."""
    with one.makefile("rb") as lines:
        return following(lines)


def following(lines: BinaryIO) -> bytes:
    """The same, of several that follow each other."""
    status, length = lines.readline(), 0
    while (line := lines.readline()) not in (b"\r\n", b""):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return lines.read(length) if b" 200 " in status else status


def ask(port: int, path: bytes) -> bytes:
    with client(port, CLOSE % path) as one:
        return answer(one)


def test_fifty_slow_clients_keep_nobody_waiting(port: int) -> None:
    halves = (b"", b"GET /slow HTTP/1.1\r\nHost: h\r\n", POST % 100 + b"half", CHUNKED + b"64\r\nhalf")
    with ExitStack() as open_ones:
        for number in range(52):
            open_ones.enter_context(client(port, halves[number % 4]))
        begun = time.monotonic()
        assert [ask(port, path) for path in (b"healthz", b"other")] == [b"/healthz 0", b"/other 0"]
        assert time.monotonic() - begun < SECONDS / 2


def test_clients_that_do_not_hang_up_keep_nobody_waiting(port: int) -> None:
    with ExitStack() as open_ones:
        for _ in range(8):
            answer(open_ones.enter_context(client(port, CLOSE % b"last")))
        begun = time.monotonic()
        assert ask(port, b"other") == b"/other 0"
        assert time.monotonic() - begun < 2.0


def test_health_answers_while_all_threads_are_at_work(tmp_path: Path) -> None:
    with server(tmp_path, "climate.web_worker.BufferingWorker") as port, ExitStack() as open_ones:
        with (tmp_path / "hold").open("rb") as hold:
            fcntl.flock(hold, fcntl.LOCK_EX)
            held = [open_ones.enter_context(client(port, CLOSE % b"hold/x")) for _ in range(3)]
            assert ask(port, b"healthz") == b"/healthz 0"
        assert {answer(one) for one in held} == {b"/hold/x 0"}


@pytest.mark.parametrize("half", [b"GET /slow HT", POST % 100 + b"half", CHUNKED + b"4\r\nhalf"])
def test_half_a_request_is_given_up_after_its_time(impatient: int, half: bytes) -> None:
    with client(impatient, half) as one:
        assert answer(one) == b"HTTP/1.1 408 Request Timeout\r\n"
        assert one.recv(1) == b""


def test_a_client_that_sends_byte_by_byte_gets_no_more_time(impatient: int) -> None:
    with client(impatient, b"x") as one:
        one.settimeout(0.1)
        begun = time.monotonic()
        while not _refused(one):
            assert time.monotonic() - begun < SECONDS
            one.sendall(b"x")


def _refused(one: socket.socket) -> bool:
    try:
        return b" 408 " in one.recv(100)
    except TimeoutError:
        return False


def test_a_connection_is_kept_when_it_is_idle_for_longer_than_a_head_may_take(impatient: int) -> None:
    with client(impatient, GET % b"first") as one, client(impatient, b"GET /slow") as slow:
        assert answer(one) == b"/first 0"
        assert b" 408 " in answer(slow)
        one.sendall(GET % b"second")
        assert answer(one) == b"/second 0"


def test_requests_sent_at_once_are_answered_one_after_the_other(port: int) -> None:
    third = GET % b"third"
    with client(port, POST % 4 + b"body" + GET % b"second" + third[:9]) as one, one.makefile("rb") as lines:
        assert (following(lines), following(lines)) == (b"/body 4", b"/second 0")
        one.sendall(third[9:])
        assert following(lines) == b"/third 0"


def test_bodies_come_through_whole_however_they_are_sent(port: int) -> None:
    long = 3 * LONGEST_BODY
    for sent, size in (
        ((POST % LONGEST_BODY, b"x" * LONGEST_BODY), LONGEST_BODY),
        ((POST % long, b"x" * long), long),
        ((CHUNKED, b"5\r\nhello\r\n", b"1;a=b\r\n!\r\n", b"0\r\n\r\n"), 6),
        ((CHUNKED, b"%x\r\n" % long, b"x" * long, b"\r\n0\r\n\r\n"), long),
    ):
        with client(port, *sent) as one:
            assert answer(one) == b"/body %d" % size


def test_a_client_that_asks_first_is_told_to_go_on(port: int) -> None:
    head = (POST % 5).replace(b"Host", b"Expect: 100-continue\r\nHost")
    with client(port, head) as one:
        assert one.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        one.sendall(b"hello")
        assert answer(one) == b"/body 5"


def test_too_large_a_head_and_what_is_not_http_are_refused(port: int) -> None:
    with client(port, b"GET / HTTP/1.1\r\nX: " + b"x" * LONGEST_HEAD) as one:
        assert b" 431 " in answer(one)
    for wrong in (b"nonsense\r\n\r\n", CHUNKED + b"zz\r\n"):
        with client(port, wrong) as one:
            assert answer(one)[9:10] in (b"4", b"5")


WHOLE = (
    GET % b"",
    POST % 0,
    POST % 11 + b"GET / 0\r\n\r\n",
    CHUNKED + b"0\r\n\r\n",
    CHUNKED + b"a\r\n0\r\n\r\n01234\r\n1;x=y\r\n-\r\n0\r\nTrailer: x\r\n\r\n",
)


@given(st.sampled_from(WHOLE), st.data())
def test_the_end_of_a_request_is_found_however_it_is_cut(request: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(request) - 1))))
    framing = Framing()
    pieces = [request[start:end] for start, end in zip([0, *cuts], [*cuts, len(request)], strict=True)]
    seen = [framing.feed(piece) for piece in pieces]
    assert seen[-1] is Arrival.WHOLE
    assert set(seen[:-1]) <= {Arrival.HEAD, Arrival.BODY}
    assert bytes(framing.data) == request
