"""What the drivers of layer 2 decide before they say anything to the kernel."""

from ipaddress import IPv4Address, IPv4Interface, IPv6Address

import pytest

from climate.compute.network.linux import anti_spoofing, bridges, netlink
from climate.compute.network.linux.netlink import Mark

OLD, GATEWAY, THIRD = (IPv4Interface(f"192.168.{n}.1/24") for n in (0, 1, 2))


@pytest.mark.parametrize(
    ("held", "removed", "added"),
    [
        ([], [], [GATEWAY]),
        ([OLD], [OLD], [GATEWAY, OLD]),
        ([GATEWAY], [], []),
        ([GATEWAY, OLD], [], []),
        ([OLD, GATEWAY], [OLD, GATEWAY], [GATEWAY, OLD]),
        ([OLD, THIRD], [OLD, THIRD], [GATEWAY, OLD, THIRD]),
    ],
)
def test_the_gateway_comes_first(
    held: list[IPv4Interface], removed: list[IPv4Interface], added: list[IPv4Interface]
) -> None:
    """G.5 NW-26."""
    assert bridges.in_order(held, GATEWAY) == (removed, added)


@pytest.mark.parametrize("mark", [Mark("net"), Mark("net", ("veth", "02:16:3e:00:00:01"))])
def test_a_mark_is_read_as_it_was_written(mark: Mark) -> None:
    assert Mark.read(str(mark)) == mark


@pytest.mark.parametrize("alias", [None, "", "uplink to the lab", "climate", "Climate:net"])
def test_an_alias_of_somebody_else_is_no_mark(alias: str | None) -> None:
    assert Mark.read(alias) is None


def test_a_link_local_address_follows_from_the_mac() -> None:
    """RFC 4291, appendix A; the MAC is that of G.5 NW-14."""
    assert netlink.link_local("02:16:3e:33:44:55") == IPv6Address("fe80::16:3eff:fe33:4455")


def test_a_guard_replaces_the_one_before_in_one_transaction() -> None:
    lines = anti_spoofing.text("clp-01234567", "02:16:3e:33:44:55", (IPv4Address("10.0.0.3"),)).splitlines()
    assert lines[:3] == [
        "add table netdev clp-01234567",
        "delete table netdev clp-01234567",
        "table netdev clp-01234567 {",
    ]
    assert 'type filter hook ingress device "clp-01234567" priority 0; policy drop;' in [line.strip() for line in lines]
    assert [line.strip() for line in lines if line.strip().endswith("accept")] == [
        "ether type 0x8035 @nh,48,16 3 @nh,64,48 0x02163e334455 @nh,144,48 0x02163e334455 accept",
        "ether type arp arp saddr ip { 10.0.0.3 } accept",
        "ether type arp arp saddr ip 0.0.0.0 arp daddr ip { 10.0.0.3 } accept",
        "ip saddr { 0.0.0.0, 10.0.0.3 } udp sport 68 udp dport 67 @th,288,48 0x02163e334455"
        " limit rate 5/second burst 50 packets accept",
        "ip saddr { 10.0.0.3 } accept",
        "ip6 saddr :: icmpv6 type nd-neighbor-solicit @th,64,128 { 0xfe8000000000000000163efffe334455 } accept",
        "ip6 saddr :: icmpv6 type { nd-router-solicit, mld2-listener-report } accept",
        "ip6 saddr { fe80::16:3eff:fe33:4455 } accept",
    ]
