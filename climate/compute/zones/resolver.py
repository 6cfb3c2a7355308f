"""Names of hosts, looked up beside a thread that must not wait for them."""

import select
import socket
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock, Thread

from climate.compute.zones.http_connection import Address, Addresses, Wait

Name = tuple[str, int]
Answer = Future[Sequence[Address]]


@dataclass
class Resolver:
    """Looks up each name once at a time, so that a name server that hangs holds one thread for each name at most."""

    _running: dict[Name, Answer] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def addresses(self, host: str, port: int) -> Addresses:
        """The addresses of a host; OSError when it has none."""
        try:
            return _looked_up(host, port, socket.AI_NUMERICHOST)
        except socket.gaierror:
            answer = self._answer((host, port))
        ours, theirs = socket.socketpair()
        with ours:
            answer.add_done_callback(lambda _: theirs.close())
            yield Wait(ours.fileno(), select.POLLIN)
        return answer.result()

    def _answer(self, name: Name) -> Answer:
        with self._lock:
            if name not in self._running:
                self._running[name] = Future()
                Thread(target=self._look_up, args=(name, self._running[name]), daemon=True).start()
            return self._running[name]

    def _look_up(self, name: Name, answer: Answer) -> None:
        try:
            found = _looked_up(*name)
        except (OSError, UnicodeError) as error:
            self._end(name)
            answer.set_exception(error)
        else:
            self._end(name)
            answer.set_result(found)

    def _end(self, name: Name) -> None:
        with self._lock:
            self._running.pop(name, None)


def _looked_up(host: str, port: int, flags: int = 0) -> Sequence[Address]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(int(family), address) for family, _, _, _, address in found]
