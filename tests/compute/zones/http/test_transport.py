"""HTTP over real sockets: kept connections, servers that close, hang, drip or lie, and deadlines."""

import gc
import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from climate.compute.zones.http.blocking import BlockingPool
from climate.compute.zones.http.messages import (
    MOST_BYTES,
    BrokenOff,
    HttpAnswer,
    HttpRequest,
    Origin,
    TooLong,
    Unreachable,
)
from climate.compute.zones.http.transport import MOST_KEPT, SocketTransport

PATIENT = 60.0

Serve = Callable[[socket.socket, int], None]
"""Serves one connection, of which it is told the number."""


class Server:
    """A server of plain sockets that counts its connections and what they ask."""

    def __init__(self, serve: Serve, port: int = 0) -> None:
        self.listener = socket.create_server(("127.0.0.1", port))
        self.serve = serve
        self.accepted = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def origin(self) -> Origin:
        return Origin("http", "127.0.0.1", self.listener.getsockname()[1])

    def _accept(self) -> None:
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._run, args=(one, self.accepted), daemon=True).start()

    def _run(self, one: socket.socket, number: int) -> None:
        with one:
            self.serve(one, number)


@contextmanager
def listening(serve: Serve, port: int = 0) -> Iterator[Server]:
    server = Server(serve, port)
    try:
        yield server
    finally:
        server.listener.close()


def heads(one: socket.socket) -> Iterator[bytes]:
    """Read one request after the other until the client closes; those with a body have `Content-Length`."""
    read = b""
    while True:
        while b"\r\n\r\n" not in read:
            piece = one.recv(65536)
            if not piece:
                return
            read += piece
        head, _, read = read.partition(b"\r\n\r\n")
        length = next((int(row[15:]) for row in head.split(b"\r\n") if row.startswith(b"Content-Length")), 0)
        while len(read) < length:
            read += one.recv(65536)
        body, read = read[:length], read[length:]
        yield head + b"\r\n\r\n" + body


def answered(body: bytes = b"{}") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def polite(one: socket.socket, number: int) -> None:
    for _ in heads(one):
        one.sendall(answered(b"%d" % number))


def ask(server: Server | Origin, method: str = "GET", content: bytes = b"") -> Generator[HttpRequest, HttpAnswer, Any]:
    origin = server if isinstance(server, Origin) else server.origin
    answer = yield HttpRequest(origin, method, "/a?b=c", (("X-One", "1"),), content)
    return answer.content


class One(Protocol):
    """Holds one talk."""

    def __call__(self, transport: SocketTransport, talk: Any, seconds: float = PATIENT) -> Any: ...


def alone(transport: SocketTransport, talk: Any, seconds: float = PATIENT) -> Any:
    (outcome,) = transport.run([(talk, seconds)])
    return outcome


def beside(transport: SocketTransport, talk: Any, seconds: float = PATIENT) -> Any:
    outcome, other = transport.run([(talk, seconds), (nothing(), PATIENT)])
    assert other == b"nothing"
    return outcome


def nothing() -> Generator[HttpRequest, HttpAnswer, Any]:
    return b"nothing"
    yield


@pytest.fixture(params=[alone, beside], ids=["alone", "beside another"])
def one(request: pytest.FixtureRequest) -> One:
    """One talk in its own thread, and one beside others in the event loop."""
    way: One = request.param
    return way


def kept_by(transport: SocketTransport) -> list[Any]:
    network = transport.network
    return [*network.blocking.idle, *network.pool.connections]


def await_end(transport: SocketTransport) -> None:
    """Wait until the end of all kept connections has come."""
    deadline = time.monotonic() + PATIENT
    while not all(kept.has_expired() for kept in kept_by(transport)):
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_connection_is_kept_for_the_next_request(one: One) -> None:
    with listening(polite) as server:
        transport = SocketTransport()
        assert [one(transport, ask(server)) for _ in range(3)] == [b"1"] * 3
        assert one(transport, ask(server, "POST", b"x" * 300_000)) == b"1"


def test_request_is_sent_whole(one: One) -> None:
    seen = []

    def serve(sock: socket.socket, number: int) -> None:
        for request in heads(sock):
            seen.append(request)
            sock.sendall(answered())

    with listening(serve) as server:
        one(SocketTransport(), ask(server, "POST", b"content"))
        host = server.origin.authority.encode()
    lines = [b"POST /a?b=c HTTP/1.1", b"Host: " + host, b"X-One: 1", b"Content-Length: 7", b"", b"content"]
    assert seen == [b"\r\n".join(lines)]


def test_threads_at_once_have_connections_of_their_own(one: One) -> None:
    met = threading.Barrier(3)

    def serve(sock: socket.socket, number: int) -> None:
        for _ in heads(sock):
            met.wait(PATIENT)
            sock.sendall(answered())

    with listening(serve) as server:
        transport = SocketTransport()
        outcomes: list[Any] = []
        threads = [threading.Thread(target=lambda: outcomes.append(one(transport, ask(server)))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (outcomes, server.accepted) == ([b"{}"] * 3, 3)


def once(sock: socket.socket, number: int) -> None:
    """Answer one request, and close the connection when the next has come."""
    requests = heads(sock)
    next(requests)
    sock.sendall(answered(b"%d" % number))
    next(requests, None)


def test_safe_request_is_repeated_when_a_kept_connection_ends(one: One) -> None:
    with listening(once) as server:
        transport = SocketTransport()
        assert [one(transport, ask(server)) for _ in range(2)] == [b"1", b"2"]


def test_request_that_may_have_been_done_is_not_repeated(one: One) -> None:
    with listening(once) as server:
        transport = SocketTransport()
        one(transport, ask(server))
        assert isinstance(one(transport, ask(server, "POST", b"x")), BrokenOff)
        assert server.accepted == 1


def test_connection_that_the_server_has_closed_is_not_used(one: One) -> None:
    def serve(sock: socket.socket, number: int) -> None:
        next(heads(sock))
        sock.sendall(answered(b"%d" % number))

    with listening(serve) as server:
        transport = SocketTransport()
        assert one(transport, ask(server, "POST", b"x")) == b"1"
        await_end(transport)
        assert one(transport, ask(server, "POST", b"x")) == b"2"


def test_child_that_was_killed_and_started_anew_is_found_again(one: One) -> None:
    def serve(sock: socket.socket, number: int) -> None:
        next(heads(sock))
        sock.sendall(answered(b"%d" % number))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset instead of an end

    with listening(serve) as server:
        transport = SocketTransport()
        for number in (1, 2):
            assert one(transport, ask(server, "POST", b"x")) == b"%d" % number
            await_end(transport)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2p1\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"a" * 100_000,
    ],
    ids=["nothing", "no HTTP", "half an answer", "no length", "endless head"],
)
def test_answer_that_is_none_is_an_error(one: One, answer: bytes) -> None:
    def serve(sock: socket.socket, number: int) -> None:
        next(heads(sock))
        sock.sendall(answer)

    with listening(serve) as server:
        assert isinstance(one(SocketTransport(), ask(server)), BrokenOff)
        assert server.accepted == 2, "a safe request is repeated once"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde",
        b"HTTP/1.0 200 OK\r\n\r\nabcde",
    ],
    ids=["chunked", "informational first", "until the end of the connection"],
)
def test_answer_is_read_to_its_end(one: One, answer: bytes) -> None:
    def serve(sock: socket.socket, number: int) -> None:
        next(heads(sock))
        sock.sendall(answer)

    with listening(serve) as server:
        assert one(SocketTransport(), ask(server)) == b"abcde"


def test_answer_is_limited(one: One) -> None:
    def serve(sock: socket.socket, number: int) -> None:
        next(heads(sock))
        sock.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        try:
            for _ in range(MOST_BYTES // 65536 + 100):
                sock.sendall(b"x" * 65536)
        except OSError:
            pass

    with listening(serve) as server:
        assert isinstance(one(SocketTransport(), ask(server)), TooLong)


def test_early_answer_is_read_although_the_rest_was_not_sent(one: One) -> None:
    def serve(sock: socket.socket, number: int) -> None:
        sock.recv(1000)
        sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbig!")
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(65536):
            pass

    with listening(serve) as server:
        assert one(SocketTransport(), ask(server, "POST", b"x" * 3_000_000)) == b"big!"


def test_each_talk_ends_at_its_own_deadline_and_delays_no_other() -> None:
    over = threading.Event()

    def hang(sock: socket.socket, number: int) -> None:
        over.wait(PATIENT)

    def drip(sock: socket.socket, number: int) -> None:
        while not over.wait(0.01):
            try:
                sock.sendall(b"H")
            except OSError:
                return

    with listening(hang) as silent, listening(drip) as slow, listening(polite) as quick:
        outcomes = SocketTransport().run([(ask(silent), 0.3), (ask(slow), 0.2), (ask(quick), PATIENT)])
        over.set()
    assert [type(outcome) for outcome in outcomes[:2]] == [TimeoutError, TimeoutError]
    assert outcomes[2] == b"1"


def dripping(over: threading.Event) -> Serve:
    def serve(sock: socket.socket, number: int) -> None:
        next(heads(sock))
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        try:
            while not over.wait(0.01):
                sock.sendall(b"x")
        except OSError:
            pass

    return serve


def reading_slowly(over: threading.Event) -> Serve:
    def serve(sock: socket.socket, number: int) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        while not over.wait(0.01):
            sock.recv(1000)

    return serve


def silent(over: threading.Event) -> Serve:
    return lambda sock, number: over.wait(PATIENT) and None


@pytest.mark.parametrize(
    ("kind", "length"),
    [(silent, 1), (dripping, 1), (reading_slowly, 30_000_000)],
    ids=["silent", "drips", "reads slowly"],
)
def test_talk_ends_at_its_deadline(one: One, kind: Callable[[threading.Event], Serve], length: int) -> None:
    over = threading.Event()
    with listening(kind(over)) as server:
        begun = time.monotonic()
        outcome = one(SocketTransport(), ask(server, "POST", b"x" * length), 0.4)
        took = time.monotonic() - begun
        over.set()
    assert isinstance(outcome, TimeoutError)
    assert 0.4 <= took < PATIENT / 2


def test_deadline_of_a_talk_is_not_that_of_another_thread() -> None:
    asked, late = threading.Event(), threading.Event()

    def serve(sock: socket.socket, number: int) -> None:
        for request in heads(sock):
            if b"POST" in request:
                asked.set()
                late.wait(PATIENT)
                sock.sendall(answered()[:-1])
                time.sleep(0.05)
                sock.sendall(answered()[-1:])

    def hurry() -> None:
        asked.wait(PATIENT)
        outcomes.append(alone(transport, ask(server), 0.1))
        late.set()

    outcomes: list[Any] = []
    with listening(serve) as server:
        transport = SocketTransport()
        hurried = threading.Thread(target=hurry)
        hurried.start()
        assert alone(transport, ask(server, "POST")) == b"{}"
        hurried.join()
    assert [type(outcome) for outcome in outcomes] == [TimeoutError]


def test_kept_connection_has_the_deadline_of_the_talk_at_hand() -> None:
    def serve(sock: socket.socket, number: int) -> None:
        for request in heads(sock):
            time.sleep(0.3 if b"POST" in request else 0)
            sock.sendall(answered(b"%d" % number))

    with listening(serve) as server:
        transport = SocketTransport()
        assert alone(transport, ask(server), 0.2) == b"1"
        assert alone(transport, ask(server, "POST")) == b"1"
        assert isinstance(alone(transport, ask(server, "POST"), 0.1), TimeoutError)
        assert alone(transport, ask(server, "POST")) == b"2"


class Names(Executor):
    """Looks up no name: each has these addresses; None: the name server hangs."""

    def __init__(self, addresses: Sequence[str] | None) -> None:
        self.addresses = addresses
        self.asked: list[Future[Any]] = []

    def submit(self, *_args: Any, **_named: Any) -> Future[Any]:
        found: Future[Any] = Future()
        if self.addresses is not None:
            found.set_result([(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0)) for one in self.addresses])
        self.asked.append(found)
        return found


def called(server: Server, addresses: Sequence[str] | None, seconds: float = PATIENT) -> bytes:
    return called_by(Names(addresses), server, seconds)


def called_by(names: Names, server: Server, seconds: float) -> bytes:
    pool = BlockingPool(ssl.create_default_context(), names)
    pool.deadline.set(seconds)
    origin = Origin("http", "some.where", server.origin.port)
    try:
        return pool.exchange(HttpRequest(origin, "GET", "/", ()), (origin.host, origin.port)).content
    finally:
        pool.close()


def test_addresses_of_a_name_are_tried_in_turn() -> None:
    with listening(polite) as server:
        assert called(server, ["127.0.0.2", "127.0.0.1"]) == b"1"
        for addresses in ([], ["127.0.0.2", "127.0.0.3"]):
            with pytest.raises(Unreachable):
                called(server, addresses)


def test_address_that_does_not_answer_leaves_time_for_the_next() -> None:
    full = socket.create_server(("127.0.0.2", 0), backlog=0)
    waiting = [socket.socket() for _ in range(3)]
    for sock in waiting:
        sock.setblocking(False)
        sock.connect_ex(full.getsockname())
    with closing(full), listening(polite, full.getsockname()[1]) as server:
        assert called(server, ["127.0.0.2", "127.0.0.1"], 2.0) == b"1"
        with pytest.raises(TimeoutError):
            called(server, ["127.0.0.2"], 0.2)
    for sock in waiting:
        sock.close()


def test_look_up_that_hangs_costs_its_deadline() -> None:
    names = Names(None)
    with listening(polite) as server, pytest.raises(TimeoutError):
        called_by(names, server, 0.2)
    assert [one.cancelled() for one in names.asked] == [True], "a name server that hangs gathers no look-ups"


def test_refused_connection_is_unreachable(one: One) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    outcome = one(SocketTransport(), ask(Origin("http", "127.0.0.1", port)))
    assert isinstance(outcome, Unreachable)
    assert isinstance(outcome.__cause__, ConnectionRefusedError)


def test_name_that_does_not_exist_is_unreachable(one: One) -> None:
    outcome = one(SocketTransport(), ask(Origin("http", "no-such-host.invalid", 80)))
    assert isinstance(outcome, Unreachable)
    assert isinstance(outcome.__cause__, OSError)


def test_name_is_looked_up_beside_the_thread(one: One) -> None:
    with listening(polite) as server:
        transport = SocketTransport(lambda origin: ("localhost", server.origin.port))
        assert one(transport, ask(Origin("http", "somewhere.else", 80))) == b"1"


def test_pool_keeps_a_limited_number() -> None:
    with listening(polite) as server:
        transport = SocketTransport()
        transport.run([(ask(server), PATIENT) for _ in range(MOST_KEPT + 5)])
        assert len(transport.network.pool.connections) == MOST_KEPT


def test_threads_keep_a_limited_number() -> None:
    everybody = threading.Barrier(MOST_KEPT + 5)

    def serve(sock: socket.socket, number: int) -> None:
        for _ in heads(sock):
            everybody.wait(PATIENT)
            sock.sendall(answered())

    with listening(serve) as server, ThreadPoolExecutor(MOST_KEPT + 5) as threads:
        transport = SocketTransport()
        outcomes = list(threads.map(lambda _: alone(transport, ask(server)), range(MOST_KEPT + 5)))
        assert outcomes == [b"{}"] * (MOST_KEPT + 5)
        assert len(transport.network.blocking.idle) == MOST_KEPT


def test_forked_process_leaves_the_connections_of_its_parent_alone(one: One) -> None:
    with listening(polite) as server:
        transport = SocketTransport()
        assert one(transport, ask(server)) == b"1"
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if one(transport, ask(server)) == b"2" else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert one(transport, ask(server)) == b"1"


def test_connections_end_with_their_pool(one: One) -> None:
    ended = threading.Event()

    def serve(sock: socket.socket, number: int) -> None:
        polite(sock, number)
        ended.set()

    with listening(serve) as server:
        transport = SocketTransport()
        one(transport, ask(server))
        del transport
        gc.collect()
        assert ended.wait(PATIENT)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for localhost that no authority has signed, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    file = tmp_path / "both.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, form, plain) + made.public_bytes(serialization.Encoding.PEM)
    )
    return file


@contextmanager
def encrypted(certificate: Path) -> Iterator[Server]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def serve(sock: socket.socket, number: int) -> None:
        try:
            with context.wrap_socket(sock, server_side=True) as safe:
                polite(safe, number)
        except OSError:
            return

    with listening(serve) as server:
        yield server


def secret(server: Server, host: str = "localhost") -> Origin:
    return Origin("https", host, server.origin.port)


def test_encrypted_connection_is_kept(one: One, certificate: Path) -> None:
    with encrypted(certificate) as server:
        transport = SocketTransport(tls=lambda: ssl.create_default_context(cafile=certificate))
        assert [one(transport, ask(secret(server))) for _ in range(3)] == [b"1"] * 3
        assert one(transport, ask(secret(server), "POST", b"x" * 300_000)) == b"1"


@pytest.mark.parametrize("is_known", [False, True], ids=["unknown authority", "another name"])
def test_certificate_is_verified(one: One, certificate: Path, is_known: bool) -> None:
    known = {"tls": lambda: ssl.create_default_context(cafile=certificate)} if is_known else {}
    with encrypted(certificate) as server:
        transport = SocketTransport(lambda origin: ("127.0.0.1", origin.port), **known)
        outcome = one(transport, ask(secret(server, "another.host" if is_known else "localhost")))
    assert isinstance(outcome, Unreachable)
    assert isinstance(outcome.__cause__, ssl.SSLCertVerificationError)


def test_server_that_does_not_shake_hands_costs_its_deadline(one: One) -> None:
    over = threading.Event()
    with listening(lambda sock, number: over.wait(PATIENT) and None) as server:
        assert isinstance(one(SocketTransport(), ask(secret(server)), 0.2), TimeoutError)
        over.set()
