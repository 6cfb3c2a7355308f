"""Posting to servers that are not trusted, over a real connection."""

from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Any

import pytest

from climate.outbound import http_client
from climate.outbound.http_client import MOST_BYTES, DeliveryError, PostRequest, Receipt
from tests.webhook_receiver import Exchange, Receiver, receiving

SECRET = "kept-out-of-sight"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


def parcel(url: str, **changes: Any) -> PostRequest:
    known = {"body": b'{"a": 1}', "headers": {"X-Auth-Token": SECRET}, "seconds": 30.0, "private": True}
    return PostRequest(url, **{**known, **changes})


def test_what_is_posted_arrives(receiver: Receiver) -> None:
    receiver.answer = lambda exchange: exchange.say(403, b'{"message": "no"}')
    assert http_client.post(parcel(f"{receiver.url}/x?y=1")) == Receipt(403, b'{"message": "no"}')
    (got,) = receiver.got
    assert (got.method, got.path, got.body) == ("POST", "/x?y=1", {"a": 1})
    assert got.headers["X-Auth-Token"] == SECRET
    assert got.headers["Content-Type"] == "application/json"


TROUBLE: dict[str, tuple[Callable[[Exchange], None], str]] = {
    "hangs": (Exchange.hang, "no answer within 0.3 s"),
    "drips": (Exchange.drip, "no answer within 0.3 s"),
    "breaks off": (lambda e: e.raw(b""), "was closed"),
    "no HTTP": (lambda e: e.raw(SECRET.encode() + b"\r\n\r\n"), "does not speak HTTP"),
    "endless": (lambda e: e.say(200, b"x" * (MOST_BYTES + 1)), "longer than"),
}


@pytest.mark.parametrize("name", TROUBLE)
def test_trouble_ends_in_time_and_is_reported_without_what_was_said(receiver: Receiver, name: str) -> None:
    receiver.answer, told = TROUBLE[name]
    seconds = 0.3 if "0.3" in told else 30.0
    with pytest.raises(DeliveryError, match=told) as raised:
        http_client.post(parcel(receiver.url, seconds=seconds))
    assert SECRET not in str(raised.value)


def test_redirects_are_not_followed(receiver: Receiver) -> None:
    with receiving() as other:
        receiver.answer = lambda exchange: exchange.say(307, Location=other.url)
        assert http_client.post(parcel(receiver.url)).status == 307
        assert other.got == []


def test_one_that_hangs_does_not_keep_the_others(receiver: Receiver) -> None:
    receiver.answer = lambda exchange: exchange.hang() if exchange.got.path == "/0" else exchange.say(204)
    parcels = [parcel(f"{receiver.url}/{place}", seconds=30.0 if place else 1.0) for place in range(8)]
    results = http_client.post_all(parcels)
    assert [getattr(result, "status", None) for result in results] == [None] + [204] * 7


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{}", "http://localhost:{}", "http://0.0.0.0:{}", "http://2130706433:{}"]
)
def test_this_machine_is_not_reached_unless_that_is_allowed(receiver: Receiver, url: str) -> None:
    port = receiver.url.rpartition(":")[2]
    with pytest.raises(DeliveryError, match="address is private"):
        http_client.post(parcel(url.format(port), private=False))
    assert receiver.got == []


def test_nobody_listens_or_there_is_no_such_name() -> None:
    with pytest.raises(DeliveryError, match="cannot be reached"):
        http_client.post(parcel("http://127.0.0.1:1"))
    with pytest.raises(DeliveryError, match="cannot be reached"):
        http_client.post(parcel("http://name.invalid", private=False))


PUBLIC = ("8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8")
PRIVATE = (
    *("127.0.0.1", "10.1.1.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1", "239.1.1.1"),
    *("255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1", "fec0::1", "::ffff:127.0.0.1", "::127.0.0.1"),
    *("64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:1::"),
)


@pytest.mark.parametrize("text", [*PUBLIC, *PRIVATE])
def test_which_addresses_are_of_the_internet(text: str) -> None:
    assert http_client.is_public(ip_address(text)) is (text in PUBLIC)


@pytest.mark.parametrize(
    ("url", "usable"),
    [
        ("https://a.example/hook?x=1", True),
        ("http://[::1]:9000/", True),
        ("ftp://a.example", False),
        ("https://user:password@a.example", False),
        ("https://a.example/#part", False),
        ("http://a.example:99999", False),
        ("http://", False),
        ("a.example", False),
        ("http://a b", False),
    ],
)
def test_which_urls_can_be_posted_to(url: str, usable: bool) -> None:
    assert http_client.usable(url) is usable


def test_nothing_secret_is_shown() -> None:
    shown = repr(parcel(f"http://x/{SECRET}", body=SECRET.encode())) + repr(Receipt(200, SECRET.encode()))
    assert SECRET not in shown
