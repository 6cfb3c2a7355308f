"""Few system calls for an answer: its head goes with its body, and the arbiter is notified rarely."""

import os
import socket
from contextlib import suppress

import pytest
from gunicorn.config import Config

from climate.web.worker import BufferingWorker, PatientSocket


@pytest.mark.parametrize(
    ("head", "sent"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", [], id="of-known-length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ["head"], id="stream"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ["head"], id="empty"),
    ],
)
def test_a_head_waits_only_for_a_body_of_known_length(head: bytes, sent: list[str]) -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # keeps the pieces apart
    with PatientSocket(fileno=near.detach()) as answering, far:
        far.setblocking(False)
        answering.leaves = True
        answering.expect_head()
        answering.sendall(head)
        assert _pieces(far) == [head] * len(sent)
        answering.sendall(b"body")
        answering.sendall(b"more")
        answering.send_head()
        assert _pieces(far) == [b"body" if sent else head + b"body", b"more"]


def test_a_head_without_its_body_is_sent_at_the_end() -> None:
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
    with PatientSocket(fileno=near.detach()) as answering, far:
        far.setblocking(False)
        answering.expect_head()
        answering.sendall(head)
        answering.send_head()
        assert _pieces(far) == [head]


def _pieces(far: socket.socket) -> list[bytes]:
    found = []
    with suppress(BlockingIOError):
        while True:
            found.append(far.recv(4096))
    return found


def test_signs_of_life_cost_little() -> None:
    class Life:
        count = 0

        def notify(self) -> None:
            self.count += 1

    worker = BufferingWorker(1, os.getpid(), [], None, 30, Config(), None)
    worker.tmp.close()
    worker.tmp = life = Life()
    for _ in range(100):
        worker.notify()
    assert 1 <= life.count < 10
    worker.notify_seconds = 0.0
    worker.notify()
    worker.notify()
    assert life.count >= 3
