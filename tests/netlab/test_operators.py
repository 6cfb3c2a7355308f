"""What the operator of a host has made himself, called as climate calls its own things, is left alone."""

from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from climate.compute.errors import NetworkError
from climate.compute.linux import netns
from climate.compute.network.driver import Forward, Link, Nat
from climate.compute.network.linux.driver import LinuxNetwork
from climate.compute.servers.interfaces import vif_plugging
from climate.sandbox.topology import Lab
from tests.compute.recorded_networks import wired_place
from tests.netlab.guests import reaches, said

pytestmark = pytest.mark.netlab("nft")


FLOATING, FIXED = IPv4Address("203.0.113.65"), IPv4Address("10.0.0.3")


@pytest.mark.netlab("iptables", "conntrack")
@pytest.mark.parametrize(("former", "chosen"), [("iptables", "nft"), ("nft", "iptables")])
def test_another_way_to_translate_takes_the_place_of_the_former(
    lab: Lab, tmp_path: Path, former: str, chosen: str
) -> None:
    nat = Nat(IPv4Network("10.0.0.0/8"), interface="eth0", forwards=(Forward(FLOATING, FIXED, "eth0"),))
    hosts = {way: LinuxNetwork(lab.network, tmp_path, nat=way) for way in (former, chosen)}
    said(lab.network, "iptables", "-A", "FORWARD", "-s", "198.51.100.0/24", "-j", "DROP")
    said(lab.network, "nft", "add", "table", "ip", "climate")
    hosts[former].translate(nat)
    hosts[chosen].translate(nat)
    rules = said(lab.network, "iptables-save") + said(lab.network, "ip6tables-save")
    tables = said(lab.network, "nft", "list", "tables")
    assert ("climate-" in rules, "table inet climate\n" in tables) == (chosen == "iptables", chosen == "nft")
    assert "-A FORWARD -s 198.51.100.0/24 -j DROP" in rules
    assert "table ip climate\n" in tables
    assert f"{FLOATING}/32" in said(lab.network, "ip", "address", "show", "eth0")
    hosts[chosen].clear()
    said(lab.network, "nft", "flush", "ruleset")


def test_an_interface_that_has_its_address_by_dhcp_keeps_it_and_its_host_its_network(lab: Lab, tmp_path: Path) -> None:
    host = LinuxNetwork(lab.network, tmp_path)
    lent = ("203.0.113.1/24", "dev", "eth0")
    said(lab.network, "ip", "address", "change", *lent, "valid_lft", "3600", "preferred_lft", "3600")
    with pytest.raises(NetworkError, match=r"eth0 has the temporary address 203.0.113.1/24, as from DHCP"):
        host.ensure(Link("outward", "br-ex", interface="eth0"))
    assert reaches(lab.network, "203.0.113.254")
    said(lab.network, "ip", "address", "change", *lent, "valid_lft", "forever", "preferred_lft", "forever")
    host.remove("outward")


@pytest.fixture
def spaces(lab: Lab) -> Iterator[None]:
    """Two namespaces that begin like a guest's, of which one is that of a guest that is gone."""
    names = ("clg-tools", vif_plugging.netns_of("01234567-0000-4000-8000-000000000000"))
    for name in names:
        netns.create(name)
    yield
    for name in names:
        netns.drop(name)


@pytest.mark.usefixtures("spaces")
def test_a_namespace_that_only_begins_like_a_guests(make_database: Callable[..., str], tmp_path: Path) -> None:
    with wired_place(make_database(), tmp_path) as wired:
        vif_plugging.sweep(wired.compute)
        assert wired.steps.asked.count("drop_netns") == 2, "the other one, by each of both hosts"
