"""What a guest says is let through when it is its own to say, and not otherwise."""

from dataclasses import replace
from ipaddress import IPv4Network, IPv6Address

import pytest

from climate.compute.network.driver import Link
from climate.compute.network.linux import netlink
from tests.netlab import frames
from tests.netlab.frames import ARP, ICMPV6, IPV4, IPV6, RARP, arp, bootp, ether, icmpv6, ipv4, ipv6, rarp, udp
from tests.netlab.guests import Guest, guest, said
from tests.netlab.hosts import On, on

__all__ = ["on"]

pytestmark = pytest.mark.netlab("nft", "ping")

NET = Link("net", "br100")
MAC, ADDRESS, FOREIGN, FOREIGN_MAC = "02:16:3e:00:00:01", "10.0.0.2", "10.0.0.3", "02:16:3e:00:00:02"
ADDRESS_V6 = "fd00::16:3eff:fe00:1"
LOCAL, FOREIGN_LOCAL = str(netlink.link_local(MAC)), str(netlink.link_local(FOREIGN_MAC))
SOLICIT_ROUTER, ADVERTISE_ROUTER, SOLICIT, ADVERTISE, REDIRECT = range(133, 138)


@pytest.fixture
def pair(on: On) -> tuple[Guest, Guest]:
    """Two guests on one bridge, of which the first has an address of each version."""
    on("c1").ensure(NET)
    one, two = guest(NET, f"{ADDRESS}/24", number=1), guest(NET, f"{FOREIGN}/24", number=2)
    one = one.with_addresses(*one.plug.addresses, IPv6Address(ADDRESS_V6))
    for each in (one, two):
        on("c1").plug(each.plug)
    return one, two


def mine(kind: int, payload: bytes) -> bytes:
    return ether(MAC, kind, payload)


OWN = {
    "arp": mine(ARP, arp(MAC, ADDRESS, "arp")),
    "probe": mine(ARP, arp(MAC, "0.0.0.0", "probe", ADDRESS)),
    "announcement": mine(RARP, rarp(MAC, MAC, "announcement")),
    "discover": mine(IPV4, ipv4("0.0.0.0", bootp(MAC, "discover"))),
    "renew": mine(IPV4, ipv4(ADDRESS, bootp(MAC, "renew"))),
    "udp": mine(IPV4, ipv4(ADDRESS, udp(1000, 1000, "udp"))),
    "udp6": mine(IPV6, ipv6(ADDRESS_V6, udp(1000, 1000, "udp6"))),
    "local": mine(IPV6, ipv6(LOCAL, udp(1000, 1000, "local"))),
    "duplicates": mine(IPV6, ipv6("::", icmpv6(SOLICIT, "duplicates", LOCAL), ICMPV6)),
    "router?": mine(IPV6, ipv6("::", icmpv6(SOLICIT_ROUTER, "router?"), ICMPV6)),
    "here": mine(IPV6, ipv6(ADDRESS_V6, icmpv6(ADVERTISE, "here", ADDRESS_V6), ICMPV6)),
}
FORGED = {
    "mac": ether(FOREIGN_MAC, IPV4, ipv4(ADDRESS, udp(1000, 1000, "mac"))),
    "arp-address": mine(ARP, arp(MAC, FOREIGN, "arp-address")),
    "probe-of-another": mine(ARP, arp(MAC, "0.0.0.0", "probe-of-another", FOREIGN)),
    "arp-mac": mine(ARP, arp(FOREIGN_MAC, ADDRESS, "arp-mac")),
    "announcement-of-another": mine(RARP, rarp(FOREIGN_MAC, FOREIGN_MAC, "announcement-of-another")),
    "question-for-another": mine(RARP, rarp(MAC, FOREIGN_MAC, "question-for-another")),
    "rarp-answer": mine(RARP, rarp(MAC, MAC, "rarp-answer", 4)),
    "source": mine(IPV4, ipv4(FOREIGN, udp(1000, 1000, "source"))),
    "none": mine(IPV4, ipv4("0.0.0.0", udp(1000, 1000, "none"))),
    "as-another": mine(IPV4, ipv4("0.0.0.0", bootp(FOREIGN_MAC, "as-another"))),
    "release": mine(IPV4, ipv4(ADDRESS, bootp(FOREIGN_MAC, "release"))),
    "short": mine(IPV4, ipv4(ADDRESS, udp(68, 67, "short"))),
    "offer": mine(IPV4, ipv4(ADDRESS, udp(67, 68, "offer"))),
    "source6": mine(IPV6, ipv6("fd00::1", udp(1000, 1000, "source6"))),
    "local-of-another": mine(IPV6, ipv6(FOREIGN_LOCAL, udp(1000, 1000, "local-of-another"))),
    "offer6": mine(IPV6, ipv6(LOCAL, udp(547, 546, "offer6"))),
    "i-am-the-router": mine(IPV6, ipv6(LOCAL, icmpv6(ADVERTISE_ROUTER, "i-am-the-router"), ICMPV6)),
    "duplicates-of-another": mine(IPV6, ipv6("::", icmpv6(SOLICIT, "duplicates-of-another", FOREIGN_LOCAL), ICMPV6)),
    "redirect": mine(IPV6, ipv6(LOCAL, icmpv6(REDIRECT, "redirect", FOREIGN_LOCAL), ICMPV6)),
    "i-am-another": mine(IPV6, ipv6(ADDRESS_V6, icmpv6(ADVERTISE, "i-am-another", "fd00::1"), ICMPV6)),
    "unspecified": mine(IPV6, ipv6("::", udp(1000, 1000, "unspecified"))),
    "tag": frames.tagged(MAC, 7, IPV4, ipv4(ADDRESS, udp(1000, 1000, "tag"))),
    "strange": mine(0x88CC, b"strange"),
}
LAST = {"last": mine(IPV4, ipv4(ADDRESS, udp(1000, 1000, "last")))}


def test_what_is_its_own_passes(pair: tuple[Guest, Guest]) -> None:
    with pair[0].socket() as sender, pair[1].socket() as receiver:
        assert frames.arrived(OWN | LAST, sender, receiver) == {*OWN, "last"}


def test_what_is_forged_does_not(pair: tuple[Guest, Guest]) -> None:
    with pair[0].socket() as sender, pair[1].socket() as receiver:
        assert frames.arrived(FORGED | LAST, sender, receiver) == {"last"}


def test_a_router_may_speak_for_what_is_behind_it_and_for_nothing_else(on: On, pair: tuple[Guest, Guest]) -> None:
    """As a cloudpipe does for the clients of its VPN."""
    on("c1").plug(replace(pair[0].plug, ranges=(IPv4Network("10.0.0.8/30"),)))
    behind = {
        "client": mine(IPV4, ipv4("10.0.0.9", udp(1000, 1000, "client"))),
        "client-arp": mine(ARP, arp(MAC, "10.0.0.9", "client-arp")),
    }
    beyond = {
        "no-client": mine(IPV4, ipv4("10.0.0.12", udp(1000, 1000, "no-client"))),
        "no-client-arp": mine(ARP, arp(MAC, "10.0.0.12", "no-client-arp")),
    }
    with pair[0].socket() as sender, pair[1].socket() as receiver:
        assert frames.arrived(OWN | FORGED | behind | beyond | LAST, sender, receiver) == {*OWN, *behind, "last"}


def test_all_of_it_would_arrive_if_nothing_held_it_back(pair: tuple[Guest, Guest]) -> None:
    """So that the test before is known to look where it would be seen."""
    said("c1", "nft", "delete", "table", "netdev", pair[0].plug.name)
    with pair[0].socket() as sender, pair[1].socket() as receiver:
        assert frames.arrived(FORGED | LAST, sender, receiver) == {*FORGED, "last"}


def test_without_an_address_it_may_only_ask_for_one(on: On, pair: tuple[Guest, Guest]) -> None:
    on("c1").plug(pair[0].with_addresses().plug)
    with pair[0].socket() as sender, pair[1].socket() as receiver:
        last = {"last": mine(IPV4, ipv4("0.0.0.0", bootp(MAC, "last")))}
        allowed = {"announcement", "discover", "local", "duplicates", "router?", "last"}
        assert frames.arrived(OWN | FORGED | last, sender, receiver) == allowed


def test_an_address_that_is_added_passes_from_then_on_and_one_that_is_removed_no_more(
    on: On, pair: tuple[Guest, Guest]
) -> None:
    one, two = pair
    last = {"last": OWN["local"][: -len("local")] + b"last"}
    changed = one.with_addresses(IPv6Address("fd00::1"))
    on("c1").plug(changed.plug)
    with one.socket() as sender, two.socket() as receiver:
        came = frames.arrived({**OWN, "source6": FORGED["source6"], **last}, sender, receiver)
    assert "source6" in came
    assert not came & {"udp", "udp6", "arp"}
