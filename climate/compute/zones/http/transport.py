"""HTTP transport: one exchange in the calling thread or many in parallel, each with its own deadline."""

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from threading import Lock, Thread
from typing import Protocol, TypeVar
from weakref import finalize

import httpcore
import httpx

from climate.compute.zones.http.blocking import BlockingPool
from climate.compute.zones.http.exchange import FAILED, MOST_KEPT, POOL, Body, answer_of, fail, request_to
from climate.compute.zones.http.messages import BrokenOff, HttpAnswer, HttpRequest, Origin

__all__ = ["MOST_KEPT", "Network", "Outcome", "SocketTransport", "Talk", "Transport"]

LOOKUPS = 32
"""Maximum number of parallel name lookups; a hanging name server blocks one thread."""

Talk = Generator[HttpRequest, HttpAnswer, object]
"""Generator that yields requests, receives their answers, and returns its outcome."""

Outcome = object
"""Return value of an exchange, or its exception: TimeoutError at its deadline."""

Exchange = Callable[[HttpRequest], Awaitable[HttpAnswer]]

T = TypeVar("T")


class Transport(Protocol):
    """Transport of exchanges."""

    def run(self, talks: Sequence[tuple[Talk, float]]) -> list[Outcome]:
        """Run all exchanges in parallel, each with its timeout in seconds; outcomes are in order.

        A failed request ends its exchange with Unreachable, BrokenOff, TooLong or ValueError.
        """
        ...


@cache
def authorities() -> ssl.SSLContext:
    """Return the certificate authorities, cached because loading them is slow."""
    return httpx.create_ssl_context()


class Network:
    """Connections of one process: those of its threads, and those of an event loop thread."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self.process = os.getpid()
        lookups = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="climate-names")
        self.blocking = BlockingPool(tls, lookups)
        self.pool = httpcore.AsyncConnectionPool(ssl_context=tls, **POOL)
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(lookups)
        Thread(target=self._loop.run_forever, daemon=True, name="climate-zones").start()

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Close the connections and end the thread, unless they belong to the parent process before a fork."""
        if self.process == os.getpid() and self._loop.is_running():
            self.blocking.close()
            asyncio.run_coroutine_threadsafe(self._end(), self._loop)

    async def _end(self) -> None:
        await self.pool.aclose()
        self._loop.stop()


@dataclass
class SocketTransport:
    """Transport over sockets, with connections shared by the threads of a process."""

    address: Callable[[Origin], tuple[str, int]] = lambda origin: (origin.host, origin.port)
    """Function that returns the host and port of a server."""
    tls: Callable[[], ssl.SSLContext] = authorities
    _networks: dict[int, Network] = field(default_factory=dict)
    """Connections by process id, because a forked process needs its own."""
    _lock: Lock = field(default_factory=Lock)

    def run(self, talks: Sequence[tuple[Talk, float]]) -> list[Outcome]:
        """Run all exchanges in parallel. A single one runs in the calling thread, which is much cheaper."""
        if len(talks) == 1:
            return [self.alone(*talks[0])]
        return self.network.run(self._together(talks))

    def alone(self, talk: Talk, seconds: float) -> Outcome:
        """Run one exchange in this thread."""
        pool = self.network.blocking
        pool.deadline.set(seconds)

        async def exchange(request: HttpRequest) -> HttpAnswer:
            return pool.exchange(request, self.address(request.origin))

        return _finished(_outcome(talk, exchange))

    @property
    def network(self) -> Network:
        """Return the connections of this process."""
        process = os.getpid()
        if process not in self._networks:
            with self._lock:
                if process not in self._networks:
                    self._networks[process] = network = Network(self.tls())
                    finalize(self, network.close)
        return self._networks[process]

    async def _together(self, talks: Sequence[tuple[Talk, float]]) -> list[Outcome]:
        return list(await asyncio.gather(*(self._timed(talk, seconds) for talk, seconds in talks)))

    async def _timed(self, talk: Talk, seconds: float) -> Outcome:
        try:
            # The pool's timeouts are per read, so a slow drip of bytes would never time out.
            async with asyncio.timeout(seconds):
                return await _outcome(talk, self._exchange)
        except TimeoutError as error:
            return error

    async def _exchange(self, request: HttpRequest) -> HttpAnswer:
        body = Body()
        try:
            response = await self.network.pool.handle_async_request(request_to(self.address(request.origin), request))
            try:
                async for piece in response.aiter_stream():
                    body.add(piece)
            finally:
                await response.aclose()
        except FAILED as error:
            fail(error)
        return answer_of(response, body)


async def _outcome(talk: Talk, exchange: Exchange) -> Outcome:
    """Run an exchange to its end."""
    try:
        request = next(talk)
        while True:
            request = talk.send(await _answer(request, exchange))
    except StopIteration as end:
        return end.value
    except Exception as error:  # noqa: BLE001 - the caller gets it as the outcome
        return error
    finally:
        talk.close()


async def _answer(request: HttpRequest, exchange: Exchange) -> HttpAnswer:
    """Send a request; repeat an idempotent one if a kept connection was closed meanwhile."""
    if request.is_safe:
        try:
            return await exchange(request)
        except BrokenOff:
            pass
    return await exchange(request)


def _finished(work: Coroutine[object, object, T]) -> T:
    """Return the result of a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a blocking exchange must not wait for an event loop")
