"""Talks to child zones over HTTP: signs in, keeps tokens, and ends every talk at its deadline.

A child is not trusted.  Its answers are bounded, its redirects and its service
catalog are not followed, and nothing that it wrote is repeated in an error.
"""

import asyncio
import json
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any

import httpx

from climate import causes, strict_json
from climate.compute.zones import urls
from climate.compute.zones.client import (
    CHAIN_HEADER,
    SECONDS_HEADER,
    ChildAnswer,
    ChildError,
    ChildLoop,
    ChildRefused,
    ChildRequest,
    ChildTimeout,
    ChildUnreachable,
)
from climate.compute.zones.models import ChildZone
from climate.compute.zones.tokens import Tokens
from climate.strict_json import BadJson

MOST_BYTES = 16 * 1024 * 1024
"""Longest answer that is read."""

LOOP = 508
"""Status of a zone that finds itself in the chain of a request."""

NO_WAITING = httpx.Limits(max_connections=None, max_keepalive_connections=0)

MICROVERSION = {"OpenStack-API-Version": "compute 2.79"}

Transport = Callable[[], httpx.AsyncBaseTransport]


@dataclass(frozen=True, slots=True)
class HttpChildClient:
    """The client over HTTP.  `own_id` gives the random id of this zone, `seconds` is the default deadline."""

    own_id: Callable[[], str]
    seconds: float
    transport: Transport | None = None
    """None: the network.  Tests hand in one that leads to applications of their own process."""
    tokens: Tokens = field(default_factory=Tokens)

    def ask(self, zone: ChildZone, request: ChildRequest, seconds: float | None = None) -> ChildAnswer:
        """Send one request; ChildError when it is not answered in time or not usable."""
        (outcome,) = self.ask_all([(zone, request)], seconds)
        if isinstance(outcome, ChildError):
            raise outcome
        return outcome

    def ask_all(
        self, requests: Sequence[tuple[ChildZone, ChildRequest]], seconds: float | None = None
    ) -> list[ChildAnswer | ChildError]:
        """Send all at once; one that hangs is abandoned at its deadline and delays no other."""
        if not requests:
            return []
        own_id = self.own_id()
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(self._together(requests, own_id, seconds or self.seconds))
        finally:
            # Unlike asyncio.run, this does not wait for a name that is still being looked up.
            loop.close()

    async def _together(
        self, requests: Sequence[tuple[ChildZone, ChildRequest]], own_id: str, seconds: float
    ) -> list[ChildAnswer | ChildError]:
        async with httpx.AsyncClient(
            transport=self.transport() if self.transport else None,
            trust_env=False,
            verify=_authorities(),
            timeout=seconds,
            limits=NO_WAITING,
            follow_redirects=False,
        ) as client:
            talks = [Talk(client, zone, request, self.tokens, own_id) for zone, request in requests]
            return list(await asyncio.gather(*(talk.outcome(seconds) for talk in talks)))


@dataclass(frozen=True, slots=True)
class Talk:
    """One request to one child, with the sign-in that it may need."""

    client: httpx.AsyncClient
    zone: ChildZone
    request: ChildRequest
    tokens: Tokens
    own_id: str

    async def outcome(self, seconds: float) -> ChildAnswer | ChildError:
        """The answer, or the error that explains why there is none after at most `seconds`."""
        limit = self.request.chain.limit(seconds)
        try:
            # The time-outs of the client are for each read: an answer that drips would never be late.
            async with asyncio.timeout(limit):
                return await self._signed_in(limit)
        except TimeoutError:
            return ChildTimeout(f"{self._label} did not answer within {limit:g} s")
        except ChildError as error:
            return error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            return _reason(self._label, error)

    @property
    def _label(self) -> str:
        return f"zone {self.zone.id} ({self.zone.api_url})"

    async def _signed_in(self, limit: float) -> ChildAnswer:
        for known in (self.tokens.get(self._account), None):
            token = known or await self._sign_in()
            answer = await self._send(token, limit)
            if answer.status != 401:
                return answer
            self.tokens.forget(self._account, token)
        raise ChildRefused(f"{self._label} refuses the token that it has just issued")

    @property
    def _account(self) -> str:
        """A key for tokens that changes with the password and does not hold it."""
        words = (self.zone.api_url, self.zone.username, self.zone.password)
        return sha256(json.dumps(words).encode()).hexdigest()

    async def _sign_in(self) -> str:
        proof = {"name": self.zone.username, "password": self.zone.password, "domain": {"name": "Default"}}
        body = {"auth": {"identity": {"methods": ["password"], "password": {"user": proof}}}}
        url = f"{urls.root(self.zone.api_url, 'identity')}/auth/tokens"
        answer, content = await self._exchange("POST", url, json=body)
        if answer.status_code in (401, 403, 429):
            raise ChildRefused(f"{self._label} does not accept the user name and the password")
        token = str(answer.headers.get("X-Subject-Token", ""))
        if answer.status_code != 201 or not token or not token.isascii() or not token.isprintable():
            raise ChildError(f"{self._label} has no identity service at {url} (HTTP {answer.status_code})")
        self.tokens.keep(self._account, token, _expiry(_parsed(content)))
        return token

    async def _send(self, token: str, limit: float) -> ChildAnswer:
        request = self.request
        headers = {
            "Accept": "application/json",
            **MICROVERSION,
            **(request.headers or {}),
            "X-Auth-Token": token,
            CHAIN_HEADER: request.chain.grown(self.own_id).header(),
            SECONDS_HEADER: f"{limit:.3f}",
        }
        url = f"{urls.root(self.zone.api_url, request.service)}{request.path}"
        answer, content = await self._exchange(
            request.method, url, params=request.query, json=request.body, headers=headers
        )
        return self._checked(answer, content)

    async def _exchange(self, method: str, url: str, **sent: Any) -> tuple[httpx.Response, bytes]:
        headers = {"Accept-Encoding": "identity", **sent.pop("headers", {})}
        async with self.client.stream(method, url, headers=headers, **sent) as answer:
            read = bytearray()
            async for piece in answer.aiter_raw():
                read += piece
                if len(read) > MOST_BYTES:
                    raise ChildError(f"{self._label} answers with more than {MOST_BYTES} bytes")
        if 300 <= answer.status_code < 400:
            raise ChildError(f"{self._label} redirects elsewhere (HTTP {answer.status_code}), which is not followed")
        return answer, bytes(read)

    def _checked(self, answer: httpx.Response, content: bytes) -> ChildAnswer:
        if answer.status_code == LOOP:
            raise ChildLoop(f"{self._label} leads back to a zone that the request came through")
        body = _parsed(content)
        if body is NONSENSE and not 400 <= answer.status_code < 500:
            raise ChildError(f"{self._label} answers with something that is not JSON (HTTP {answer.status_code})")
        known = {name.lower(): value for name, value in answer.headers.items()}
        return ChildAnswer(answer.status_code, None if body is NONSENSE else body, known)


NONSENSE = object()


def _parsed(content: bytes) -> Any:
    if not content:
        return None
    try:
        return strict_json.parse(content)
    except BadJson:
        return NONSENSE


def _expiry(body: Any) -> object:
    token = body.get("token") if isinstance(body, dict) else None
    return token.get("expires_at") if isinstance(token, dict) else None


@cache
def _authorities() -> ssl.SSLContext:
    """Read once, because reading them takes longer than a talk."""
    return httpx.create_ssl_context()


def _reason(label: str, error: Exception) -> ChildError:
    """Explain a failed talk in words of this program or of the system."""
    if isinstance(error, httpx.TimeoutException):
        return ChildTimeout(f"{label} did not answer in time")
    if isinstance(error, httpx.RemoteProtocolError):
        return ChildError(f"{label} breaks off, or does not speak HTTP")
    kind = ChildUnreachable if isinstance(error, httpx.ConnectError) else ChildError
    for cause in causes.of(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return kind(f"the certificate of {label} is not accepted: {cause.verify_message}")
        if isinstance(cause, OSError) and cause.strerror:
            return kind(f"{label} cannot be reached: {cause.strerror}")
    return kind(f"{label} cannot be reached")
