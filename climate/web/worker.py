"""The worker of the web server: a request takes a thread when it is there, and not while it arrives.

It is gunicorn's threaded worker, with a loop before the threads. The loop waits for no client: one that sends slowly,
half a request, or nothing, costs its bytes until its time is over. The loop also answers `Expect: 100-continue`. Long
bodies, contents of images and /healthz have threads of their own.
"""

import errno
import os
import select
import selectors
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import BoundedSemaphore, Lock
from typing import Any

from gunicorn.workers.gthread import TConn, ThreadWorker  # type: ignore[import-untyped]

from climate.web import garbage_collection
from climate.web.accept_turns import AcceptsInTurn
from climate.web.error_answers import LATE, LONG_HEAD, SLOW, RefusesInJson, answer
from climate.web.request_framing import Arrival, Framing
from climate.web.thread_pools import ThreadPools
from climate.web.upload_pace import BUSY_BYTES_PER_SECOND, LEAST_BYTES_PER_SECOND, SETTING, UploadPace, least

HEAD_SECONDS = 20.0
"""Time for a head to arrive after its first byte, in seconds."""

BODY_SECONDS = 60.0
"""Time for a body of up to `request_framing.LONGEST_BODY` bytes to arrive after its head, in seconds."""

SLOW_SECONDS = 30.0
"""Seconds over which the pace of a longer body, or of an answer, is measured: see `upload_pace`."""
WAIT_SECONDS = 60.0
"""Longest time that a thread waits for a client to take or to send anything, in seconds."""

LONGEST_UNSENT = 16 * 1024 * 1024
"""Bytes of an answer that a thread leaves to the loop at most; beyond them it waits for the client."""

LONGEST_TAKEN = 2
"""Threads of a process that wait at once for clients to take what is longer than that."""

NOTIFY_SECONDS = 1.0
"""Time between two signs of life for the arbiter, in seconds; gunicorn's own give one at each turn of the loop."""
TAKE_SECONDS = 2.0
"""Time for which any other thread waits for its client to take a piece of such an answer, in seconds."""

LINGER_SECONDS = 2.0
"""Time for a client to take the last answer before its connection is closed, in seconds."""
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of requests that wait for a thread, and of answers that wait for their clients, in a process.

Beyond them, the connection that has any of them and has waited longest is closed.
"""

_TAKEN = BoundedSemaphore(LONGEST_TAKEN)
_PIECE = 64 * 1024
_FILE_PIECE = 1024 * 1024
_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
_LENGTH = b"\r\nContent-Length: "
_EMPTY = b"\r\nContent-Length: 0\r\n"
_TOO_SLOW = answer(408, SLOW, "repeat it later, or over a faster connection")
_REFUSALS = {408: answer(408, LATE), 431: answer(431, LONG_HEAD)}


class PatientSocket(socket.socket):
    """A client's socket on which no thread waits for ever."""

    slow_seconds, take_seconds = SLOW_SECONDS, TAKE_SECONDS
    _begun = 0.0
    _received: int | None = None
    _least: Callable[[], int] = staticmethod(least)
    _sent, _sending = 0, 0.0
    """Bytes of the answer that were sent lately, and seconds that this took."""
    leaves = False
    """Whether a thread leaves to the loop what the client does not take at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.unsent = bytearray()
        """End of the answer, which the loop sends."""
        self._expects_head, self.is_handed_over, self._is_refused = False, False, False
        self._head = b""
        """Head of the answer, which is sent together with the first piece of its body."""

    def hand_over(self) -> socket.socket:
        """Return the connection for a loop of its own; a thread sends nothing on it any more."""
        self.is_handed_over = True
        return socket.socket(fileno=os.dup(self.fileno()))

    def setblocking(self, flag: bool, /) -> None:
        """Return to the loop with False, and how much was sent counts no more, or to a thread with True.

        gunicorn calls it with True for each request, also for one that has to hurry.
        """
        if not flag:
            self._received = None
        self._sent, self._sending = 0, 0.0
        self.settimeout(WAIT_SECONDS if flag else 0.0)

    def settimeout(self, value: float | None, /) -> None:
        """As for any socket; the same value again costs no system call."""
        if value != self.gettimeout():
            super().settimeout(value)

    def expect_head(self) -> None:
        """Expect the head of an answer as the next data to be sent."""
        self._expects_head = True

    def send_head(self) -> None:
        """Send a head that no body has followed."""
        self._expects_head = False
        head, self._head = self._head, b""
        if head:
            self.sendall(head)

    def hurry(self, pace: Callable[[], int]) -> None:
        """From now on the client has to send at least so many bytes per second, measured anew after `slow_seconds`."""
        self._begun, self._received, self._least = time.monotonic(), 0, pace

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """As for any socket; ConnectionResetError when the client is too slow."""
        try:
            data = super().recv(size, flags)
        except TimeoutError:
            raise ConnectionResetError(errno.ECONNRESET, "the client sends nothing") from None
        if self._received is not None:
            self._received += len(data)
            seconds = time.monotonic() - self._begun
            if self._is_slow(seconds, self._received, self._least()):
                self._refuse_slow()
                raise ConnectionResetError(errno.ECONNRESET, "the client sends too slowly")
            if seconds > self.slow_seconds:  # what came fast at first is no credit for ever
                self.hurry(self._least)
        return data

    def _refuse_slow(self) -> None:
        with suppress(OSError):
            self.send_some(_TOO_SLOW)
        self._is_refused = True

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        """As for any socket; ConnectionResetError when the client takes nothing, or too little."""
        if self.is_handed_over or self._is_refused:
            return
        if self._expects_head:
            self._expects_head = False
            if _announces_body(data):
                self._head = bytes(data)
                return
        if self._head and len(data) <= _PIECE:
            data, self._head = self._head + data, b""
        self.send_head()
        left = memoryview(data).cast("B")
        if self.leaves:
            left = self._buffer(left)
        if not left:
            return
        if not self.leaves:
            self._send_waiting(left, flags)
            return
        is_patient = _TAKEN.acquire(blocking=False)
        try:
            self.settimeout(WAIT_SECONDS if is_patient else self.take_seconds)
            self._send_waiting(left, flags)
        finally:
            if is_patient:
                _TAKEN.release()

    def _send_waiting(self, left: memoryview, flags: int) -> None:
        """Send everything. ConnectionResetError if the client takes nothing for too long, or too little."""
        while left:
            begun = time.monotonic()
            try:
                sent = super().send(left, flags)
            except TimeoutError:
                raise ConnectionResetError(errno.ECONNRESET, "the client takes nothing") from None
            left = left[sent:]
            self._count_sent(sent, begun)

    def _buffer(self, data: memoryview) -> memoryview:
        """Send what the client takes at once, leave the rest to the loop; return what is too long to be left."""
        taken = 0 if self.unsent else self.send_some(data)
        if len(self.unsent) + len(data) - taken <= LONGEST_UNSENT:
            self.unsent += data[taken:]
            return data[len(data) :]
        whole = memoryview(bytes(self.unsent) + bytes(data[taken:]))
        self.unsent.clear()
        return whole

    def send_some(self, data: Any) -> int:
        """Return how many bytes the client takes now; nothing is waited for, whatever the timeout of the socket."""
        try:
            return os.write(self.fileno(), data)
        except (BlockingIOError, InterruptedError):
            return 0

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> int:
        """As for any socket; ConnectionResetError when the client takes nothing, or too little."""
        self.send_head()
        total = 0
        while count is None or total < count:
            begun = time.monotonic()
            piece = _FILE_PIECE if count is None else min(_FILE_PIECE, count - total)
            try:
                sent = os.sendfile(self.fileno(), file.fileno(), offset + total, piece)
            except BlockingIOError:
                self._await_room()
                self._count_sent(0, begun)
                continue
            if not sent:
                break
            total += sent
            self._count_sent(sent, begun)
        return total

    def _count_sent(self, sent: int, begun: float) -> None:
        # Only the time in which the client might have taken something: an application may pause.
        self._sent, self._sending = self._sent + sent, self._sending + time.monotonic() - begun
        if self._is_slow(self._sending, self._sent, LEAST_BYTES_PER_SECOND):
            raise ConnectionResetError(errno.ECONNRESET, "the client takes too little")
        if self._sending > self.slow_seconds:
            self._sent, self._sending = 0, 0.0

    def _await_room(self) -> None:
        room = select.poll()
        room.register(self, select.POLLOUT)
        if not room.poll(self.slow_seconds * 1000):
            raise ConnectionResetError(errno.ECONNRESET, "the client takes nothing")

    def _is_slow(self, seconds: float, count: int, least: int) -> bool:
        return seconds > self.slow_seconds and count < seconds * least


def _announces_body(data: Any) -> bool:
    """Return whether data is the head of an answer with a body of known length. Streams must not wait for a body."""
    return bytes(data[:5]) == b"HTTP/" and _LENGTH in data and _EMPTY not in data


@dataclass(eq=False)
class Waiting:
    """A connection that is waited for, up to a moment of the steady clock."""

    conn: Any
    until: float
    framing: Framing = field(default_factory=Framing)
    polled: bool = False
    closing: bool = False
    """Its last answer is out: what it still sends is thrown away."""
    unsent: int = 0
    """Bytes of its answer that are counted as kept."""


class BufferingWorker(RefusesInJson, AcceptsInTurn, ThreadWorker):  # type: ignore[misc]
    """Gives to a thread only what has arrived."""

    head_seconds, body_seconds = HEAD_SECONDS, BODY_SECONDS
    most_bytes, notify_seconds = MOST_BYTES, NOTIFY_SECONDS
    busy_bytes_per_second = BUSY_BYTES_PER_SECOND
    client_socket = PatientSocket

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: dict[object, Waiting] = {}
        """By connection; those that have waited longest come first."""
        self._kept_bytes = 0
        self._counting = Lock()
        self._looked = 0.0
        self._notified = -NOTIFY_SECONDS
        self._pools = ThreadPools()
        self._pace = UploadPace(self.busy_bytes_per_second)

    def load_wsgi(self) -> None:
        """Load the application and its pace of uploads, and search for cycles of garbage rarely from then on."""
        super().load_wsgi()
        self._pace.busy = getattr(self.wsgi, "config", {}).get(SETTING, self._pace.busy)
        garbage_collection.tune_gc()

    def notify(self) -> None:
        """Give the arbiter a sign of life, but not at each turn of the loop."""
        now = time.monotonic()
        if now - self._notified >= self.notify_seconds:
            self._notified = now
            super().notify()

    def accept(self, listener: socket.socket) -> None:
        """Begin to read from a new client."""
        try:
            accepted, address = listener.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._close_longest_idle()
            elif error.errno not in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                raise
            return
        self.pause()
        client = self.client_socket(fileno=accepted.detach())
        self.nr_conns += 1
        self._begin(TConn(self.cfg, client, address, listener.getsockname()))
        if self.nr_conns >= self.worker_connections:
            self._close_longest_idle()

    def on_client_socket_readable(self, conn: object, client: object) -> None:
        """Begin to read the next request of a connection that was kept."""
        if conn not in self.keepalived_conns:  # closed by an event before this one, of the same turn of the loop
            return
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self._begin(conn)

    def enqueue_req(self, conn: Any) -> None:
        """Go on with what a client has sent together with the request before."""
        self._begin(conn, conn.parser.unreader.take_buffered())

    def finish_request(self, conn: Any, fs: "Future[Any]") -> None:
        """Keep the connection, or close it once the client has taken the answer; nothing is waited for here."""
        if conn.sock.is_handed_over:
            self._close(conn)
            return
        if conn.sock.unsent:
            self._flush_later(conn, fs)
            return
        kept = not fs.cancelled() and fs.exception() is None and fs.result()
        if kept:
            super().finish_request(conn, fs)
            return
        with suppress(OSError):
            conn.sock.shutdown(socket.SHUT_WR)
            conn.sock.setblocking(False)
            self._waiting[conn] = Waiting(conn, time.monotonic() + LINGER_SECONDS, closing=True)
            self._poll(self._waiting[conn])
            return
        self._close(conn)

    def _flush_later(self, conn: Any, fs: "Future[Any]") -> None:
        """Send the end of an answer as the client takes it, and then finish its request."""
        if conn.sock.fileno() < 0:  # the answer failed after its beginning
            self._close(conn)
            return
        conn.sock.setblocking(False)
        count = len(conn.sock.unsent)
        self._waiting[conn] = waiting = Waiting(conn, time.monotonic() + conn.sock.slow_seconds, unsent=count)
        self._count(count)
        waiting.polled = True
        self.poller.register(conn.sock, selectors.EVENT_WRITE, partial(self._flush, waiting, fs))
        self._bound_kept()

    def _flush(self, waiting: Waiting, fs: "Future[Any]", client: Any) -> None:
        """Send a piece of an answer; a client that takes less than the least in its time is given up."""
        if self._waiting.get(waiting.conn) is not waiting:
            return
        try:
            del client.unsent[: client.send_some(client.unsent[:_FILE_PIECE])]
        except OSError:
            self._drop(waiting, None)
            return
        if not client.unsent:
            self._forget(waiting)
            self.finish_request(waiting.conn, fs)
        elif waiting.unsent - len(client.unsent) >= LEAST_BYTES_PER_SECOND * client.slow_seconds and self.alive:
            self._count(len(client.unsent) - waiting.unsent)
            waiting.unsent, waiting.until = len(client.unsent), time.monotonic() + client.slow_seconds

    def murder_pending(self) -> None:
        """Close what has not arrived in its time; a worker that stops waits for little."""
        now = time.monotonic()
        if now - self._looked < 0.5:
            return
        self._looked = now
        for waiting in list(self._waiting.values()):
            if not self.alive:
                waiting.until = min(waiting.until, now + LINGER_SECONDS)
            if waiting.until <= now:
                self._drop(waiting, 408 if waiting.framing.data else None)

    def _begin(self, conn: Any, data: bytes = b"") -> None:
        conn.sock.setblocking(False)
        self._waiting[conn] = waiting = Waiting(conn, time.monotonic() + self.cfg.keepalive)
        if data:
            self._arrived(waiting, data)
        else:
            self._read(waiting, conn.sock)
        # Most requests are there by now, and need not be polled for.
        if conn in self._waiting:
            self._poll(waiting)

    def _read(self, waiting: Waiting, client: Any) -> None:
        # An event before this one, of the same turn of the loop, may have closed the connection.
        if self._waiting.get(waiting.conn) is not waiting:
            return
        try:
            data = client.recv(_PIECE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._forget(waiting)
            self._close(waiting.conn)
        elif not waiting.closing:
            self._arrived(waiting, data)

    def _arrived(self, waiting: Waiting, data: bytes) -> None:
        if not waiting.framing.data:
            waiting.until = time.monotonic() + self.head_seconds
        in_head, before = waiting.framing.in_head, len(waiting.framing.data)
        arrival = waiting.framing.feed(data)
        self._count(len(waiting.framing.data) - before)
        if arrival is Arrival.BODY and waiting.framing.asks_first:
            waiting.framing.asks_first = False
            with suppress(OSError):
                waiting.conn.sock.send(_GO_ON)
        if arrival is Arrival.BODY and in_head:
            waiting.until = time.monotonic() + self.body_seconds
        if arrival is Arrival.ENDLESS:
            self._drop(waiting, 431)
        elif arrival in (Arrival.WHOLE, Arrival.LONG):
            self._serve(waiting, arrival)
        self._bound_kept()

    def _bound_kept(self) -> None:
        """Close the connections that have waited longest while more bytes are kept than may be."""
        while self._kept_bytes > self.most_bytes:
            keeping = next((one for one in self._waiting.values() if one.framing.data or one.unsent), None)
            if keeping is None:  # all of it waits for threads
                break
            self._drop(keeping, None)

    def _serve(self, waiting: Waiting, arrival: Arrival) -> None:
        self._forget(waiting)
        data = bytes(waiting.framing.data)
        self._count(len(data))
        pool = self._pools.of(data, is_long=arrival is Arrival.LONG) or self.tpool
        leaves, is_upload = pool is not self._pools.downloads, pool is self._pools.uploads
        pace = (self._pace.least if is_upload else least) if arrival is Arrival.LONG else None
        self._pace.count_waiting(is_upload)
        done = pool.submit(self._handle, waiting.conn, data, pace=pace, leaves=leaves)
        done.add_done_callback(lambda future: self.method_queue.defer(self.finish_request, waiting.conn, future))

    def _handle(self, conn: Any, data: bytes, *, pace: Callable[[], int] | None, leaves: bool) -> object:
        self._count(-len(data))
        if pace == self._pace.least:
            self._pace.count_waiting(-1)
        conn.data_ready = True
        conn.init()
        conn.parser.unreader.unread(data)
        conn.sock.leaves = leaves
        if pace is not None:
            conn.sock.hurry(pace)
        conn.sock.expect_head()
        try:
            return self.handle(conn)
        finally:
            conn.sock.send_head()

    def _count(self, more: int) -> None:
        with self._counting:
            self._kept_bytes += more

    def _close_longest_idle(self) -> None:
        """Close a connection: one that is kept for the next request, or else the one that has waited longest."""
        if self.keepalived_conns:
            conn = self.keepalived_conns.popleft()
            self.poller.unregister(conn.sock)
            self._close(conn)
            return
        oldest = next(iter(self._waiting.values()), None)
        if oldest is not None:
            self._drop(oldest, None)

    def _drop(self, waiting: Waiting, status: int | None) -> None:
        self._forget(waiting)
        if status is not None and not waiting.closing:
            with suppress(OSError):
                waiting.conn.sock.send(_REFUSALS[status])
        self._close(waiting.conn)

    def _poll(self, waiting: Waiting) -> None:
        waiting.polled = True
        read: Callable[[object], None] = partial(self._read, waiting)
        self.poller.register(waiting.conn.sock, selectors.EVENT_READ, read)

    def _forget(self, waiting: Waiting) -> None:
        del self._waiting[waiting.conn]
        self._count(-len(waiting.framing.data) - waiting.unsent)
        if waiting.polled:
            self.poller.unregister(waiting.conn.sock)

    def _close(self, conn: Any) -> None:
        self.nr_conns -= 1
        conn.close()
