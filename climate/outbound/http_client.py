"""HTTP client that posts JSON to untrusted servers, with a total time-out, a size limit and no redirects.

Errors never repeat the answer of such a server: it may contain anything, including what was sent.
"""

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import httpx

from climate import exception_chain

MOST_BYTES = 64 * 1024
"""Maximum size of an answer in bytes."""

NOT_PUBLIC = tuple(
    ip_network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96", "fec0::/10")
)
"""IPv6 ranges that embed an IPv4 address, which may be private, and site-local ranges."""

LAST_PORT = 65535

NO_WAITING = httpx.Limits(max_connections=None, max_keepalive_connections=0)
"""Connections are not pooled: none is waited for, and none is used twice."""

Address = IPv4Address | IPv6Address


class DeliveryError(Exception):
    """The server could not be reached, or its answer is unusable."""


@dataclass(frozen=True, slots=True)
class PostRequest:
    """A request body and its URL. With `private` the address may be this machine or a private network."""

    url: str = field(repr=False)
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    seconds: float
    private: bool


@dataclass(frozen=True, slots=True)
class Receipt:
    """The status and body of an answer."""

    status: int
    body: bytes = field(repr=False)


def usable(url: str) -> bool:
    """Return whether a URL accepts posts: http or https, with a host, and without a password in clear text."""
    try:
        read = httpx.URL(url)
        plain = not read.userinfo and not read.fragment and (read.port or 1) <= LAST_PORT
        plain = plain and url.isascii() and url.isprintable() and " " not in url
        return read.scheme in ("http", "https") and bool(read.host) and plain
    except (httpx.InvalidURL, TypeError):
        return False


def post(request: PostRequest) -> Receipt:
    """Post one request. Raise CourierError when it times out or the connection breaks."""
    (result,) = post_all([request])
    if isinstance(result, DeliveryError):
        raise result
    return result


def post_all(requests: Sequence[PostRequest]) -> list[Receipt | DeliveryError]:
    """Post all requests concurrently; an error of one does not affect the others."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_together(requests))
    finally:
        # Unlike asyncio.run, this does not wait for a pending name resolution.
        loop.close()


async def _together(requests: Sequence[PostRequest]) -> list[Receipt | DeliveryError]:
    longest = max(parcel.seconds for parcel in requests)
    async with httpx.AsyncClient(
        trust_env=False, verify=_authorities(), timeout=longest, limits=NO_WAITING, follow_redirects=False
    ) as client:
        return list(await asyncio.gather(*(_posted(client, parcel) for parcel in requests)))


@cache
def _authorities() -> ssl.SSLContext:
    """Load the certificate authorities once, because this takes longer than a request."""
    return httpx.create_ssl_context()


async def _posted(client: httpx.AsyncClient, request: PostRequest) -> Receipt | DeliveryError:
    try:
        # The client's time-outs apply to each read, so a slow sender would never exceed them.
        async with asyncio.timeout(request.seconds):
            return await _talk(client, request)
    except TimeoutError:
        return DeliveryError(f"no answer within {request.seconds:g} s")
    except DeliveryError as error:
        return error
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
        return _reason(error)


async def _talk(client: httpx.AsyncClient, request: PostRequest) -> Receipt:
    url, more = httpx.URL(request.url), {}
    headers = {"Accept-Encoding": "identity", "Content-Type": "application/json", **request.headers}
    if not request.private:
        # Connect to the address that was checked: the name may resolve to another one a moment later.
        address = await _public_address(url)
        headers["Host"] = url.netloc.decode("ascii")
        more = {"sni_hostname": url.host}
        url = url.copy_with(host=str(address))
    async with client.stream("POST", url, content=request.body, headers=headers, extensions=more) as answer:
        read = bytearray()
        async for piece in answer.aiter_raw():
            read += piece
            if len(read) > MOST_BYTES:
                raise DeliveryError(f"the answer is longer than {MOST_BYTES} bytes")
        return Receipt(answer.status_code, bytes(read))


async def _public_address(url: httpx.URL) -> Address:
    port = url.port or {"http": 80, "https": 443}[url.scheme]
    result: Any = await asyncio.get_running_loop().getaddrinfo(url.host, port, type=1)
    addresses = [ip_address(str(entry[4][0]).partition("%")[0]) for entry in result]
    if not addresses or not all(is_public(address) for address in addresses):
        raise DeliveryError("the address is private; set CLIMATE_NOTIFY_PRIVATE=true to allow it")
    return addresses[0]


def is_public(address: Address) -> bool:
    """Return whether an address is public, and embeds no other address."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return is_public(address.ipv4_mapped)
        if any(address in network for network in NOT_PUBLIC):
            return False
    return address.is_global and not address.is_multicast


def _reason(error: BaseException) -> DeliveryError:
    """Return the cause of a failure, in the words of this module or of the system."""
    for cause in exception_chain.of(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return DeliveryError(f"the certificate is not accepted: {cause.verify_message}")
        if isinstance(cause, ssl.SSLError):
            return DeliveryError(f"TLS failed: {cause.reason}")
    if isinstance(error, httpx.RemoteProtocolError):
        return DeliveryError("the connection was closed, or the server does not speak HTTP")
    system = next(
        (cause.strerror for cause in exception_chain.of(error) if isinstance(cause, OSError) and cause.strerror), ""
    )
    return DeliveryError(f"it cannot be reached{': ' if system else ''}{system}")
