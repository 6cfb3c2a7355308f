"""Streams of server-sent events: one thread for all, and clients that resume, stay away or take nothing."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import pytest

from climate.domain.errors import TooManyRequests
from climate.web.event_streams import MOST_OF_USER, MOST_UNSENT, EventStreams, Stream, message


@dataclass(frozen=True)
class Item:
    position: int
    text: str = ""


@dataclass
class Source:
    """Items that tests add; `position` is that of the last one read."""

    items: list[Item] = field(default_factory=list)
    position: int | None = 0
    is_away: bool = False

    def read(self) -> Sequence[Item]:
        if self.is_away:
            raise ConnectionError
        found = [item for item in self.items if item.position > (self.position or 0)]
        self.position = found[-1].position if found else self.position
        return found

    def missed(self, after: int) -> Sequence[Item] | None:
        return None if after > 1000 else [item for item in self.items if after < item.position <= (self.position or 0)]


def shown(found: Sequence[Item]) -> bytes:
    return b"".join(message(item.position, "item", item.text) for item in found)


class Client:
    """The far end of a stream."""

    def __init__(self, streams: EventStreams[Item], seen: int | None = None, user: str = "u") -> None:
        near, self.sock = socket.socketpair()
        self.sock.settimeout(60)
        self._text = b""
        streams.admit(user)
        streams.take(Stream(near, user, shown, seen))

    def until(self, end: bytes) -> bytes:
        """Return what arrives up to and including `end`."""
        while end not in self._text:
            piece = self.sock.recv(65536)
            assert piece, (end, self._text)
            self._text += piece
        before, _, self._text = self._text.partition(end)
        return before + end


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def streams(source: Source) -> EventStreams[Item]:
    return EventStreams(lambda: source)


@pytest.fixture
def opened(streams: EventStreams[Item]) -> Iterator[partial[Client]]:
    with ExitStack() as stack:

        def open_one(*args: object, **more: object) -> Client:
            client = Client(streams, *args, **more)  # type: ignore[arg-type]
            stack.enter_context(client.sock)
            return client

        yield partial(open_one)


def test_a_stream_tells_where_it_begins_and_what_follows(source: Source, opened: partial[Client]) -> None:
    source.items.append(Item(5, "before"))
    client = opened()
    assert b"before" not in client.until(b"id: 5\nevent: ready\ndata: {}\n\n")
    source.items.append(Item(6, "after"))
    assert client.until(b"\n\n") == b"id: 6\nevent: item\ndata: after\n\n"


def test_a_client_resumes_after_its_last_id(source: Source, opened: partial[Client]) -> None:
    source.items += [Item(1, "a"), Item(2, "b"), Item(3, "c")]
    opened().until(b"event: ready")
    told = opened(1).until(b"event: ready")
    assert b"data: a" not in told
    assert told.index(b"data: b") < told.index(b"data: c")


def test_a_client_that_is_ahead_of_this_process_gets_nothing_twice(source: Source, opened: partial[Client]) -> None:
    client = opened(7)
    client.until(b"id: 7\nevent: ready")
    source.items += [Item(6, "known"), Item(7, "known too")]
    source.items.append(Item(8, "new"))
    assert b"known" not in client.until(b"data: new")


def test_a_client_that_missed_too_much_is_told_to_read_anew(opened: partial[Client]) -> None:
    opened(5000).until(b"event: reset\ndata: {}\n\n")


def test_all_streams_share_one_thread(source: Source, opened: partial[Client], streams: EventStreams[Item]) -> None:
    before = threading.active_count()
    clients = [opened(user=f"u{place % 10}") for place in range(200)]
    for client in clients:
        client.until(b"event: ready")
    assert threading.active_count() <= before + 1
    source.items.append(Item(1, "x"))
    for client in clients:
        client.until(b"data: x")
    assert len(streams) == 200


def test_a_closed_stream_is_forgotten(opened: partial[Client], streams: EventStreams[Item]) -> None:
    client, other = opened(), opened()
    client.until(b"event: ready")
    client.sock.close()
    other.until(b"event: ready")
    while len(streams) > 1:
        threading.Event().wait(0.01)


def test_a_client_that_takes_nothing_is_disconnected(
    source: Source, opened: partial[Client], streams: EventStreams[Item]
) -> None:
    silent, quick = opened(user="silent"), opened()
    quick.until(b"event: ready")
    for position in range(1, 2000):
        source.items.append(Item(position, "x" * (MOST_UNSENT // 4)))
        quick.until(b"\n\n")
        if len(streams) == 1:
            break
    assert len(streams) == 1
    assert silent.sock.fileno() >= 0


def test_streams_outlast_a_database_that_is_away(source: Source, opened: partial[Client]) -> None:
    client = opened()
    client.until(b"event: ready")
    source.is_away = True
    source.items.append(Item(1, "late"))
    threading.Event().wait(0.6)
    source.is_away = False
    client.until(b"data: late")


def test_a_stream_ends_so_that_its_client_is_authenticated_again(source: Source) -> None:
    client = Client(EventStreams(lambda: source, life_seconds=0.1))
    client.until(b"event: ready")
    while client.sock.recv(4096):
        pass


def test_a_user_has_a_limit_of_streams(streams: EventStreams[Item]) -> None:
    for _ in range(MOST_OF_USER):
        streams.admit("u")
    with pytest.raises(TooManyRequests, match="300 per user"):
        streams.admit("u")
    streams.admit("other")


def test_a_message_without_event_moves_the_id_alone() -> None:
    assert message(7) == b"id: 7\n\n"
    assert message(7, "lease", "{}") == b"id: 7\nevent: lease\ndata: {}\n\n"
