"""Client of child zones over HTTP: signs in, caches tokens, and enforces deadlines.

Children are not trusted. Their answers are limited in size, redirects and their service catalog are not followed, and
their text is never part of an error.
"""

import json
import ssl
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Literal
from urllib.parse import quote, urlencode, urlsplit

from climate import exception_chain, strict_json
from climate.compute.zones.client_interface import (
    CHAIN_HEADER,
    SECONDS_HEADER,
    ChildAnswer,
    ChildError,
    ChildLoop,
    ChildRefused,
    ChildRequest,
    ChildTimeout,
    ChildUnreachable,
    Service,
)
from climate.compute.zones.http import urls
from climate.compute.zones.http.messages import (
    MOST_BYTES,
    PORTS,
    BrokenOff,
    HttpAnswer,
    HttpRequest,
    Origin,
    TooLong,
    Unreachable,
)
from climate.compute.zones.http.tokens import Tokens
from climate.compute.zones.http.transport import SocketTransport, Transport
from climate.compute.zones.models import ChildZone
from climate.strict_json import BadJson

LOOP = 508
"""Status of a zone that finds itself in the chain of a request."""

MICROVERSION = {"OpenStack-API-Version": "compute 2.79"}

JSON = {"Content-Type": "application/json"}

QUOTED = "/%:@!$&'()*+,;=~"
"""Characters of a path that are not quoted, beside letters and digits."""

Exchange = Generator[HttpRequest, HttpAnswer, HttpAnswer]


@dataclass(frozen=True, slots=True)
class HttpChildClient:
    """Client over HTTP. `own_id` returns the random id of this zone, `seconds` is the default deadline."""

    own_id: Callable[[], str]
    seconds: float
    transport: Transport = field(default_factory=SocketTransport)
    tokens: Tokens = field(default_factory=Tokens)

    def send(self, zone: ChildZone, request: ChildRequest, seconds: float | None = None) -> ChildAnswer:
        """Send one request. Raise ChildError if it is not answered in time or the answer is not usable."""
        (outcome,) = self.send_all([(zone, request)], seconds)
        if isinstance(outcome, ChildError):
            raise outcome
        return outcome

    def send_all(
        self, requests: Sequence[tuple[ChildZone, ChildRequest]], seconds: float | None = None
    ) -> list[ChildAnswer | ChildError]:
        """Send all in parallel; a hanging one is abandoned at its deadline and delays no other."""
        if not requests:
            return []
        own_id = self.own_id()
        limits = [request.chain.limit(seconds or self.seconds) for _, request in requests]
        talks = [
            AuthenticatedRequest(*pair, self.tokens, own_id, limit)
            for pair, limit in zip(requests, limits, strict=True)
        ]
        outcomes = self.transport.run([(talk.steps(), talk.limit) for talk in talks])
        return [talk.understood(outcome) for talk, outcome in zip(talks, outcomes, strict=True)]


@dataclass(frozen=True, slots=True)
class AuthenticatedRequest:
    """One request to one child, with sign-in if needed."""

    zone: ChildZone
    request: ChildRequest
    tokens: Tokens
    own_id: str
    limit: float
    """Deadline of the whole exchange in seconds."""

    def steps(self) -> Generator[HttpRequest, HttpAnswer, ChildAnswer]:
        """Yield HTTP requests, and return the answer of the child."""
        for known in (self.tokens.get(self._account), None):
            token = known or (yield from self._sign_in())
            answer = self._checked((yield from self._exchange(self._sent(token))))
            if answer.status != 401:
                return answer
            self.tokens.forget(self._account, token)
        raise ChildRefused(f"{self._label} refuses the token that it has just issued")

    def understood(self, outcome: object) -> ChildAnswer | ChildError:
        """Return the answer, or the error that explains its absence."""
        if isinstance(outcome, (ChildAnswer, ChildError)):
            return outcome
        if isinstance(outcome, TimeoutError):
            return ChildTimeout(f"{self._label} did not answer within {self.limit:g} s")
        if isinstance(outcome, TooLong):
            return ChildError(f"{self._label} answers with more than {MOST_BYTES} bytes")
        if isinstance(outcome, BrokenOff):
            return ChildError(f"{self._label} closed the connection early, or does not speak HTTP")
        if isinstance(outcome, (Unreachable, OSError, ValueError)):
            return _reason(self._label, outcome)
        assert isinstance(outcome, BaseException)
        raise outcome

    @property
    def _label(self) -> str:
        return f"zone {self.zone.id} ({self.zone.api_url})"

    @property
    def _account(self) -> str:
        """Return a cache key for tokens that depends on the password without containing it."""
        words = (self.zone.api_url, self.zone.username, self.zone.password)
        return sha256(json.dumps(words).encode()).hexdigest()

    def _sign_in(self) -> Generator[HttpRequest, HttpAnswer, str]:
        proof = {"name": self.zone.username, "password": self.zone.password, "domain": {"name": "Default"}}
        body = {"auth": {"identity": {"methods": ["password"], "password": {"user": proof}}}}
        origin, root = _place(self.zone.api_url, "identity")
        headers = {"Accept-Encoding": "identity", **JSON}
        answer = yield from self._exchange(
            HttpRequest(origin, "POST", f"{root}/auth/tokens", tuple(headers.items()), _written(body))
        )
        if answer.status in (401, 403, 429):
            raise ChildRefused(f"{self._label} does not accept the user name and the password")
        token = answer.headers.get("x-subject-token", "")
        if answer.status != 201 or not token or not token.isascii() or not token.isprintable():
            url = f"{urls.root(self.zone.api_url, 'identity')}/auth/tokens"
            raise ChildError(f"{self._label} has no identity service at {url} (HTTP {answer.status})")
        self.tokens.keep(self._account, token, _expiry(_parsed(answer.content)))
        return token

    def _sent(self, token: str) -> HttpRequest:
        request = self.request
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            **MICROVERSION,
            **(request.headers or {}),
            "X-Auth-Token": token,
            CHAIN_HEADER: request.chain.grown(self.own_id).header(),
            SECONDS_HEADER: f"{self.limit:.3f}",
            **({} if request.body is None else JSON),
        }
        origin, root = _place(self.zone.api_url, request.service)
        query = f"?{urlencode(request.query)}" if request.query else ""
        target = f"{root}{quote(request.path, safe=QUOTED)}{query}"
        content = b"" if request.body is None else _written(request.body)
        return HttpRequest(origin, request.method, target, tuple(headers.items()), content)

    def _exchange(self, request: HttpRequest) -> Exchange:
        answer = yield request
        if 300 <= answer.status < 400:
            raise ChildError(f"{self._label} redirects elsewhere (HTTP {answer.status}), which is not followed")
        return answer

    def _checked(self, answer: HttpAnswer) -> ChildAnswer:
        if answer.status == LOOP:
            raise ChildLoop(f"{self._label} leads back to a zone that the request came through")
        body = _parsed(answer.content)
        if body is NONSENSE and not 400 <= answer.status < 500:
            raise ChildError(f"{self._label} answers with something that is not JSON (HTTP {answer.status})")
        return ChildAnswer(answer.status, None if body is NONSENSE else body, answer.headers)


@lru_cache(maxsize=1024)
def _place(api_url: str, service: Service | Literal["identity"]) -> tuple[Origin, str]:
    """Return the server of a child's service, and its path there. Raise ValueError for an invalid URL."""
    read = urlsplit(urls.root(api_url, service))
    if read.scheme not in PORTS or not read.hostname:
        raise ValueError("no URL of a server")
    return Origin(read.scheme, read.hostname, read.port or PORTS[read.scheme]), quote(read.path, safe=QUOTED)


def _written(body: object) -> bytes:
    return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()


NONSENSE = object()


def _parsed(content: bytes) -> object:
    if not content:
        return None
    try:
        return strict_json.parse(content)
    except BadJson:
        return NONSENSE


def _expiry(body: object) -> object:
    token = body.get("token") if isinstance(body, dict) else None
    return token.get("expires_at") if isinstance(token, dict) else None


def _reason(label: str, error: Exception) -> ChildError:
    """Return the error of a failed exchange, with the operating system's reason."""
    kind = ChildUnreachable if isinstance(error, Unreachable) else ChildError
    for cause in exception_chain.of(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return kind(f"the certificate of {label} is not accepted: {cause.verify_message}")
        if isinstance(cause, OSError) and cause.strerror:
            return kind(f"{label} cannot be reached: {cause.strerror}")
    return kind(f"{label} cannot be reached")
