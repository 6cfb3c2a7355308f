"""The network that is only written down."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Network

import pytest

from climate.compute.errors import NetworkError
from climate.compute.network.driver import (
    Dhcp,
    DhcpAction,
    Entry,
    ExistingResources,
    Forward,
    Kind,
    Link,
    Nat,
    NetworkDriver,
    NetworkServices,
    Plug,
)
from climate.compute.network.driver.recording import RecordingNetwork

LINK = Link("net-1", "br100", gateway=IPv4Interface("10.0.0.1/24"))
ENTRY = Entry("02:16:3e:33:44:55", IPv4Address("10.0.0.3"), "vm1", "2")
DHCP = Dhcp(IPv4Network("10.0.0.0/24"), IPv4Address("10.0.0.2"), "novalocal", 120, (ENTRY,))
SERVED = NetworkServices(LINK, DHCP, IPv6Network("fd00::/64"))
PLUG = Plug("00000000-1111", ENTRY.mac, Kind.VETH, replace(LINK, gateway=None), netns="guest-1")


def test_what_should_be_is_kept_and_rendered() -> None:
    host = RecordingNetwork()
    driver: NetworkDriver = host
    assert driver.trouble() is None
    assert driver.serve(SERVED) is not None
    driver.translate(Nat(DHCP.network, forwards=(Forward(IPv4Address("4.4.4.1"), ENTRY.address, "eth0"),)))
    assert "02:16:3e:33:44:55,vm1.novalocal,10.0.0.3" in host.files()["br100/hosts"]
    assert "--dhcp-range=10.0.0.2,static,120s" in host.files()["br100/dnsmasq"]
    assert "prefix fd00::/64" in host.files()["br100/radvd.conf"]
    assert "-d 4.4.4.1 -j DNAT --to 10.0.0.3" in host.files()["iptables"]
    assert "4.4.4.1 : 10.0.0.3" in host.files()["nft"]
    assert "== ip6tables\n" in host.text()


def test_what_is_there_is_reported_until_it_is_taken_away() -> None:
    host = RecordingNetwork()
    host.serve(SERVED)
    host.plug(PLUG)
    assert host.standing() == ExistingResources(frozenset({"net-1"}), frozenset({"net-1"}), frozenset({"clp-00000000"}))
    assert host.links["net-1"].gateway == LINK.gateway, "an interface that is plugged leaves the address"
    host.unserve("net-1")
    assert host.links["net-1"].gateway is None
    host.unplug(PLUG.name)
    host.remove("net-1")
    assert host.standing() == ExistingResources()
    host.plug(PLUG)
    host.drop_netns("guest-1")
    assert not host.plugs


def test_clients_are_reported_until_that_is_forgotten() -> None:
    host = RecordingNetwork()
    host.serve(SERVED)
    host.simulate("net-1", DhcpAction.LEASED, ENTRY)
    host.release(LINK, ENTRY)
    first, second = host.happened()
    assert (first.what, second.what) == (DhcpAction.LEASED, DhcpAction.RELEASED)
    assert second.address == ENTRY.address
    host.forget([first.key, "unknown"])
    assert host.happened() == (second,)


def test_what_a_host_could_not_do_is_refused() -> None:
    host = RecordingNetwork()
    with pytest.raises(NetworkError, match="no address"):
        host.serve(replace(SERVED, link=replace(LINK, gateway=None)))
    with pytest.raises(NetworkError, match="is not a valid interface name"):
        host.translate(Nat(DHCP.network, interface="two words"))
    assert host.standing() == ExistingResources()
    assert host.nat is None


def test_any_verb_can_fail() -> None:
    def fails(verb: str) -> None:
        if verb == "serve":
            raise NetworkError("no")

    host = RecordingNetwork(fails=fails)
    with pytest.raises(NetworkError, match="no"):
        host.serve(SERVED)
    host.ensure(LINK)
    assert not host.serving
