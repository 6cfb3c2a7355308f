"""A short talk with a controller over HTTP, which is not trusted: it ends in time, and reads little.

What a controller answers is never repeated in an error: it may say anything,
what it was sent included.
"""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx

from climate import exception_chain
from climate.power import PowerError, PowerRefused

MOST_BYTES = 1 << 20
"""Longest answer that is read."""

NEVER = {
    401: "does not accept the user name or the password",
    403: "does not let this user do it",
    404: "knows no such system",
    405: "knows no such request",
    410: "knows no such system any more",
}
"""Answers that will be the same next time.  400 is none: some give it while a machine is on its way."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Controller:
    """Whom to talk to, on behalf of which host, and for how many seconds in all."""

    host: str
    address: str
    user: tuple[str, str] = field(repr=False)
    verify: bool | str
    seconds: float

    def __str__(self) -> str:
        return f"the controller of {self.host}"


@dataclass(frozen=True, slots=True)
class Talk:
    """A connection to a controller, for one call of a driver."""

    controller: Controller
    client: httpx.AsyncClient

    async def get(self, path: str) -> Mapping[str, Any]:
        """The resource of that path."""
        body = await self._send("GET", path, None)
        try:
            said = json.loads(body)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise PowerError(f"{self.controller} answers with something that is not a JSON object")
        return said

    async def post(self, path: str, body: Mapping[str, str]) -> None:
        """Ask for an action.  What is said to it does not matter, once it is taken."""
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
            raise PowerError(f"{self.controller} could not do it (HTTP {status})")


def talk(controller: Controller, about: Callable[[Talk], Awaitable[T]]) -> T:
    """What `about` comes to; PowerError when the talk is not over in time or breaks off."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_in_time(controller, about))
    except TimeoutError:
        raise PowerError(f"{controller} did not answer within {controller.seconds:g} s") from None
    except (httpx.HTTPError, OSError) as error:
        raise _reason(controller, error) from None
    finally:
        # Unlike asyncio.run, this does not wait for a name that is still being looked up.
        loop.close()


async def _in_time(controller: Controller, about: Callable[[Talk], Awaitable[T]]) -> T:
    # The time-outs of the client are for each read: who drips would never be late.
    async with (
        asyncio.timeout(controller.seconds),
        httpx.AsyncClient(
            verify=_trust(controller),
            trust_env=False,
            timeout=controller.seconds,
            headers={"Accept-Encoding": "identity"},
        ) as client,
    ):
        return await about(Talk(controller, client))


def _trust(controller: Controller) -> ssl.SSLContext | bool:
    """What to check certificates by; PowerRefused when the file of authorities cannot be used."""
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
    """What went wrong, in words that are ours or the system's."""
    for cause in exception_chain.of(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return PowerRefused(f"the certificate of {controller} is not accepted: {cause.verify_message}")
        if isinstance(cause, ssl.SSLError):
            return PowerError(f"{controller} cannot be talked to by TLS: {cause.reason}")
    if isinstance(error, httpx.RemoteProtocolError):
        return PowerError(f"{controller} breaks off, or does not speak HTTP")
    system = next(
        (cause.strerror for cause in exception_chain.of(error) if isinstance(cause, OSError) and cause.strerror), ""
    )
    return PowerError(f"{controller} cannot be reached{': ' if system else ''}{system}")
