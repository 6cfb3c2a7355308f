"""Interfaces of a connection and of its answers, which are named as in httpx."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypedDict, Unpack

Parameter = str | int | float | bool | None


class Sent(TypedDict, total=False):
    """Parts of a request."""

    params: Mapping[str, Parameter | Sequence[Parameter]]
    json: object
    headers: Mapping[str, str]


class Answer(Protocol):
    """Answer of a server."""

    @property
    def url(self) -> object: ...
    @property
    def status_code(self) -> int: ...
    @property
    def reason_phrase(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def text(self) -> str: ...
    def json(self) -> object: ...


class Connection(Protocol):
    """Way to send requests."""

    def request(self, method: str, url: str, **sent: Unpack[Sent]) -> Answer:
        """Send a request with `params`, `json` and `headers`; raise TimeoutError or ConnectionError without answer."""

    def close(self) -> None:
        """Close the connections."""
