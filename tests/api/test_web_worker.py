"""A slow client costs nobody else anything: its request takes a thread when it is there."""

import fcntl
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector, SelectorKey
from threading import Event
from typing import BinaryIO

import pytest
from gunicorn.config import Config
from hypothesis import given
from hypothesis import strategies as st

from climate.web.garbage_collection import COLLECTIONS
from climate.web.request_framing import FIRST_PIECE, LONGEST_BODY, LONGEST_HEAD, Arrival, Framing
from climate.web.thread_pools import STREAMS
from climate.web.worker import BufferingWorker
from tests.api.small_app import LONG, LONGER

ROOT = Path(__file__).parents[2]
GET = b"GET /%s HTTP/1.1\r\nHost: h\r\n\r\n"
CLOSE = b"GET /%s HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
POST = b"POST /body HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"
UPLOAD = b"PUT /image/v2/images/%s/stage HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"POST /body HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
SECONDS = 15.0
LARGE = 64 * 1024 * 1024
DOWNLOAD = b"GET /image/v2/images/%s/file HTTP/1.1\r\nHost: h\r\n\r\n"


@contextmanager
def server(home: Path, worker: str, *more: str) -> Iterator[int]:
    """gunicorn with one process of two threads, on a port; `more` options."""
    (home / "hold").touch()
    with (home / "hold.large").open("wb") as large:
        large.truncate(LARGE)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    words = ["--worker-class", worker, "--threads", "2", "--keep-alive", "75", "--bind", f"127.0.0.1:{port}", *more]
    argv = [sys.executable, "-m", "gunicorn", *words, "--no-control-socket", "tests.api.small_app:app"]
    with (home / "log").open("wb") as log:
        child = subprocess.Popen(argv, cwd=ROOT, env={**os.environ, "HOLD": str(home / "hold")}, stderr=log)
    try:
        deadline = time.monotonic() + 240
        while not _listens(port):
            assert child.poll() is None, (home / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)  # else the test takes the core on which the server begins
        yield port
    finally:
        child.terminate()
        child.wait(120)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with server(tmp_path_factory.mktemp("server"), "climate.web.worker.BufferingWorker") as found:
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


def test_streams_cost_no_thread_and_no_place_for_connections(tmp_path: Path) -> None:
    """Sixty pages of two threads: each stream is told where it begins, and everybody else is answered meanwhile."""
    limits = ("--worker-connections", "20")
    with server(tmp_path, "climate.web.worker.BufferingWorker", *limits) as port, ExitStack() as open_ones:
        before = int(ask(port, b"threads"))
        streams = [open_ones.enter_context(client(port, GET % b"stream")) for _ in range(60)]
        for one in streams:
            told = b""
            while b"event: ready" not in told:
                told += one.recv(4096)
            assert told.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream")
            assert b"nowhere" not in told
        assert int(ask(port, b"threads")) <= before + 2, "one of the streams, and perhaps another of two"


def test_garbage_is_searched_for_rarely_and_not_among_what_was_loaded(port: int) -> None:
    thresholds, _, frozen = ask(port, b"collections").decode().rpartition(" ")
    assert thresholds == str(COLLECTIONS)
    assert int(frozen) > 10_000


def test_clients_that_do_not_hang_up_keep_nobody_waiting(port: int) -> None:
    with ExitStack() as open_ones:
        for _ in range(8):
            answer(open_ones.enter_context(client(port, CLOSE % b"last")))
        begun = time.monotonic()
        assert ask(port, b"other") == b"/other 0"
        assert time.monotonic() - begun < 2.0


def test_health_answers_while_all_threads_are_at_work(tmp_path: Path) -> None:
    with server(tmp_path, "climate.web.worker.BufferingWorker") as port, ExitStack() as open_ones:
        with (tmp_path / "hold").open("rb") as hold:
            fcntl.flock(hold, fcntl.LOCK_EX)
            held = [open_ones.enter_context(client(port, CLOSE % b"hold/x")) for _ in range(3)]
            assert ask(port, b"healthz") == b"/healthz 0"
        assert {answer(one) for one in held} == {b"/hold/x 0"}


def test_an_event_of_a_connection_that_was_closed_in_the_same_turn_is_passed_over() -> None:
    cfg = Config()
    cfg.set("worker_connections", 2)
    with socket.create_server(("127.0.0.1", 0)) as listener, DefaultSelector() as poller:
        worker = BufferingWorker(1, 1, [listener], None, 1, cfg, None)
        worker.poller = poller
        worker.set_accept_enabled(True)
        with client(listener.getsockname()[1]) as first:
            worker.wait_for_and_dispatch_events(SECONDS)
            first.sendall(b"G")
            with client(listener.getsockname()[1]):
                events = sorted(_events(poller, 2), key=lambda key: key.fileobj is not listener)
                for key in events:
                    key.data(key.fileobj)
                assert (len(events), _closed(first)) == (2, True)
        worker.tmp.close()


def _events(poller: DefaultSelector, count: int) -> list[SelectorKey]:
    """Return what is ready, once so many are."""
    deadline = time.monotonic() + SECONDS
    while len(found := poller.select(SECONDS)) < count:
        assert time.monotonic() < deadline
    return [key for key, _ in found]


def test_a_long_body_that_comes_too_slowly_is_given_up(tmp_path: Path) -> None:
    with server(tmp_path, "tests.api.small_app.HurryingWorker") as port, client(port, POST % (3 * LONGEST_BODY)) as one:
        one.sendall(b"x" * FIRST_PIECE)
        one.settimeout(0.1)
        begun = time.monotonic()
        while not _closed(one):
            assert time.monotonic() - begun < SECONDS


def _closed(one: socket.socket) -> bool:
    """Send a byte, and see whether the server has hung up."""
    try:
        one.sendall(b"x")
        return one.recv(100) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_a_server_without_descriptors_drops_connections_and_goes_on(tmp_path: Path) -> None:
    with server(tmp_path, "tests.api.small_app.FewFilesWorker") as port, ExitStack() as open_ones:
        assert ask(port, b"first") == b"/first 0"  # which imports modules, out of files
        for _ in range(80):
            open_ones.enter_context(client(port, b"GET /slow"))
        assert ask(port, b"other") == b"/other 0"
        assert (tmp_path / "log").read_text().count("Booting worker") == 1


def test_idle_connections_make_room_for_those_that_ask(tmp_path: Path) -> None:
    words = ("--worker-connections", "7")
    with server(tmp_path, "climate.web.worker.BufferingWorker", *words) as port, ExitStack() as open_ones:
        kept = [open_ones.enter_context(client(port, GET % b"first")) for _ in range(5)]
        assert {answer(one) for one in kept} == {b"/first 0"}
        halves = [open_ones.enter_context(client(port, b"GET /sl")) for _ in range(4)]
        for one in reversed(halves):
            one.sendall(b"ow HTTP/1.1\r\nHost: h\r\n\r\n")
            assert answer(one) == b"/slow 0"


def test_requests_that_wait_for_a_thread_count_until_it_begins(tmp_path: Path) -> None:
    with server(tmp_path, "tests.api.small_app.FrugalWorker") as port:
        for _ in range(2):  # nothing of the first time counts in the second
            assert 1 <= _served_of(port, tmp_path / "hold", 8, dropped=5) <= 3
        assert _served_of(port, tmp_path / "hold", 3, dropped=0) == 3


def _served_of(port: int, hold: Path, count: int, dropped: int) -> int:
    """How many of so many requests of 600,000 bytes are answered when they are sent while all threads are at work.

    The threads go on once so many connections are `dropped`.
    """
    with ExitStack() as open_ones, DefaultSelector() as poller:
        with hold.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            busy = [open_ones.enter_context(client(port, CLOSE % b"hold/x")) for _ in range(2)]
            sent = [open_ones.enter_context(client(port)) for _ in range(count)]
            for one in sent:
                with suppress(ConnectionError):
                    one.sendall(POST % 600_000 + b"x" * 600_000)
                poller.register(one, EVENT_READ)
            if dropped:
                _events(poller, dropped)
        assert {answer(one) for one in busy} == {b"/hold/x 0"}
        return sum(_answered(one) for one in sent)


def _answered(one: socket.socket) -> bool:
    try:
        return answer(one) == b"/body 600000"
    except ConnectionError:
        return False


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


def test_a_client_that_asks_first_is_asked_to_go_on(port: int) -> None:
    head = (POST % 5).replace(b"Host", b"Expect: 100-continue\r\nHost")
    with client(port, head) as one:
        assert one.recv(25) == b"HTTP/1.1 100 Continue\r\n\r\n"
        one.sendall(b"hello")
        assert answer(one) == b"/body 5"


def test_a_question_is_taken_out_of_a_head_and_its_body_waited_for() -> None:
    framing = Framing()
    asked = (POST % 5).replace(b"Host", b"Expect:  100-Continue \r\nHost")
    assert (framing.feed(asked), framing.asks_first) == (Arrival.BODY, True)
    assert framing.feed(b"hello") is Arrival.WHOLE
    assert bytes(framing.data) == POST % 5 + b"hello"


def test_clients_that_ask_first_or_announce_much_and_are_silent_keep_no_upload_waiting(port: int) -> None:
    long = UPLOAD % (b"x", 3 * LONGEST_BODY)
    chunked = CHUNKED.replace(b"POST /body", b"PUT /image/v2/images/x/stage") + b"%x\r\n" % (3 * LONGEST_BODY)
    silent = (long.replace(b"Host", b"Expect: 100-continue\r\nHost"), long, chunked)
    with ExitStack() as open_ones:
        for number in range(9):
            open_ones.enter_context(client(port, silent[number % 3]))
        assert uploads(port)


def uploads(port: int) -> bool:
    """Whether an upload comes through."""
    size = 3 * LONGEST_BODY
    with client(port, UPLOAD % (b"x", size), b"x" * size) as one:
        return answer(one) == b"/image/v2/images/x/stage %d" % size


def test_slow_bodies_of_other_requests_keep_no_upload_waiting(port: int) -> None:
    with ExitStack() as open_ones:
        for _ in range(9):
            open_ones.enter_context(client(port, POST % (3 * LONGEST_BODY), b"x" * FIRST_PIECE))
        assert uploads(port)


def test_slow_uploads_give_way_to_uploads_that_wait(tmp_path: Path) -> None:
    """They come at 60 kB/s, which is fast enough while nobody waits."""
    with server(tmp_path, "tests.api.small_app.BusyWorker") as port, ExitStack() as open_ones:
        begun = [client(port, UPLOAD % (b"x", LARGE), b"x" * FIRST_PIECE) for _ in range(STREAMS)]
        slow = [open_ones.enter_context(one) for one in begun]
        with ThreadPoolExecutor(STREAMS) as pool:
            answers = [pool.submit(_send_slowly, one) for one in slow]
            try:
                assert wait(answers, 2.0).done == set(), "nobody waits for their threads"
                assert uploads(port)
            finally:
                _stop(slow)
            told = [one.result() for one in answers]
    assert any(b"408 Request Timeout" in one and b"too slowly" in one for one in told)


def _send_slowly(one: socket.socket) -> bytes:
    """Send a piece now and then until the server answers or closes; what it has answered."""
    one.settimeout(0.05)
    found = b""
    with suppress(OSError):
        while True:
            one.sendall(b"x" * 3000)
            with suppress(TimeoutError):
                if not (piece := one.recv(4096)):
                    break
                found += piece
    return found


def _stop(slow: Sequence[socket.socket]) -> None:
    for one in slow:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def test_a_connection_is_kept_after_an_upload(port: int) -> None:
    size = 3 * LONGEST_BODY
    with client(port) as one, one.makefile("rb") as lines:
        for _ in range(2):
            one.sendall(UPLOAD % (b"x", size) + b"x" * size)
            assert following(lines) == b"/image/v2/images/x/stage %d" % size


def test_clients_that_take_nothing_of_a_long_answer_hold_no_thread(port: int) -> None:
    with ExitStack() as open_ones:
        for _ in range(6):
            open_ones.enter_context(client(port, GET % b"long"))
        begun = time.monotonic()
        assert ask(port, b"other") == b"/other 0"
        assert time.monotonic() - begun < SECONDS / 2


def test_clients_that_take_nothing_of_too_long_an_answer_hold_two_threads_at_most(tmp_path: Path) -> None:
    """Two threads wait for the first two clients; the third thread gives up each of the others in its turn."""
    with server(tmp_path, "tests.api.small_app.BriskWorker", "--threads", "3") as port, ExitStack() as open_ones:
        silent = [open_ones.enter_context(client(port, CLOSE % b"longer")) for _ in range(6)]
        assert ask(port, b"other") == b"/other 0"
        assert [len(_rest(one)) >= LONGER for one in silent].count(True) == 2, "the first two are waited for"


def test_too_long_an_answer_arrives_whole_when_it_is_taken(port: int) -> None:
    for _ in range(4):
        assert len(ask(port, b"longer")) == len(b"/longer 0") + LONGER


def test_a_long_answer_arrives_whole_however_late_it_is_taken(port: int) -> None:
    with client(port, GET % b"long", GET % b"next", CLOSE % b"long") as one, one.makefile("rb") as lines:
        pause(0.5)
        whole = b"/long 0" + b"x" * LONG
        assert [following(lines) == whole, following(lines), following(lines) == whole] == [True, b"/next 0", True]
        assert lines.read() == b""


def test_a_client_that_takes_a_long_answer_too_slowly_is_given_up(tmp_path: Path) -> None:
    with server(tmp_path, "tests.api.small_app.HurryingWorker") as port, client(port, GET % b"long") as one:
        pause(2.0)
        assert 0 < len(_rest(one)) < LONG


def test_answers_that_are_not_taken_are_dropped_beyond_the_memory_for_them(tmp_path: Path) -> None:
    with server(tmp_path, "tests.api.small_app.FrugalWorker") as port, client(port, GET % b"long") as one:
        pause(1.0)
        assert len(_rest(one)) < LONG
        assert ask(port, b"other") == b"/other 0"


def test_an_answer_that_fails_after_its_beginning_does_not_stop_the_worker(port: int) -> None:
    before = int(ask(port, b"pid").split()[-1])
    with client(port, GET % b"long/broken") as one:
        pause(0.5)
        assert len(_rest(one)) < LONG
    assert int(ask(port, b"pid").split()[-1]) == before


def _rest(one: socket.socket) -> bytes:
    """Return all that is still sent to a client."""
    found = bytearray()
    with suppress(ConnectionResetError):
        while piece := one.recv(1 << 20):
            found += piece
    return bytes(found)


def test_slow_downloads_keep_nobody_waiting(port: int) -> None:
    with ExitStack() as open_ones:
        for number in range(6):
            one = open_ones.enter_context(client(port, DOWNLOAD % b"%d" % number))
            assert one.recv(12) == b"HTTP/1.1 200"
        assert ask(port, b"other") == b"/other 0"


def test_a_client_that_takes_a_download_too_slowly_is_given_up(tmp_path: Path) -> None:
    with server(tmp_path, "tests.api.small_app.HurryingWorker") as port, client(port, DOWNLOAD % b"x") as one:
        taken = 0
        with suppress(ConnectionError):
            while data := one.recv(1 if taken < 60 else 1 << 20):
                taken += len(data)
                if taken < 60:
                    pause(0.05)
        assert taken < LARGE


def pause(seconds: float) -> None:
    """Let time pass as a slow client does."""
    Event().wait(seconds)


def test_a_whole_download_arrives_as_it_is(port: int) -> None:
    with client(port, DOWNLOAD % b"x") as one, one.makefile("rb") as lines:
        while lines.readline() != b"\r\n":
            pass
        assert lines.read(LARGE) == bytes(LARGE)


def test_too_large_a_head_and_what_is_not_http_are_refused(port: int) -> None:
    with client(port, b"GET / HTTP/1.1\r\nX: " + b"x" * LONGEST_HEAD) as one:
        assert b" 431 " in answer(one)
    for wrong in (b"nonsense\r\n\r\n", CHUNKED + b"zz\r\n"):
        with client(port, wrong) as one:
            assert answer(one)[9:10] in (b"4", b"5")


def test_refusals_of_the_server_are_json(port: int) -> None:
    line = b"GET /" + b"x" * 5000 + b" HTTP/1.1\r\nHost: h\r\n\r\n"
    coding = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: foo\r\n\r\n0\r\n\r\n"
    header = b"GET / HTTP/1.1\r\nHost: h\r\nBad Header: 1\r\n\r\n"
    head = b"GET / HTTP/1.1\r\nX: " + b"x" * LONGEST_HEAD
    for wrong, status in ((line, 414), (coding, 501), (header, 400), (head, 431)):
        with client(port, wrong) as one, one.makefile("rb") as lines:
            said = lines.read().partition(b"\r\n\r\n")
        assert said[0].split()[1] == str(status).encode()
        assert b"application/json" in said[0]
        assert json.loads(said[2])["error"]["code"] == status


WHOLE = (
    GET % b"",
    POST % 0,
    POST % 11 + b"GET / 0\r\n\r\n",
    CHUNKED + b"0\r\n\r\n",
    CHUNKED + b"a\r\n0\r\n\r\n01234\r\n1;x=y\r\n-\r\n0\r\nTrailer: x\r\n\r\n",
)


@pytest.mark.parametrize(
    ("length", "arrival"),
    [
        (b"0" * 30 + b"5", Arrival.BODY),
        (b"0" * 30, Arrival.WHOLE),
        (b"9" * 30, Arrival.LONG),
        (b"9" * 5000, Arrival.LONG),
    ],
)
def test_a_length_is_seen_however_it_is_written(length: bytes, arrival: Arrival) -> None:
    head = (POST % 0).replace(b" 0\r", b" " + length + b"\r")
    framing = Framing()
    assert framing.feed(head) is (Arrival.BODY if arrival is Arrival.LONG else arrival)
    if arrival is Arrival.LONG:
        assert [framing.feed(b"x" * size) for size in (FIRST_PIECE - 1, 1)] == [Arrival.BODY, Arrival.LONG]


def test_a_head_of_zeros_costs_no_more_than_another() -> None:
    begun = time.process_time()
    Framing().feed(b"POST / HTTP/1.1\r\nContent-Length: " + b"0" * (LONGEST_HEAD - 100) + b"x\r\n\r\n")
    assert time.process_time() - begun < 0.5


@given(st.sampled_from(WHOLE), st.data())
def test_the_end_of_a_request_is_found_however_it_is_cut(request: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(request) - 1))))
    framing = Framing()
    pieces = [request[start:end] for start, end in zip([0, *cuts], [*cuts, len(request)], strict=True)]
    seen = [framing.feed(piece) for piece in pieces]
    assert seen[-1] is Arrival.WHOLE
    assert set(seen[:-1]) <= {Arrival.HEAD, Arrival.BODY}
    assert bytes(framing.data) == request
