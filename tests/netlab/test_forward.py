"""What is carried into the sandbox comes through whole, in both directions, and breaks off where it broke off."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVE = """
import socket, sys
from climate.sandbox import forward
forward.serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
"""


@contextmanager
def forwarder(port: int) -> Iterator[tuple[str, int]]:
    """Where a process of its own takes connections for this port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        argv = [sys.executable, "-c", SERVE, str(listener.fileno()), str(port)]
        with subprocess.Popen(argv, pass_fds=[listener.fileno()], cwd=ROOT) as process:
            try:
                yield listener.getsockname()
            finally:
                process.kill()


@contextmanager
def carried(answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    """Where a server that answers so is reached through a forwarder."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_serve, args=(server, answer), daemon=True).start()
        with forwarder(server.getsockname()[1]) as where:
            yield where


def _serve(server: socket.socket, answer: Callable[[socket.socket], None]) -> None:
    while True:
        try:
            one, _ = server.accept()
        except OSError:
            return
        with one:
            answer(one)


def everything(one: socket.socket) -> bytes:
    return b"".join(iter(lambda: one.recv(65536), b""))


def echo(one: socket.socket) -> None:
    one.sendall(everything(one))


def told(where: tuple[str, int], sent: bytes) -> bytes:
    with socket.create_connection(where, timeout=30) as one:
        one.sendall(sent)
        one.shutdown(socket.SHUT_WR)
        return everything(one)


def test_much_comes_through_and_back_after_one_side_has_ended() -> None:
    sent = os.urandom(3_000_000)
    with carried(echo) as where:
        assert told(where, sent) == sent


def test_many_connections_do_not_disturb_each_other() -> None:
    with carried(echo) as where:
        assert [told(where, b"%d" % number) for number in range(200)] == [b"%d" % number for number in range(200)]


def test_a_server_that_ends_is_seen_by_its_client() -> None:
    with carried(lambda one: one.sendall(b"bye")) as where, socket.create_connection(where, timeout=30) as one:
        assert everything(one) == b"bye"


def test_a_connection_that_nobody_takes_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        nobody = server.getsockname()[1]
    with forwarder(nobody) as where, socket.create_connection(where, timeout=30) as one:
        assert everything(one) == b""
