"""HTTP requests to the cloud: each has a time-out, and each failure maps to an error of the cloud interface.

The bodies follow one microversion of the Compute API. It is old enough for every Nova since 2017, and still describes
the size of a hypervisor.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from keystoneauth1.exceptions import ClientException
from openstack.connection import Connection
from openstack.exceptions import SDKException
from requests import Response

from climate.cloud import CloudError, Refused

MICROVERSIONS = {"compute": "2.53", "placement": "1.26"}
LONGEST_REASON = 300

Body = Mapping[str, Any]
Result = TypeVar("Result")


class Missing(Refused):
    """The cloud has no such object."""


class Clash(CloudError):
    """The present state of the cloud does not allow this."""


_OUTCOMES: Mapping[int, type[CloudError]] = {400: Refused, 403: Refused, 404: Missing, 409: Clash}
"""Error by status; any other status may differ in a retry."""


def unless_gone(call: Callable[[], Result]) -> Result | None:
    """Return the result of a call; None if the cloud has no such object."""
    try:
        return call()
    except Missing:
        return None


@dataclass(frozen=True)
class Remote:
    """A cloud behind a connection of openstacksdk."""

    connection: Connection
    blazar_filter: bool = False
    """True if BlazarFilter restricts access to the pools."""

    def get(self, path: str, service: str = "compute", **query: str) -> Body:
        """Return the body of an answer."""
        return self._send("GET", path, service, params=query)

    def post(self, path: str, body: Body, service: str = "compute") -> Body:
        """Send a POST request and return the body."""
        return self._send("POST", path, service, json=body)

    def put(self, path: str, body: Body | None, service: str = "compute") -> Body:
        """Send a PUT request."""
        return self._send("PUT", path, service, json=body)

    def delete(self, path: str, service: str = "compute") -> None:
        self._send("DELETE", path, service)

    def has(self, service: str) -> bool:
        """Return whether the catalog of the cloud has a service."""
        try:
            return self.connection.config.get_session_endpoint(service) is not None
        except (ClientException, SDKException, OSError) as error:
            raise CloudError(f"the catalog could not be read: {type(error).__name__}: {_short(error)}") from error

    def each(self, path: str, **query: str) -> Iterator[Body]:
        """Yield all entries of a list of compute, page by page; none if the cloud answers that nothing matches."""
        key = path.removesuffix("/detail").strip("/").removeprefix("os-")
        while True:
            try:
                page = self.get(path, **query)
            except Missing:
                return
            yield from page[key]
            if not page[key] or not any(link["rel"] == "next" for link in page.get(f"{key}_links", ())):
                return
            query["marker"] = str(page[key][-1]["id"])

    def _send(self, method: str, path: str, service: str, **sent: object) -> Body:
        what = f"{method} {path.partition('?')[0]}"
        version = {"microversion": MICROVERSIONS[service]} if service in MICROVERSIONS else {}
        try:
            answer = getattr(self.connection, service).request(path, method, raise_exc=False, **version, **sent)
            body = answer.json() if answer.content and answer.ok else {}
        except (ClientException, SDKException, OSError, ValueError) as error:
            raise CloudError(f"the cloud did not answer {what}: {type(error).__name__}: {_short(error)}") from error
        if answer.ok:
            return body if isinstance(body, dict) else {}
        raised = _OUTCOMES.get(answer.status_code, CloudError)
        raise raised(f"the cloud answered {what} with {answer.status_code}: {_reason(answer)}")


def _reason(answer: Response) -> str:
    """Return the message of a refusal, in any of the formats of the services."""
    try:
        body = answer.json()
    except ValueError:
        return "no reason given"
    inner = next(iter(body.values()), None) if isinstance(body, dict) else body
    return _short(inner.get("message", "no reason given") if isinstance(inner, dict) else inner)


def _short(reason: object) -> str:
    return " ".join(str(reason).split())[:LONGEST_REASON]
