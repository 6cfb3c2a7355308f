"""Guests that speak to hosts what only hosts say, or in another guest's place to the DHCP server."""

import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path

import pytest

from climate.compute.linux import netns
from climate.compute.network.driver import Dhcp, DhcpAction, Entry, Link, NetworkServices
from climate.compute.network.linux.daemons import dhcp_release
from climate.compute.network.linux.vlan.vlan_transport import Vxlan, why_not
from tests.netlab import frames
from tests.netlab.bridge_bench import until
from tests.netlab.dhcp_client import lease
from tests.netlab.guests import PATIENCE, Guest, guest, said, silent
from tests.netlab.hosts import On, on

__all__ = ["on"]

pytestmark = pytest.mark.netlab("nft", "ping")

BLUE = Link("blue", "br100", interface="eth1", vlan=100)
RED = Link("red", "br200", interface="eth1", vlan=200)
GATE = IPv4Interface("10.0.0.1/24")


def plugged(on: On, host: str, link: Link, address: str, number: int, way: str = "auto") -> Guest:
    made = guest(link, address, number=number, router=str(GATE.ip) if link is BLUE else None)
    on(host, way).ensure(link)
    on(host).plug(made.plug)
    return made


@pytest.fixture
def forwarding() -> Iterator[None]:
    before = said("n1", "sysctl", "-n", "net.ipv4.ip_forward").strip()
    said("n1", "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
    yield
    said("n1", "sysctl", "-q", "-w", f"net.ipv4.ip_forward={before}")


@pytest.mark.usefixtures("forwarding")
@pytest.mark.parametrize("target", ["10.0.0.1", "192.0.2.1", "192.0.2.3"])
def test_a_guest_does_not_get_into_another_vlan_by_wrapping_frames_as_hosts_do(on: On, target: str) -> None:
    """To the host that is its gateway, and by way of that one to another host."""
    if (reason := why_not(Vxlan())) is not None:
        pytest.skip(reason)
    on("n1", "vxlan").ensure(replace(BLUE, gateway=GATE))
    one = plugged(on, "n1", BLUE, "10.0.0.2/24", 1, "vxlan")
    near = plugged(on, "n1", RED, "10.1.0.3/24", 2, "vxlan")
    far = plugged(on, "c2", RED, "10.1.0.4/24", 3, "vxlan")

    def wrapped(vlan: int) -> bytes:
        frame = frames.ether(one.plug.mac, frames.IPV4, frames.ipv4("10.1.0.9", frames.udp(9, 9, "wrapped")))
        return b"\x08\0\0\0" + vlan.to_bytes(3, "big") + b"\0" + frame

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 255)
            sender.sendto(wrapped(RED.vlan or 0), (target, 4789))

    with near.socket() as here, far.socket() as there:
        assert one.reaches("10.0.0.1")
        netns.inside(one.plug.netns, send)
        assert near.reaches(far.address), "hosts go on"
        assert frames.waiting(here, "wrapped") + frames.waiting(there, "wrapped") == 0


SERVED = Link("green", "br300", gateway=GATE)
ADDRESSES = {1: IPv4Address("10.0.0.2"), 2: IPv4Address("10.0.0.3")}
DECLINE, RELEASE = 4, 7


@pytest.fixture
def neighbours(on: On) -> tuple[Guest, Guest]:
    """Two guests on one network that have not asked for their addresses yet."""
    made = [guest(SERVED, f"{address}/24", number=number) for number, address in ADDRESSES.items()]
    now = int(time.time())
    entries = tuple(
        Entry(each.plug.mac, IPv4Address(each.address), f"vm{n}", f"vif-{n}", since=now) for n, each in enumerate(made)
    )
    network = IPv4Network("10.0.0.0/24")
    for known in ((), entries):  # what the server begins with it takes for leased
        on("n1").serve(NetworkServices(SERVED, Dhcp(network, network[2], "novalocal", 120, known)))
    one, two = (Guest(replace(one.plug, static=())) for one in made)
    for each in (one, two):
        on("n1").plug(each.plug)
    return one, two


def as_client(mac: str, kind: int, address: IPv4Address, *more: bytes) -> bytes:
    """What a DHCP client with this hardware address tells the server of an address; `more`: options, with numbers."""
    said = bytearray(dhcp_release.message(mac, address, GATE.ip)[:-1])
    said[242] = kind
    options = b"".join(bytes((one[0], len(one) - 1)) + one[1:] for one in (*more, b"\x32" + address.packed))
    return bytes(said) + options + b"\xff"


def asked(one: Guest, source: str, message: bytes) -> bytes:
    """A frame of this guest's with that message to DHCP servers."""
    head = b"\0\x44\0\x43" + (8 + len(message)).to_bytes(2, "big") + b"\0\0"
    return frames.ether(one.plug.mac, frames.IPV4, frames.ipv4(source, head + message))


@pytest.mark.netlab("dnsmasq", "udhcpc")
def test_a_guest_gives_no_address_of_anothers_back(on: On, neighbours: tuple[Guest, Guest], tmp_path: Path) -> None:
    """Neither by the other's MAC nor as the client that the other is."""
    hostile, other = neighbours
    driver, theirs = on("n1"), ADDRESSES[2]
    assert lease(other.plug.netns, tmp_path)["ip"] == str(theirs)
    client = b"\x3d\x01" + bytes.fromhex(other.plug.mac.replace(":", ""))
    with hostile.socket() as sender:
        for source in ("0.0.0.0", str(ADDRESSES[1])):
            for kind in (RELEASE, DECLINE):
                sender.send(asked(hostile, source, as_client(other.plug.mac, kind, theirs)))
                sender.send(asked(hostile, source, as_client(hostile.plug.mac, kind, theirs, client)))
    assert lease(hostile.plug.netns, tmp_path)["ip"] == str(ADDRESSES[1])

    def told() -> set[tuple[DhcpAction, IPv4Address]]:
        return {(each.what, each.address) for each in driver.happened()}

    until(lambda: (DhcpAction.LEASED, ADDRESSES[1]) in told(), "the lease of the other")
    assert (DhcpAction.RELEASED, theirs) not in told()
    said(other.plug.netns, "ip", "address", "flush", "dev", "eth0")
    assert lease(other.plug.netns, tmp_path)["ip"] == str(theirs)
    driver.forget([each.key for each in driver.happened()])


def test_a_guest_reaches_nothing_of_a_host_that_has_no_address_on_its_network(on: On) -> None:
    """Though the host has other addresses, and its bridge hears whatever is said to it."""
    one = plugged(on, "c1", BLUE, "10.0.0.2/24", 1)
    said(one.plug.netns, "ip", "route", "replace", "192.0.2.2", "dev", "eth0")
    mac = said("c1", "ip", "-o", "link", "show", "br100").split("link/ether ")[1].split()[0]

    def tell(word: bytes) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(word, ("192.0.2.2", 9999))

    def listening() -> socket.socket:
        heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        heard.bind(("192.0.2.2", 9999))
        heard.settimeout(PATIENCE)
        return heard

    with netns.inside("c1", listening) as heard:
        assert silent(one.plug.netns, "192.0.2.2"), "nor is it answered by ARP"
        said(one.plug.netns, "ip", "neighbour", "replace", "192.0.2.2", "lladdr", mac, "dev", "eth0")
        netns.inside(one.plug.netns, lambda: tell(b"a guest"))
        netns.inside("c2", lambda: tell(b"a host"))
        assert heard.recv(100) == b"a host"
