"""HTTP sessions with an untrusted controller, with a total time-out and a size limit.

Errors never repeat the answer of a controller: it may contain anything, including what was sent.
"""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import httpx

from climate import exception_chain
from climate.power import PowerError, PowerRefused

MOST_BYTES = 1 << 20
"""Maximum size of an answer in bytes."""

NEVER = {
    401: "does not accept the user name or the password",
    403: "does not let this user do it",
    404: "knows no such system",
    405: "knows no such request",
    410: "knows no such system any more",
}
"""Statuses that a retry does not change. 400 is not among them: some controllers send it during a power change."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Controller:
    """Address of a controller, its host, and the total time-out in seconds."""

    host: str
    address: str
    user: tuple[str, str] = field(repr=False)
    verify: bool | str
    seconds: float

    def __str__(self) -> str:
        return f"the controller of {self.host}"


@dataclass(frozen=True, slots=True)
class Session:
    """A connection to a controller, for one call of a driver."""

    controller: Controller
    client: httpx.AsyncClient

    async def get(self, path: str) -> Mapping[str, object]:
        """Return the resource of that path."""
        body = await self._send("GET", path, None)
        try:
            said = json.loads(body)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise PowerError(f"{self.controller} answers with something that is not a JSON object")
        return said

    async def post(self, path: str, body: Mapping[str, str]) -> None:
        """Request an action. The body of a successful answer is ignored."""
        await self._send("POST", path, body)

    async def _send(self, method: str, path: str, body: Mapping[str, str] | None) -> bytes:
        url = f"{self.controller.address}{path}"
        async with self.client.stream(method, url, json=body, auth=self.controller.user) as answer:
            self._check(answer.status_code)
            read = bytearray()
            async for piece in answer.aiter_raw():
                read += piece
                if len(read) > MOST_BYTES:
                    raise PowerError(f"{self.controller} answers with more than {MOST_BYTES} bytes")
        return bytes(read)

    def _check(self, status: int) -> None:
        if status in NEVER:
            raise PowerRefused(f"{self.controller} {NEVER[status]} (HTTP {status})")
        if 300 <= status < 400:
            raise PowerRefused(f"{self.controller} knows this system by another address or path (HTTP {status})")
        if status >= 400:
            raise PowerError(f"{self.controller} could not carry out the request (HTTP {status})")


def run_session(controller: Controller, about: Callable[[Session], Awaitable[T]]) -> T:
    """Return the result of `about`. Raise PowerError on a time-out or a broken connection."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_in_time(controller, about))
    except TimeoutError:
        raise PowerError(f"{controller} did not answer within {controller.seconds:g} s") from None
    except (httpx.HTTPError, OSError) as error:
        raise _reason(controller, error) from None
    finally:
        # Unlike asyncio.run, this does not wait for a pending name resolution.
        loop.close()


async def _in_time(controller: Controller, about: Callable[[Session], Awaitable[T]]) -> T:
    # The client's time-outs apply to each read, so a slow sender would never exceed them.
    async with (
        asyncio.timeout(controller.seconds),
        httpx.AsyncClient(
            verify=_trust(controller),
            trust_env=False,
            timeout=controller.seconds,
            headers={"Accept-Encoding": "identity"},
        ) as client,
    ):
        return await about(Session(controller, client))


def _trust(controller: Controller) -> ssl.SSLContext | bool:
    """Return the TLS context. Raise PowerRefused when the file of certificate authorities is unusable."""
    if isinstance(controller.verify, bool):
        return controller.verify
    try:
        if not Path(controller.verify).is_file():
            raise FileNotFoundError
        return ssl.create_default_context(cafile=controller.verify)
    except OSError:
        raise PowerRefused(
            f"the certificates to check {controller} by cannot be read: {controller.verify} must be a file in PEM"
        ) from None


def _reason(controller: Controller, error: BaseException) -> PowerError:
    """Return the cause of a failure, in the words of this module or of the system."""
    for cause in exception_chain.of(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return PowerRefused(f"the certificate of {controller} is not accepted: {cause.verify_message}")
        if isinstance(cause, ssl.SSLError):
            return PowerError(f"{controller} failed in TLS: {cause.reason}")
    if isinstance(error, httpx.RemoteProtocolError):
        return PowerError(f"{controller} closed the connection, or does not speak HTTP")
    system = next(
        (cause.strerror for cause in exception_chain.of(error) if isinstance(cause, OSError) and cause.strerror), ""
    )
    return PowerError(f"{controller} cannot be reached{': ' if system else ''}{system}")
