"""HTTP talks with many servers at once: each ends at its deadline and delays no other."""

import asyncio
import os
import ssl
from collections.abc import Callable, Coroutine, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from threading import Lock, Thread
from typing import Any, Protocol, TypeVar
from weakref import finalize

import httpcore
import httpx

from climate import causes
from climate.compute.zones.http_messages import (
    MOST_BYTES,
    BrokenOff,
    HttpAnswer,
    HttpRequest,
    Origin,
    TooLong,
    Unreachable,
)

MOST_KEPT = 64
"""Connections that are kept at most, over all servers."""

KEPT_SECONDS = 15.0
"""Seconds for which a connection is kept without use."""

LOOKUPS = 32
"""Names that are looked up at once; a name server that hangs keeps one thread of these."""

UNREACHABLE = (httpcore.ConnectError, httpcore.ConnectTimeout)
BROKEN = (httpcore.ProtocolError, httpcore.NetworkError)

Talk = Generator[HttpRequest, HttpAnswer, Any]
"""Yields requests, is sent their answers, and returns its outcome."""

Outcome = Any
"""The value that a talk returned, or the exception that ended it: TimeoutError at its deadline."""

T = TypeVar("T")


class Transport(Protocol):
    """Carries the requests of talks."""

    def hold(self, talks: Sequence[tuple[Talk, float]]) -> list[Outcome]:
        """Hold all talks at once, each for so many seconds at most; the outcomes are in their order.

        A request ends its talk with Unreachable, BrokenOff, TooLong or ValueError.
        """
        ...


@cache
def authorities() -> ssl.SSLContext:
    """Return the certificate authorities, read once: reading them takes longer than a talk."""
    return httpx.create_ssl_context()


class Network:
    """An event loop in a thread of its own, and the connections that it keeps."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self.process = os.getpid()
        self.pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=None,
            max_keepalive_connections=MOST_KEPT,
            keepalive_expiry=KEPT_SECONDS,
        )
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(LOOKUPS, thread_name_prefix="climate-names"))
        Thread(target=self._loop.run_forever, daemon=True, name="climate-zones").start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Close the connections and end the thread, unless they are those of the process that forked this one."""
        if self.process == os.getpid() and self._loop.is_running():
            asyncio.run_coroutine_threadsafe(self._end(), self._loop)

    async def _end(self) -> None:
        await self.pool.aclose()
        self._loop.stop()


@dataclass
class SocketTransport:
    """The network.  Connections are kept, and shared by the threads of one process."""

    address: Callable[[Origin], tuple[str, int]] = lambda origin: (origin.host, origin.port)
    """The host and the port at which a server is called."""
    tls: Callable[[], ssl.SSLContext] = authorities
    _networks: dict[int, Network] = field(default_factory=dict)
    """By process: one that was forked off has connections of its own."""
    _lock: Lock = field(default_factory=Lock)

    def hold(self, talks: Sequence[tuple[Talk, float]]) -> list[Outcome]:
        """Hold all talks at once."""
        return self.network.run(self._together(talks))

    @property
    def network(self) -> Network:
        """The connections of this process."""
        process = os.getpid()
        if process not in self._networks:
            with self._lock:
                if process not in self._networks:
                    self._networks[process] = network = Network(self.tls())
                    finalize(self, network.close)
        return self._networks[process]

    async def _together(self, talks: Sequence[tuple[Talk, float]]) -> list[Outcome]:
        return list(await asyncio.gather(*(self._outcome(talk, seconds) for talk, seconds in talks)))

    async def _outcome(self, talk: Talk, seconds: float) -> Outcome:
        try:
            # The time-outs of the pool are for each read: an answer that drips would never be late.
            async with asyncio.timeout(seconds):
                return await self._carried(talk)
        except Exception as error:  # noqa: BLE001 - the caller gets it as the outcome
            return error
        finally:
            talk.close()

    async def _carried(self, talk: Talk) -> Outcome:
        try:
            request = next(talk)
            while True:
                request = talk.send(await self._answer(request))
        except StopIteration as end:
            return end.value

    async def _answer(self, request: HttpRequest) -> HttpAnswer:
        """Send a request; a safe one once more when a kept connection may have ended meanwhile."""
        if request.is_safe:
            try:
                return await self._exchange(request)
            except BrokenOff:
                pass
        return await self._exchange(request)

    async def _exchange(self, request: HttpRequest) -> HttpAnswer:
        origin = request.origin
        name, port = self.address(origin)
        host = name if name.isascii() else name.encode("idna")
        headers = [("Host", origin.authority), *request.headers]
        if request.content:
            headers.append(("Content-Length", str(len(request.content))))
        try:
            async with self.network.pool.stream(
                request.method,
                httpcore.URL(scheme=origin.scheme, host=host, port=port, target=request.target),
                headers=headers,
                content=request.content,
                extensions={"sni_hostname": origin.host},
            ) as answer:
                content = await _read(answer)
        except UNREACHABLE as error:
            raise Unreachable from _reason(error)
        except BROKEN as error:
            raise BrokenOff from error
        known = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers}
        return HttpAnswer(answer.status, known, content)


async def _read(answer: httpcore.Response) -> bytes:
    read = bytearray()
    async for piece in answer.aiter_stream():
        read += piece
        if len(read) > MOST_BYTES:
            raise TooLong
    return bytes(read)


def _reason(error: Exception) -> BaseException:
    """Return the error of the system that an error comes of, or else the error."""
    found = [cause for cause in causes.of(error) if isinstance(cause, OSError) and (cause.strerror or cause.errno)]
    return found[-1] if found else error
