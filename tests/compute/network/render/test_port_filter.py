"""Rules of security groups as text; tests/netlab/test_port_filters.py has what they do to traffic."""

from ipaddress import IPv4Network, IPv6Network

from climate.compute.network.render import port_filter
from climate.compute.network.render.port_filter import EGRESS, ICMP, ICMPV6, INGRESS, TCP, FilterRule

NEAR = (IPv4Network("10.0.0.0/8"), IPv4Network("192.0.2.7/32"))


def test_each_kind_of_rule_has_its_words() -> None:
    rules = (
        FilterRule(INGRESS, 4, TCP, 22, 23, NEAR),
        FilterRule(INGRESS, 4, ICMP, 8),
        FilterRule(INGRESS, 6, ICMPV6, 128, 0, (IPv6Network("2001:db8::/64"),)),
        FilterRule(INGRESS, 4, 50),
        FilterRule(INGRESS, 6, TCP, 80, 80, ()),
        FilterRule(EGRESS, 6),
    )
    assert port_filter.incoming(rules)[-4:] == [
        "meta protocol ip ip saddr { 10.0.0.0/8, 192.0.2.7/32 } meta l4proto 6 th dport 22-23 jump allowed_in",
        "meta protocol ip meta l4proto 1 icmp type 8 jump allowed_in",
        "meta protocol ip6 ip6 saddr { 2001:db8::/64 } meta l4proto 58 icmpv6 type 128 icmpv6 code 0 jump allowed_in",
        "meta protocol ip meta l4proto 50 jump allowed_in",
    ]
    assert port_filter.outgoing(rules)[-2:] == ["meta protocol ip6 jump allowed_out", "drop"]


def test_all_is_allowed_by_rules_without_conditions_in_all_four_ways() -> None:
    four = [FilterRule(direction, version) for direction in (INGRESS, EGRESS) for version in (4, 6)]
    assert port_filter.allows_all([*four, FilterRule(INGRESS, 4, TCP, 22, 22)])
    for missing in four:
        others = [rule for rule in four if rule != missing]
        assert not port_filter.allows_all([*others, FilterRule(missing.direction, missing.version, TCP)])
        assert not port_filter.allows_all([*others, FilterRule(missing.direction, missing.version, remotes=NEAR)])


def test_an_allowed_connection_is_noted_with_its_peer_first() -> None:
    incoming, outgoing = port_filter.noted(INGRESS), port_filter.noted(EGRESS)
    assert "@flows4 { ip saddr . ip daddr . meta l4proto . th sport . th dport timeout 3h }" in incoming[0]
    assert "@flows4 { ip daddr . ip saddr . meta l4proto . th dport . th sport timeout 3h }" in outgoing[0]
    assert incoming[-1] == outgoing[-1] == "accept"
