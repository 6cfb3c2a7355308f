"""Posts JSON to servers that are not trusted: every talk ends in time, reads little and follows no redirect.

What such a server answers is never repeated in an error of ours: it may say
anything, what it was sent included.
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
"""Longest answer that is read."""

NOT_PUBLIC = tuple(
    ip_network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96", "fec0::/10")
)
"""IPv6 addresses with an IPv4 address inside, which may be a private one; and those of a site."""

LAST_PORT = 65535

NO_WAITING = httpx.Limits(max_connections=None, max_keepalive_connections=0)
"""Nobody waits for another's connection, and none is used twice."""

Address = IPv4Address | IPv6Address


class CourierError(Exception):
    """The other side could not be talked to, or talked nonsense."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is posted where.  `private`: the address may be one of this machine or of a private network."""

    url: str = field(repr=False)
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    seconds: float
    private: bool


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was answered."""

    status: int
    body: bytes = field(repr=False)


def usable(url: str) -> bool:
    """Whether something can be posted to this URL: http or https, with a host, and no password for all to see."""
    try:
        read = httpx.URL(url)
        plain = not read.userinfo and not read.fragment and (read.port or 1) <= LAST_PORT
        plain = plain and url.isascii() and url.isprintable() and " " not in url
        return read.scheme in ("http", "https") and bool(read.host) and plain
    except (httpx.InvalidURL, TypeError):
        return False


def post(parcel: Parcel) -> Receipt:
    """Post one; CourierError when that is not over in time or breaks off."""
    (result,) = post_all([parcel])
    if isinstance(result, CourierError):
        raise result
    return result


def post_all(parcels: Sequence[Parcel]) -> list[Receipt | CourierError]:
    """Post all at the same time; one's trouble is not another's."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_together(parcels))
    finally:
        # Unlike asyncio.run, this does not wait for a name that is still being looked up.
        loop.close()


async def _together(parcels: Sequence[Parcel]) -> list[Receipt | CourierError]:
    longest = max(parcel.seconds for parcel in parcels)
    async with httpx.AsyncClient(
        trust_env=False, verify=_authorities(), timeout=longest, limits=NO_WAITING, follow_redirects=False
    ) as client:
        return list(await asyncio.gather(*(_posted(client, parcel) for parcel in parcels)))


@cache
def _authorities() -> ssl.SSLContext:
    """Read once: it takes longer than a talk."""
    return httpx.create_ssl_context()


async def _posted(client: httpx.AsyncClient, parcel: Parcel) -> Receipt | CourierError:
    try:
        # The time-outs of the client are for each read: who drips would never be late.
        async with asyncio.timeout(parcel.seconds):
            return await _talk(client, parcel)
    except TimeoutError:
        return CourierError(f"no answer within {parcel.seconds:g} s")
    except CourierError as error:
        return error
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
        return _reason(error)


async def _talk(client: httpx.AsyncClient, parcel: Parcel) -> Receipt:
    url, more = httpx.URL(parcel.url), {}
    headers = {"Accept-Encoding": "identity", "Content-Type": "application/json", **parcel.headers}
    if not parcel.private:
        # Connects to the very address that was looked at: the name may be another one's a moment later.
        address = await _public_address(url)
        headers["Host"] = url.netloc.decode("ascii")
        more = {"sni_hostname": url.host}
        url = url.copy_with(host=str(address))
    async with client.stream("POST", url, content=parcel.body, headers=headers, extensions=more) as answer:
        read = bytearray()
        async for piece in answer.aiter_raw():
            read += piece
            if len(read) > MOST_BYTES:
                raise CourierError(f"the answer is longer than {MOST_BYTES} bytes")
        return Receipt(answer.status_code, bytes(read))


async def _public_address(url: httpx.URL) -> Address:
    port = url.port or {"http": 80, "https": 443}[url.scheme]
    found: Any = await asyncio.get_running_loop().getaddrinfo(url.host, port, type=1)
    addresses = [ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    if not addresses or not all(is_public(address) for address in addresses):
        raise CourierError("the address is a private one, which CLIMATE_NOTIFY_PRIVATE does not allow")
    return addresses[0]


def is_public(address: Address) -> bool:
    """Whether an address is one of the internet, and does not carry another one inside."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return is_public(address.ipv4_mapped)
        if any(address in network for network in NOT_PUBLIC):
            return False
    return address.is_global and not address.is_multicast


def _reason(error: BaseException) -> CourierError:
    """What went wrong, in words that are ours or the system's."""
    for cause in exception_chain.of(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return CourierError(f"the certificate is not accepted: {cause.verify_message}")
        if isinstance(cause, ssl.SSLError):
            return CourierError(f"TLS does not work: {cause.reason}")
    if isinstance(error, httpx.RemoteProtocolError):
        return CourierError("the connection breaks off, or the other side does not speak HTTP")
    system = next(
        (cause.strerror for cause in exception_chain.of(error) if isinstance(cause, OSError) and cause.strerror), ""
    )
    return CourierError(f"it cannot be reached{': ' if system else ''}{system}")
