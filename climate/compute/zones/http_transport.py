"""HTTP talks with many servers at once, in the thread of the caller: each ends at its deadline and delays no other."""

import math
import select
import ssl
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from climate.compute.zones.http_connection import HttpAnswer, HttpRequest, Origin, Wait, authorities, connect
from climate.compute.zones.http_pool import Pool
from climate.compute.zones.resolver import Resolver

Talk = Generator[HttpRequest, HttpAnswer, Any]
"""Yields requests, is sent their answers, and returns its outcome."""

Outcome = Any
"""The value that a talk returned, or the exception that ended it: TimeoutError at its deadline."""


class Transport(Protocol):
    """Carries the requests of talks."""

    def hold(self, talks: Sequence[tuple[Talk, float]]) -> list[Outcome]:
        """Hold all talks at once, each for so many seconds at most; the outcomes are in their order.

        A request ends its talk with Unreachable, BrokenOff, TooLong or OSError.
        """
        ...


@dataclass
class SocketTransport:
    """The network.  Connections are kept, and shared by the threads of one process."""

    address: Callable[[Origin], tuple[str, int]] = lambda origin: (origin.host, origin.port)
    """The host and the port at which a server is called."""
    tls: Callable[[], ssl.SSLContext] = authorities
    pool: Pool = field(default_factory=Pool)
    resolver: Resolver = field(default_factory=Resolver)

    def hold(self, talks: Sequence[tuple[Talk, float]]) -> list[Outcome]:
        """Hold all talks at once; no thread waits for one of them alone."""
        now = time.monotonic()
        return _Loop([_Task(self._steps(talk), now + seconds) for talk, seconds in talks]).run()

    def _steps(self, talk: Talk) -> Generator[Wait, bool, Outcome]:
        try:
            request = next(talk)
            while True:
                answer = yield from self._exchange(request)
                request = talk.send(answer)
        except StopIteration as end:
            return end.value
        finally:
            talk.close()

    def _exchange(self, request: HttpRequest) -> Generator[Wait, bool, HttpAnswer]:
        """Send a request over a connection that is open already, or else over a new one."""
        while True:
            connection = self.pool.take(request.origin, is_safe=request.is_safe)
            if connection is None:
                addresses = self.resolver.addresses(*self.address(request.origin))
                connection = yield from connect(request.origin, addresses, self.tls)
            with self.pool.lent(connection):
                answer = yield from connection.exchange(request)
            if answer is not None:
                return answer


@dataclass
class _Task:
    """A talk that goes on when a socket is ready."""

    steps: Generator[Wait, bool, Outcome]
    deadline: float
    wait: Wait | None = None
    patience: float = math.inf
    """The time at which it goes on although the socket is not ready."""
    outcome: Outcome = None

    @property
    def until(self) -> float:
        return min(self.deadline, self.patience)

    def go_on(self, *, ready: bool) -> None:
        """Run until the next wait; without one, the talk is over."""
        try:
            self.wait = self.steps.send(ready) if self.wait else next(self.steps)
        except StopIteration as end:
            self.wait, self.outcome = None, end.value
        except Exception as error:  # noqa: BLE001 - the caller gets it as the outcome
            self.wait, self.outcome = None, error
        else:
            seconds = self.wait.seconds
            self.patience = math.inf if seconds is None else time.monotonic() + seconds

    def give_up(self) -> None:
        """End the talk at its deadline."""
        self.steps.close()
        self.wait, self.outcome = None, TimeoutError()


class _Loop:
    """Runs tasks until each has its outcome."""

    def __init__(self, tasks: Sequence[_Task]) -> None:
        self._tasks = tasks
        self._waiting: dict[int, _Task] = {}
        self._poll = select.poll()

    def run(self) -> list[Outcome]:
        """The outcomes in the order of the tasks."""
        try:
            for task in self._tasks:
                self._step(task, ready=True)
            while self._waiting:
                self._await()
        finally:
            for task in self._waiting.values():
                task.steps.close()
        return [task.outcome for task in self._tasks]

    def _await(self) -> None:
        until = min(task.until for task in self._waiting.values())
        for number, _ in self._poll.poll(max(0, math.ceil(1000 * (until - time.monotonic())))):
            self._resume(number, ready=True)
        now = time.monotonic()
        for number in [number for number, task in self._waiting.items() if task.until <= now]:
            self._resume(number, ready=False)

    def _resume(self, number: int, *, ready: bool) -> None:
        task = self._waiting.pop(number)
        self._poll.unregister(number)
        if task.deadline <= time.monotonic():
            task.give_up()
        else:
            self._step(task, ready=ready)

    def _step(self, task: _Task, *, ready: bool) -> None:
        task.go_on(ready=ready)
        if task.wait is not None:
            self._waiting[task.wait.number] = task
            self._poll.register(task.wait.number, task.wait.events)
