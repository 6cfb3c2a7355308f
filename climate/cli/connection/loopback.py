"""Requests to this machine by the standard library, because most commands send two and httpx takes long to load."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Unpack
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from climate.cli.connection.http_protocols import Answer, Connection, Sent

CONNECT_SECONDS = 5.0
UNQUOTED = "%/:?#[]@!$&'()*+,;=~"
"""Characters of a path or query that stay as they are, besides letters and digits."""
MULTIPLE = (list, tuple)


class Headers(Mapping[str, str]):
    """Headers of an answer, by names of any case."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._known = {name.lower(): value for name, value in pairs}

    def __getitem__(self, name: str) -> str:
        return self._known[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


@dataclass(frozen=True, slots=True)
class LocalAnswer:
    """An answer, with the attributes of one of httpx."""

    url: str
    status_code: int
    reason_phrase: str
    headers: Headers
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    def json(self) -> object:
        content: object = json.loads(self.content)
        return content


@dataclass
class LoopbackConnection:
    """Connections without proxies, one for each request; https is left to httpx, which checks certificates."""

    timeout: float
    verify: bool | str = True
    _secure: Connection | None = None

    def request(self, method: str, url: str, **sent: Unpack[Sent]) -> Answer:
        """Send a request; TimeoutError and ConnectionError say that there is no answer."""
        try:
            parts = urlsplit(url)
            if parts.scheme == "https":
                return self._remote().request(method, url, **sent)
            connection = HTTPConnection(parts.hostname or "", parts.port, timeout=min(CONNECT_SECONDS, self.timeout))
        except ValueError as wrong:
            raise ConnectionError(str(wrong)) from wrong
        try:
            connection.connect()
            connection.sock.settimeout(self.timeout)
            return _answer(url, _sent(connection, method, _target(parts, sent.get("params")), sent))
        except TimeoutError:
            raise
        except OSError as wrong:
            raise ConnectionError(wrong.strerror or str(wrong)) from wrong
        except (HTTPException, ValueError) as wrong:
            raise ConnectionError(str(wrong) or type(wrong).__name__) from wrong
        finally:
            connection.close()

    def close(self) -> None:
        """Close the connections of https."""
        if self._secure is not None:
            self._secure.close()

    def _remote(self) -> Connection:
        if self._secure is None:
            from climate.cli.connection.remote import RemoteConnection

            self._secure = RemoteConnection(self.timeout, self.verify, trust_env=False)
        return self._secure


def _target(parts: SplitResult, params: Mapping[str, object] | None) -> str:
    """Return the path with its query and the parameters."""
    query = quote(parts.query, safe=UNQUOTED)
    if params:
        query = "&".join(filter(None, [query, urlencode(list(_pairs(params)))]))
    path = quote(parts.path or "/", safe=UNQUOTED)
    return f"{path}?{query}" if query else path


def _pairs(params: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for name, value in params.items():
        for one in value if isinstance(value, MULTIPLE) else [value]:
            yield name, "" if one is None else str(one).lower() if isinstance(one, bool) else str(one)


def _sent(connection: HTTPConnection, method: str, target: str, sent: Sent) -> HTTPResponse:
    body = json.dumps(sent["json"], ensure_ascii=False).encode() if "json" in sent else None
    given = {"Accept": "*/*", "User-Agent": "climate", **({"Content-Type": "application/json"} if body else {})}
    headers = {name.lower(): value for name, value in {**given, **sent.get("headers", {})}.items()}
    if body is not None or method in ("POST", "PUT", "PATCH"):
        headers["content-length"] = str(len(body or b""))
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.putheader("Connection", "close")
    connection.endheaders(body)
    return connection.getresponse()


def _answer(url: str, answer: HTTPResponse) -> LocalAnswer:
    return LocalAnswer(url, answer.status, answer.reason, Headers(answer.getheaders()), answer.read())
