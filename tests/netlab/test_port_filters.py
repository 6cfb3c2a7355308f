"""Rules of security groups on interfaces of guests: traffic that they allow passes, all other does not."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from climate.compute.network.driver import Link
from climate.compute.network.render.port_filter import EGRESS, ICMP, INGRESS, TCP, FilterRule
from tests.netlab.guests import Guest, guest, run, said, silent
from tests.netlab.hosts import On, on

__all__ = ["on"]

pytestmark = pytest.mark.netlab("nft", "ping")

NET = Link("net", "br100")
OUT = FilterRule(EGRESS, 4)

SERVER = """
import socket
there = socket.create_server(("0.0.0.0", {port}))
print("listening", flush=True)
while True:
    one, _ = there.accept()
    with one:
        while data := one.recv(100):
            one.sendall(data)
"""
CLIENT = """
import socket, sys
one = socket.create_connection(("{address}", {port}), timeout={patience})
for line in sys.stdin:
    one.sendall(line.encode())
    print(one.recv(100).decode().strip(), flush=True)
"""


@pytest.fixture
def pair(on: On) -> tuple[Guest, Guest]:
    """Two guests on one bridge."""
    on("c1").ensure(NET)
    found = guest(NET, "10.0.0.2/24", number=1), guest(NET, "10.0.0.3/24", number=2)
    for one in found:
        on("c1").plug(one.plug)
    return found


def filtered(on: On, one: Guest, *rules: FilterRule) -> None:
    on("c1").guard(replace(one.plug, rules=rules))


@contextmanager
def python(place: str, text: str) -> Iterator["subprocess.Popen[str]"]:
    words = ["ip", "netns", "exec", place, "python3", "-c", text]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def listening(one: Guest, port: int) -> Iterator[None]:
    with python(one.plug.netns, SERVER.format(port=port)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listening\n"
        yield


def answers(one: Guest, address: str, port: int) -> bool:
    words = f"import socket; socket.create_connection(('{address}', {port}), timeout=2)"
    return run(one.plug.netns, "python3", "-c", words).returncode == 0


def test_a_guest_without_rules_for_incoming_traffic_is_closed_and_gets_answers(
    on: On, pair: tuple[Guest, Guest]
) -> None:
    own, other = pair
    assert other.reaches(own.address)
    filtered(on, own, OUT)
    assert silent(other.plug.netns, own.address)
    assert own.reaches(other.address)
    # The other guest answers, and is no more welcome for it.
    assert silent(other.plug.netns, own.address)
    with listening(other, 4000):
        assert answers(own, other.address, 4000)
    with listening(own, 4000):
        assert not answers(other, own.address, 4000)


def test_ports_protocols_and_ranges_are_those_of_the_rules(on: On, pair: tuple[Guest, Guest]) -> None:
    own, other = pair
    near, far = (IPv4Network("10.0.0.3/32"),), (IPv4Network("10.0.0.9/32"),)
    with listening(own, 4000), listening(own, 4001):
        filtered(on, own, FilterRule(INGRESS, 4, TCP, 4000, 4000, near))
        assert answers(other, own.address, 4000)
        assert not answers(other, own.address, 4001)
        assert silent(other.plug.netns, own.address)
        filtered(on, own, FilterRule(INGRESS, 4, TCP, 4000, 4001, far), FilterRule(INGRESS, 4, ICMP, 8, 0))
        assert not answers(other, own.address, 4000)
        assert other.reaches(own.address)
        filtered(on, own, FilterRule(INGRESS, 4, remotes=()))
        assert silent(other.plug.netns, own.address)


def test_outgoing_traffic_needs_a_rule(on: On, pair: tuple[Guest, Guest]) -> None:
    own, other = pair
    filtered(on, own, FilterRule(INGRESS, 4), FilterRule(EGRESS, 4, TCP, 4000, 4000))
    assert other.reaches(own.address)
    assert silent(own.plug.netns, other.address)
    with listening(other, 4000), listening(other, 4001):
        assert answers(own, other.address, 4000)
        assert not answers(own, other.address, 4001)


def test_connections_outlive_a_change_of_the_rules(on: On, pair: tuple[Guest, Guest]) -> None:
    own, other = pair
    filtered(on, own, OUT)
    text = CLIENT.format(address=other.address, port=4000, patience=20)
    with listening(other, 4000), python(own.plug.netns, text) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write("one\n")
        client.stdin.flush()
        assert client.stdout.readline() == "one\n"
        # No rule is left, and the connection is known.
        filtered(on, own)
        client.stdin.write("two\n")
        client.stdin.flush()
        assert client.stdout.readline() == "two\n"
        assert not answers(own, other.address, 4000)


def test_without_rules_all_is_open_again_and_spoofing_is_not(on: On, pair: tuple[Guest, Guest]) -> None:
    own, other = pair
    filtered(on, own)
    assert silent(other.plug.netns, own.address)
    said(own.plug.netns, "ip", "address", "add", "10.0.0.8/24", "dev", "eth0")
    filtered(on, own, OUT, FilterRule(INGRESS, 4))
    assert run(own.plug.netns, "ping", "-c", "2", "-i", "0.2", "-W", "1", "-I", "10.0.0.8", other.address).returncode
    on("c1").guard(own.plug)
    assert other.reaches(own.address)
    assert "egress" not in said("c1", "nft", "list", "table", "netdev", own.plug.name)


def test_an_interface_that_is_gone_is_not_guarded(on: On, pair: tuple[Guest, Guest]) -> None:
    own, _ = pair
    on("c1").unplug(own.plug.name)
    filtered(on, own, OUT)
    assert own.plug.name not in said("c1", "nft", "list", "tables")
