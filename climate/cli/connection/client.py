"""HTTP client of a cloud: login or a kept token, the service catalog, and errors as Failure."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import parse_qs, urlsplit

from climate.cli.connection import answer_warnings
from climate.cli.connection.clouds import CloudEntry
from climate.cli.connection.http_protocols import Answer, Connection, Sent
from climate.cli.connection.loopback import LoopbackConnection
from climate.cli.connection.token_cache import Kept, TokenCache
from climate.cli.dates import read
from climate.cli.errors import NOT_FOUND, UNREACHABLE, USAGE, Failure, refusal

if TYPE_CHECKING:
    from climate.cli.response_types.identity import Endpoint, TokenBody

Json = Any
"""JSON of an answer: the function that reads it assigns it to one of the types of `climate.cli.response_types`."""

MICROVERSION = {"OpenStack-API-Version": "compute 2.79", "X-OpenStack-Nova-API-Version": "2.79"}
PAGE = 500
"""Items of a requested page; the server may return fewer."""
RETRIES = 4
"""Retries of a safe request that was answered "busy, try again shortly"."""
BUNDLED = "climate-identity"
"""Name of the bundled identity service in its catalog."""
REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})


@dataclass(frozen=True, slots=True)
class Token:
    """A token with its catalog; `is_kept` if an earlier command received it."""

    id: str
    body: "TokenBody"
    is_kept: bool = False


@dataclass
class Client:
    """Client of one cloud for one command.  The cache has the tokens of earlier commands."""

    cloud: CloudEntry
    timeout: float = 60.0
    cache: TokenCache = field(default=TokenCache(None))
    warn: Callable[[str], None] = field(default=lambda text: None, repr=False)
    """Called once for each text of a warning in the answers, such as that a list leaves a lease out."""
    _http: Connection | None = field(default=None, repr=False)
    """Connection to use; by default one that fits the URL of the cloud."""
    _token: Token | None = field(default=None, init=False, repr=False)
    _warned: set[str] = field(default_factory=set, init=False, repr=False)
    _clock: tuple[datetime, float] | None = field(default=None, init=False, repr=False)
    """A time of the server's clock, and the monotonic time at which it was received."""

    @property
    def http(self) -> Connection:
        if self._http is None:
            self._http = self._connection()
        return self._http

    def _connection(self) -> Connection:
        if urlsplit(self.cloud.auth_url).hostname in ("127.0.0.1", "::1", "localhost"):
            return LoopbackConnection(self.timeout, self.cloud.verify)
        from climate.cli.connection.remote import RemoteConnection

        return RemoteConnection(self.timeout, self.cloud.verify)

    def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            self._http.close()

    @property
    def token(self) -> Token:
        """Return the token of this command: a kept one, or that of a login."""
        if self._token is None:
            kept = self.cache.find(self.cloud)
            self._token = Token(kept.id, kept.body, is_kept=True) if kept else self.login()
        return self._token

    def now(self) -> datetime:
        """Return the present time of the server's clock, so that a wrong local clock does not shift relative times."""
        if self._clock is None and self.token.is_kept:
            self._send("GET", self.identity)
        if self._clock is None:
            self.login()
        return self.clock or datetime.now(UTC)

    @property
    def clock(self) -> datetime | None:
        """Return the present time of the server's clock; None if it has answered nothing yet."""
        if self._clock is None:
            return None
        return self._clock[0] + timedelta(seconds=time.monotonic() - self._clock[1])

    @property
    def root(self) -> str:
        """Return the URL that is common to all APIs; where users are Keystone's, the catalog has it."""
        catalog = self.token.body.get("catalog") or ()
        if any(one.get("type") == "identity" and one.get("name") != BUNDLED for one in catalog):
            return self.url("reservation").removesuffix("/v1").removesuffix("/reservation")
        url = self.cloud.auth_url.removesuffix("/v3")
        return url.removesuffix("/identity")

    def url(self, service: str) -> str:
        """Return the URL of a service from the catalog."""
        for listed in self.token.body.get("catalog", ()):
            if listed.get("type") == service:
                return self._endpoint(service, listed.get("endpoints", ()))
        raise Failure(f"the cloud has no {service} service", NOT_FOUND, "choose another cloud with --os-cloud")

    def _endpoint(self, service: str, endpoints: "Iterable[Endpoint]") -> str:
        region = self.cloud.region
        for endpoint in endpoints:
            here = not region or region in (endpoint.get("region_id"), endpoint.get("region"))
            if here and endpoint.get("interface") == self.cloud.interface:
                return str(endpoint["url"]).rstrip("/")
        raise Failure(f"the {service} service has no {self.cloud.interface} URL {region}".rstrip(), NOT_FOUND)

    def call(self, service: str, method: str, path: str, **sent: Unpack[Sent]) -> Answer:
        """Send one request to a service and return the answer; a status of 400 and above is a Failure."""
        if service == "compute":
            sent["headers"] = {**MICROVERSION, **sent.get("headers", {})}
        return self.request(method, self.url(service) + path, **sent)

    def json(self, service: str, method: str, path: str, **sent: Unpack[Sent]) -> Json:
        """Return the JSON object in the answer of a request; {} if the answer is empty."""
        return self.body(self.call(service, method, path, **sent))

    def request(self, method: str, url: str, **sent: Unpack[Sent]) -> Answer:
        """Send one request with a token; a 401 is retried once with a new token, a busy server if that is harmless."""
        fresh = False
        headers = sent.pop("headers", {})
        repeatable = method in REPEATABLE or "Idempotency-Key" in headers
        for attempt in range(RETRIES + 2):
            sent["headers"] = {"X-Auth-Token": self.token.id, **headers}
            answer = self._send(method, url, **sent)
            if answer.status_code == 401 and not fresh:
                fresh, self._token = True, None
                self.cache.drop(self.cloud)
                continue
            pause = _pause(answer) if repeatable and attempt < RETRIES else None
            if pause is None:
                break
            time.sleep(pause)
        if answer.status_code >= 400:
            raise refusal(answer.status_code, _content(answer), answer.headers, f"{method} {urlsplit(url).path}")
        self._pass_on_warnings(answer)
        return answer

    def _pass_on_warnings(self, answer: Answer) -> None:
        for text in answer_warnings.texts(answer.headers.get("Warning", "")):
            if text not in self._warned:
                self._warned.add(text)
                self.warn(text)

    def body(self, answer: Answer) -> Json:
        """Return the JSON object of an answer."""
        content = _content(answer)
        if content in ("", None):
            return {}
        if not isinstance(content, dict):
            raise Failure(f"{answer.url} did not answer with a JSON object", hint="is this a climate server?")
        return content

    def pages(self, service: str, path: str, key: str, params: Mapping[str, str | int] | None = None) -> Iterator[Json]:
        """Yield every item of a list, page after page."""
        asked = {**(params or {}), "limit": PAGE}
        seen = ""
        while True:
            body = self.json(service, "GET", path, params=asked)
            items = body.get(key)
            if not isinstance(items, list):
                raise Failure(f"the answer of {path} has no list {key!r}", hint="is this a climate server?")
            yield from items
            last = _marker(body, key) or (str(items[-1].get("id", "")) if items else "")
            if not last or last == seen or not _more(body, key, len(items)):
                return
            asked["marker"] = seen = last

    @property
    def identity(self) -> str:
        """Return the URL of Identity v3."""
        base = self.cloud.auth_url
        return base if base.endswith("/v3") else f"{base}/v3"

    def login(self) -> Token:
        """Return a new token, also if there is a kept one; it becomes that of this command and of later ones."""
        url = f"{self.identity}/auth/tokens"
        auth: dict[str, object] = {"identity": self.cloud.methods}
        if self.cloud.scope is not None:
            auth["scope"] = self.cloud.scope
        answer = self._send("POST", url, json={"auth": auth})
        if answer.status_code >= 400:
            raise refusal(answer.status_code, _content(answer), answer.headers, f"login at {url}")
        body: TokenBody | None = self.body(answer).get("token")
        token = answer.headers.get("X-Subject-Token")
        if not token or not isinstance(body, dict):
            raise Failure(f"{url} is not an Identity service", USAGE, "correct auth_url in clouds.yaml")
        now = _server_time(body, answer)
        self._clock = (now, time.monotonic())
        self._token = Token(token, body)
        self.cache.keep(self.cloud, Kept(token, body), _lifetime(body, now))
        return self._token

    def _send(self, method: str, url: str, **sent: Unpack[Sent]) -> Answer:
        try:
            return self._read_clock(self.http.request(method, url, **sent))
        except TimeoutError:
            raise Failure(f"{url} does not answer", UNREACHABLE, "wait a little, then repeat") from None
        except ConnectionError as wrong:
            where = f"{url} cannot be reached: {wrong}"
            raise Failure(
                where, UNREACHABLE, "is it running, and is it ready? `climate up` starts it; `climate doctor` checks it"
            ) from None

    def _read_clock(self, answer: Answer) -> Answer:
        """Take the time of an answer, unless a login has read the clock, which is more exact."""
        if self._clock is None:
            with suppress(KeyError, ValueError):
                told = parsedate_to_datetime(answer.headers["Date"])
                self._clock = (told if told.tzinfo else told.replace(tzinfo=UTC), time.monotonic())
        return answer


def _lifetime(body: "TokenBody", now: datetime) -> float:
    """Return the seconds for which a new token is valid; 0 if its end is unknown."""
    try:
        return (read(str(body["expires_at"])) - now).total_seconds()
    except (KeyError, ValueError):
        return 0.0


def _server_time(body: "TokenBody", answer: Answer) -> datetime:
    try:
        return read(str(body["issued_at"])) if "issued_at" in body else parsedate_to_datetime(answer.headers["Date"])
    except (KeyError, ValueError):
        raise Failure(
            "the answer of the Identity service has no Date header", hint="is this a climate server?"
        ) from None


def _pause(answer: Answer) -> float | None:
    """Return the seconds until the next retry; None if a retry is useless."""
    if answer.status_code not in (409, 503) or not answer.headers.get("Retry-After", "").isdecimal():
        return None
    seconds = int(answer.headers["Retry-After"])
    return float(seconds) if seconds <= 5 else None


def _marker(body: Mapping[str, object], key: str) -> str:
    """Return the marker in the link to the next page, because a page may leave out its last items; "" without one."""
    links = body.get(f"{key}_links")
    for link in links if isinstance(links, list) else ():
        if isinstance(link, dict) and link.get("rel") == "next":
            return parse_qs(urlsplit(str(link.get("href", ""))).query).get("marker", [""])[0]
    return ""


def _more(body: Mapping[str, object], key: str, count: int) -> bool:
    """Return whether another page may follow: the server says so, or this page is full."""
    links = body.get(f"{key}_links")
    return bool(links) if links is not None else count >= PAGE


def _content(answer: Answer) -> object:
    try:
        return answer.json()
    except ValueError:
        return answer.text
