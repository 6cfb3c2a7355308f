"""The texts of radvd, of nft and of a guest's interfaces."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from pathlib import Path

import pytest

from climate.compute.errors import NetworkError
from climate.compute.network.driver import Forward, Link, Nat, Vpn
from climate.compute.network.render import nat_nft, radvd
from climate.compute.network.render.interfaces import GuestInterface, interfaces

NAT = Nat(IPv4Network("10.0.0.0/8"))
FLOATING, FIXED = IPv4Address("4.4.4.1"), IPv4Address("10.0.0.3")


def test_router_advertisements() -> None:
    conf = radvd.conf(Link("net-1", "br100"), IPv6Network("fd00::/64"))
    wanted = "interface br100 { AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 10;"
    assert " ".join(conf.split()) == wanted + " prefix fd00::/64 { AdvOnLink on; AdvAutonomous on; }; };"
    assert "AdvLinkMTU 1450;" in radvd.conf(Link("net-1", "br100", mtu=1450), IPv6Network("fd00::/64"))
    assert radvd.command(Path("/c"), Path("/p"), Path("/l"))[:5] == ("radvd", "-C", "/c", "-p", "/p")
    with pytest.raises(NetworkError):
        radvd.conf(Link("net-1", "br100 {"), IPv6Network("fd00::/64"))


def test_a_guest_that_is_given_its_addresses_by_a_file() -> None:
    card = GuestInterface(
        "eth0",
        IPv4Interface("192.168.0.2/24"),
        IPv4Address("192.168.0.1"),
        (IPv4Address("8.8.4.4"),),
        IPv6Interface("2001:db8::16:3eff:fe33:4455/64"),
        IPv6Address("2001:db8::1"),
    )
    text = interfaces([card, GuestInterface("eth1", IPv4Interface("10.0.0.2/28"))])
    assert (
        text
        == """auto lo
iface lo inet loopback

auto eth0
iface eth0 inet static
    address 192.168.0.2
    netmask 255.255.255.0
    broadcast 192.168.0.255
    gateway 192.168.0.1
    dns-nameservers 8.8.4.4

iface eth0 inet6 static
    address 2001:db8::16:3eff:fe33:4455
    netmask 64
    gateway 2001:db8::1

auto eth1
iface eth1 inet static
    address 10.0.0.2
    netmask 255.255.255.240
    broadcast 10.0.0.15
"""
    )


def test_the_table_is_replaced_in_one_transaction() -> None:
    text = nat_nft.ruleset(NAT)
    assert text.startswith("add table inet climate\ndelete table inet climate\ntable inet climate {\n")
    assert "elements" not in text


def test_floating_addresses_are_elements_of_maps() -> None:
    second = Forward(IPv4Address("4.4.4.2"), FIXED, "eth0")
    text = nat_nft.ruleset(replace(NAT, forwards=(Forward(FLOATING, FIXED, "eth0"), second)))
    assert "elements = { 4.4.4.1 : 10.0.0.3, 4.4.4.2 : 10.0.0.3 }" in text
    assert "elements = { 10.0.0.3 : 4.4.4.1 }" in text, "a server is seen under the first of its addresses"


def test_the_way_out_is_translated_where_there_is_one() -> None:
    assert "oifname" not in nat_nft.ruleset(NAT).partition("chain postrouting")[2].partition("}")[0]
    assert 'ip saddr 10.0.0.0/8 oifname "eth0" masquerade' in nat_nft.ruleset(replace(NAT, interface="eth0"))
    named = replace(NAT, interface="eth0", source=IPv4Address("4.4.4.250"))
    assert 'oifname "eth0" snat ip to 4.4.4.250' in nat_nft.ruleset(named)


def test_cloudpipe_and_metadata_lead_to_their_servers() -> None:
    vpn = Vpn(IPv4Address("10.0.0.2"), IPv4Address("4.4.4.250"), 1000)
    text = nat_nft.ruleset(replace(NAT, vpns=(vpn,), metadata=("192.0.2.7", 8773)))
    assert text.count("ip daddr 4.4.4.250 udp dport 1000 dnat ip to 10.0.0.2:1194") == 2
    assert text.count("ip daddr 169.254.169.254 tcp dport 80 dnat ip to 192.0.2.7:8773") == 1


def test_bridges_of_one_group_are_routed_between() -> None:
    nat = replace(NAT, bridges=("br1", "br2", "br3"), between=(frozenset({"br1", "br2"}),))
    routed = nat_nft.ruleset(nat).partition("set routed")[2].partition("}")[0]
    assert '"br1" . "br2"' in routed
    assert '"br2" . "br1"' in routed
    assert "br3" not in routed.replace('"br3" . "br3"', "")


def test_what_is_not_an_interface_is_refused() -> None:
    for broken in (replace(NAT, interface='eth0" accept'), replace(NAT, bridges=("br 1",))):
        with pytest.raises(NetworkError, match="is not a valid interface name"):
            nat_nft.ruleset(broken)
