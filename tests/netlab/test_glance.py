"""One look at a host tells which networks are served as they should be, and never says so of one that is not."""

import signal
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Interface, IPv6Network
from pathlib import Path

import pytest

from climate.compute.errors import NetworkError
from climate.compute.linux import processes
from climate.compute.network.driver import Dhcp, Entry, Link, NetworkServices
from climate.compute.network.linux.driver import LinuxNetwork
from climate.sandbox.topology import Lab
from tests.netlab.guests import said

pytestmark = pytest.mark.netlab("nft", "dnsmasq", "radvd")

PREFIX = IPv6Network("fd00:0:0:7::/64")


def served(number: int, *entries: Entry) -> NetworkServices:
    network = IPv4Network(f"10.{number}.0.0/24")
    link = Link(f"net-{number}", f"br7{number}", gateway=IPv4Interface(f"{network[1]}/24"))
    return NetworkServices(link, Dhcp(network, network[2], "novalocal", 120, entries))


def entry(last: int, since: int = 0) -> Entry:
    return Entry(f"02:16:3e:00:00:{last:02x}", IPv4Address(f"10.1.0.{last}"), f"vm{last}", f"vif-{last}", since=since)


def test_what_is_served_like_this_and_what_is_not_any_more(lab: Lab, tmp_path: Path) -> None:
    host = LinuxNetwork(lab.network, tmp_path)
    one, two = served(1, entry(3)), served(2)
    two = replace(two, link=replace(two.link, gateway_v6=IPv6Interface(f"{PREFIX[1]}/64")), prefix_v6=PREFIX)
    assert host.unchanged([one, two]) == frozenset()
    for each in (one, two):
        host.serve(each)
    beside = LinuxNetwork(lab.network, tmp_path)
    assert beside.unchanged([one, two]) == {"net-1", "net-2"}
    assert beside.unchanged([served(1, entry(3, since=9))]) == {"net-1"}, "the same, and its client is still there"
    assert beside.unchanged([served(1, entry(3), entry(4)), replace(two, prefix_v6=None)]) == frozenset()

    ended(tmp_path / "dhcp" / "net-1" / "pid")
    ended(tmp_path / "ra" / "net-2" / "pid")
    assert host.unchanged([one, two]) == frozenset()
    for each in (one, two):
        host.serve(each)
    assert host.unchanged([one, two]) == {"net-1", "net-2"}

    with pytest.raises(NetworkError):
        host.serve(replace(one, link=replace(one.link, interface="nowhere")))
    said(lab.network, "ip", "link", "delete", two.link.bridge)
    assert host.unchanged([one, two]) == frozenset(), "one that was begun and not finished, one without a bridge"
    host.serve(one)
    host.unserve("net-1")
    assert host.unchanged([one]) == frozenset()
    host.clear()
    host.unserve("net-2")
    assert list((tmp_path / "served").iterdir()) == []


def ended(file: Path) -> None:
    """End the program that wrote this pid file."""
    pid = processes.of(int(file.read_text()))
    assert pid is not None
    processes.send_one(pid, signal.SIGKILL)
    assert processes.wait_gone(pid, 10)
