"""Server-sent events: one thread of a web process serves all open streams, and reads what they show once for all.

A request thread authorises a stream and hands its connection over. From then on the stream costs no thread: a client
that takes nothing is disconnected, and resumes from the last id that it saw.
"""

import os
import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Generic, Protocol, TypeVar

import structlog

from climate.domain.errors import TooManyRequests

BEAT_SECONDS = 15.0
"""Time between two signs of life on a stream."""

READ_SECONDS = 0.25
"""Time between two reads of the source while there are streams."""

LIFE_SECONDS = 120.0
"""Time after which a stream is closed. Its client opens another one, and is authenticated again."""

RETRY_MILLISECONDS = 500
"""Time after which a client opens another stream."""

MOST_UNSENT = 256 * 1024
"""Bytes that wait for a client at most."""

MOST_STREAMS, MOST_OF_USER = 1000, 300
"""Streams of a process, and of one user in it."""

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-store\r\n"
    b"X-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
)

log = structlog.get_logger(__name__)


class Item(Protocol):
    """An item that streams show, with its place in the order of all."""

    @property
    def position(self) -> int: ...


ITEM = TypeVar("ITEM", bound=Item)
READ = TypeVar("READ", bound=Item, covariant=True)


class Source(Protocol[READ]):
    """Items of which each stream shows a part. `position` is that of the last one, None until it is known."""

    @property
    def position(self) -> int | None: ...
    def read(self) -> Sequence[READ]: ...
    def missed(self, after: int) -> Sequence[READ] | None: ...


def message(position: int | None, event: str = "", data: str = "") -> bytes:
    """Return a message in the format of server-sent events. One without event only moves the last id of a client."""
    lines = [] if position is None else [f"id: {position}"]
    lines += [f"event: {event}", f"data: {data}"] if event else []
    return "".join(f"{line}\n" for line in [*lines, ""]).encode()


@dataclass(eq=False)
class Stream(Generic[ITEM]):
    """An open stream; `show` returns the messages for the items that its viewer may see."""

    sock: socket.socket
    user_id: str
    show: Callable[[Sequence[ITEM]], bytes]
    seen: int | None = None
    """Last id that the client has; None: it reads everything after the first message."""
    closes_at: float = 0.0
    beats_at: float = 0.0
    is_open: bool = False
    """Whether it was told where it begins."""
    unsent: bytearray = field(default_factory=bytearray)


class EventStreams(Generic[ITEM]):
    """All open streams of a process. Its thread begins with the first stream."""

    def __init__(self, source: Callable[[], Source[ITEM]], life_seconds: float = LIFE_SECONDS) -> None:
        self._new_source = source
        self._life = life_seconds
        self._arrivals: SimpleQueue[Stream[ITEM]] = SimpleQueue()
        self._of_user: Counter[str] = Counter()
        self._lock = Lock()
        self._bell: tuple[int, int] | None = None
        self._streams: set[Stream[ITEM]] = set()
        self._selector = selectors.DefaultSelector()

    def __len__(self) -> int:
        return self._of_user.total()

    def admit(self, user_id: str) -> None:
        """Count a stream of a user. Raise TooManyRequests if it has too many here, or this process has."""
        with self._lock:
            if self._of_user[user_id] >= MOST_OF_USER or self._of_user.total() >= MOST_STREAMS:
                raise TooManyRequests(f"Too many open streams: {MOST_OF_USER} per user are allowed; close some pages")
            self._of_user[user_id] += 1

    def take(self, stream: Stream[ITEM]) -> None:
        """Serve a stream that was admitted, from now on."""
        with self._lock:
            if self._bell is None:
                self._bell = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
                self._selector.register(self._bell[0], selectors.EVENT_READ)
                Thread(target=self._run, name="event-streams", daemon=True).start()
        self._arrivals.put(stream)
        with suppress(BlockingIOError):
            os.write(self._bell[1], b"!")

    def _run(self) -> None:
        source, read_at = self._new_source(), 0.0
        while True:
            if not self._streams:  # what happened meanwhile is read by those who missed it, if anybody did
                self._turn(None)
                source = self._new_source()
            else:
                self._turn(READ_SECONDS)
            if time.monotonic() < read_at and self._arrivals.empty():
                continue
            read_at = time.monotonic() + READ_SECONDS
            try:
                self._send_new(source)
            except Exception as error:  # noqa: BLE001 - the streams stay open while the database is away
                log.warning("event streams wait", error=type(error).__name__)
            self._maintain()

    def _turn(self, seconds: float | None) -> None:
        """Serve the sockets that are ready, or wait for one."""
        for key, ready in self._selector.select(seconds):
            if key.data is None:
                with suppress(BlockingIOError):
                    os.read(key.fd, 4096)
            elif ready & selectors.EVENT_WRITE:
                self._send(key.data, b"")
            else:
                self._read_client(key.data)

    def _read_client(self, stream: Stream[ITEM]) -> None:
        """Close a stream whose client is gone; whatever a client sends is thrown away."""
        try:
            if stream.sock.recv(4096):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._close(stream)

    def _send_new(self, source: Source[ITEM]) -> None:
        while not self._arrivals.empty():
            self._begin(self._arrivals.get())
        found = source.read()
        for stream in [one for one in self._streams if one.is_open and found]:
            self._show(stream, found)
        if source.position is not None:
            for stream in [one for one in self._streams if not one.is_open]:
                self._open(stream, source, source.position)

    def _show(self, stream: Stream[ITEM], found: Sequence[ITEM]) -> None:
        new = [item for item in found if item.position > (stream.seen or 0)]
        if new:
            stream.seen = new[-1].position
            self._send(stream, stream.show(new))

    def _begin(self, stream: Stream[ITEM]) -> None:
        now = time.monotonic()
        stream.closes_at, stream.beats_at = now + self._life, now + BEAT_SECONDS
        stream.sock.setblocking(False)
        self._streams.add(stream)
        self._selector.register(stream.sock, selectors.EVENT_READ, stream)
        self._send(stream, HEAD + f"retry: {RETRY_MILLISECONDS}\n\n".encode())

    def _open(self, stream: Stream[ITEM], source: Source[ITEM], position: int) -> None:
        """Send what the client has missed, and where it is now; `reset` if that is too much, or no longer known."""
        missed = source.missed(stream.seen) if stream.seen is not None else []
        stream.is_open = True
        if missed is None:
            stream.seen = position
            self._send(stream, message(position, "reset", "{}"))
            return
        self._show(stream, missed)
        stream.seen = max(position, stream.seen or 0)
        self._send(stream, message(stream.seen, "ready", "{}"))

    def _maintain(self) -> None:
        """Send signs of life, and close streams whose time is over."""
        now = time.monotonic()
        for stream in list(self._streams):
            if stream.closes_at <= now:
                self._close(stream)
            elif stream.beats_at <= now:
                stream.beats_at = now + BEAT_SECONDS
                # Its id is kept by the client, so that one to whom nothing was shown for long misses little.
                self._send(stream, message(stream.seen))

    def _send(self, stream: Stream[ITEM], data: bytes) -> None:
        stream.unsent += data
        if not stream.unsent:
            return
        try:
            del stream.unsent[: stream.sock.send(stream.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self._close(stream)
            return
        if len(stream.unsent) > MOST_UNSENT:
            self._close(stream)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if stream.unsent else 0)
        if self._selector.get_key(stream.sock).events != wanted:
            self._selector.modify(stream.sock, wanted, stream)

    def _close(self, stream: Stream[ITEM]) -> None:
        if stream not in self._streams:
            return
        self._streams.discard(stream)
        self._selector.unregister(stream.sock)
        with suppress(OSError):
            stream.sock.close()
        with self._lock:
            self._of_user[stream.user_id] -= 1
            if not self._of_user[stream.user_id]:
                del self._of_user[stream.user_id]
