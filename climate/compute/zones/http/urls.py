"""URLs of child zones: validation and parsing."""

from typing import Literal

import httpx

from climate.compute.errors import BadRequest

COMPUTE = "/compute/v2.1"

ROOTS = {"compute": COMPUTE, "reservation": "/reservation/v1", "image": "/image/v2", "identity": "/identity/v3"}
"""Service -> path below the base URL of a deployment."""

LONGEST = 255
LAST_PORT = 65535


def check(url: object) -> str:
    """Return the URL of a child's compute API in stored form. Raise BadRequest with the error."""
    if not isinstance(url, str) or not 0 < len(url) <= LONGEST:
        raise BadRequest(f"api_url must be a text of 1 to {LONGEST} characters")
    if not url.isascii() or not url.isprintable() or any(sign in url for sign in " \\"):
        raise BadRequest("api_url must be printable ASCII without blanks and backslashes")
    try:
        read = httpx.URL(url)
        port = read.port
    except httpx.InvalidURL:
        raise BadRequest("api_url is not a URL; it must look like http://zone:8000/compute/v2.1") from None
    if read.scheme not in ("http", "https") or not read.host:
        raise BadRequest("api_url must begin with http:// or https:// and name a host")
    if port is not None and not 0 < port <= LAST_PORT:
        raise BadRequest(f"api_url must have a port from 1 to {LAST_PORT}")
    _check_parts(url, read)
    return url


def _check_parts(url: str, read: httpx.URL) -> None:
    """Raise BadRequest if a URL has other parts than scheme, host, port and a plain path."""
    if read.userinfo or "@" in url:
        raise BadRequest("api_url must not hold a user name or password; they are username and password")
    if read.query or read.fragment or "?" in url or "#" in url:
        raise BadRequest("api_url must have no query and no fragment")
    if any(part in (".", "..") or "%" in part for part in url.split("/")):
        raise BadRequest("api_url must have a plain path, without dots and escapes")


def base(api_url: str) -> str:
    """Return the base URL of the deployment whose compute API is at `api_url`."""
    return api_url.rstrip("/").removesuffix(COMPUTE).rstrip("/")


def is_same(one: str, other: str) -> bool:
    """Return whether two URLs have the same base: case of scheme and host, and default ports, do not matter."""
    return _normalized(one) == _normalized(other)


def _normalized(api_url: str) -> str:
    """Return the base URL in lower case without a default port."""
    return str(httpx.URL(str(httpx.URL(base(api_url)))))


def root(api_url: str, service: Literal["compute", "reservation", "image", "identity"]) -> str:
    """Return the root URL of a service of that deployment."""
    return f"{base(api_url)}{ROOTS[service]}"
