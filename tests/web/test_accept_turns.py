"""Clients that connect at the same moment are shared out over the processes of the web server."""

import os
import selectors
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from gunicorn.config import Config

from climate.web.worker import BufferingWorker

CLIENTS = 4
FOR_EVER = 3600.0


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A socket on which some clients wait to be accepted."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for _ in range(CLIENTS):
            stack.enter_context(socket.create_connection(listening.getsockname()))
        yield listening


def worker(listener: socket.socket, processes: int, pause: float) -> BufferingWorker:
    """A worker that listens, as the loop of gunicorn leaves it at each turn."""
    config = Config()
    config.set("workers", processes)
    made = BufferingWorker(1, os.getpid(), [listener], None, 30, config, None)
    made.tmp.close()
    made.accept_pause = pause
    made.poller = selectors.DefaultSelector()
    made.set_accept_enabled(True)
    return made


def turn(*workers: BufferingWorker) -> list[int]:
    """Let each worker run its loop once; the number of connections of each."""
    for one in workers:
        one.set_accept_enabled(True)
        one.wait_for_and_dispatch_events(0.0)
    return [one.nr_conns for one in workers]


def test_a_process_leaves_the_next_connection_to_another(listener: socket.socket) -> None:
    first, second = (worker(listener, 2, FOR_EVER) for _ in range(2))
    assert turn(first, first, first, second, second) == [1, 1, 1, 1, 1]


def test_a_process_listens_again_after_its_pause(listener: socket.socket) -> None:
    one = worker(listener, 2, FOR_EVER)
    turn(one)
    assert turn(one, one) == [1, 1]
    one.accept_pause, one._listens_at = 0.0, 0.0
    assert [turn(one)[0] for _ in range(CLIENTS - 1)] == [2, 3, CLIENTS]


def test_the_loop_waits_no_longer_than_the_pause(listener: socket.socket) -> None:
    one = worker(listener, 2, 0.001)
    while one.nr_conns < CLIENTS:
        one.set_accept_enabled(True)
        one.wait_for_and_dispatch_events(FOR_EVER)


def test_a_single_process_accepts_without_a_pause(listener: socket.socket) -> None:
    one = worker(listener, 1, FOR_EVER)
    assert [turn(one)[0] for _ in range(CLIENTS)] == [1, 2, 3, CLIENTS]
