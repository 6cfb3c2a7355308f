"""Microversions of the Compute API."""

import re

from flask import Response, g, request
from werkzeug.exceptions import NotAcceptable

from climate.domain.errors import InvalidInput, NotFound

LOWEST, HIGHEST = (2, 1), (2, 79)
HEADERS = ("OpenStack-API-Version", "X-OpenStack-Nova-API-Version")
_FORM = re.compile(r"([0-9]{1,4})\.([0-9]{1,6})")


def written(version: tuple[int, int]) -> str:
    """Return the microversion as text, such as `2.79`."""
    return f"{version[0]}.{version[1]}"


def read() -> None:
    """Read the microversion of the request; 400 for an invalid version, 406 for one that is not served."""
    text = _requested_version()
    if text is None or text == "latest":
        g.microversion = LOWEST if text is None else HIGHEST
        return
    form = _FORM.fullmatch(text)
    if form is None:
        raise InvalidInput(
            f"API Version String {text[:40]!r} is of invalid format. Must be of format MajorNum.MinorNum."
        )
    wanted = int(form[1]), int(form[2])
    if not LOWEST <= wanted <= HIGHEST:
        raise NotAcceptable(
            f"Version {text} is not supported by the API. "
            f"Minimum is {written(LOWEST)} and maximum is {written(HIGHEST)}."
        )
    g.microversion = wanted


def add_headers(response: Response) -> Response:
    """Add the microversion to the headers of the answer."""
    version = written(g.get("microversion", LOWEST))
    response.headers[HEADERS[0]] = f"compute {version}"
    response.headers[HEADERS[1]] = version
    response.vary.update(HEADERS)
    return response


def since(minor: int) -> bool:
    """Return whether the request has microversion 2.`minor` or later; web pages have the lowest."""
    wanted: tuple[int, int] = g.get("microversion", LOWEST)
    return wanted >= (2, minor)


def _requested_version() -> str | None:
    for part in request.headers.get(HEADERS[0], "").split(","):
        service, _, version = part.strip().partition(" ")
        if service.lower() in ("compute", "nova"):
            return version.strip()
    return request.headers.get(HEADERS[1], "").strip() or None


def proxied() -> None:
    """Return 404 from microversion 2.36 on, which removed the proxies to the network service."""
    if since(36):
        raise NotFound("The resource could not be found: since 2.36 use the Network API.")
