"""Rules of security groups as nftables text, for the interface of one guest.

They are stateful without connection tracking, which bridges lack on many kernels. Two dynamic sets hold the connections
that rules have allowed, and answers of these pass in the other direction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

INGRESS, EGRESS = "ingress", "egress"

TCP, UDP, ICMP, ICMPV6 = 6, 17, 1, 58
WITH_PORTS = (TCP, UDP, 33, 132, 136)
"""TCP, UDP, DCCP, SCTP and UDP-Lite."""

MOST_FLOWS = 65535
_PORTS = "{ 6, 17, 33, 132, 136 }"
_WAYS = (("4", "ip"), ("6", "ip6"))
_LIFETIMES = (("6", "3h"), ("{ 17, 33, 132, 136 }", "3m"))
"""Protocol -> the time for which a connection is kept after its last packet that a rule allowed."""

_NEIGHBOURS = "icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert, mld2-listener-report } accept"
_ALWAYS_IN = (
    "ether type arp accept",
    # Later fragments have no ports; without the first one they are worth nothing.
    "ip frag-off & 0x1fff != 0 accept",
    "udp sport 67 udp dport 68 accept",
    "icmp type { destination-unreachable, time-exceeded, parameter-problem } accept",
    "icmpv6 type { destination-unreachable, packet-too-big, time-exceeded, parameter-problem } accept",
    "icmpv6 type { nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert, mld-listener-query } accept",
)
CHAINS = ("ingress", "egress", "outgoing", "allowed_out", "allowed_in")


@dataclass(frozen=True, slots=True)
class FilterRule:
    """Traffic that a security group allows."""

    direction: str
    version: int
    """4 or 6."""
    protocol: int | None = None
    """Number of the IP protocol; None: any."""
    first: int | None = None
    """First port, or the type of ICMP; None: any."""
    last: int | None = None
    """Last port, or the code of ICMP; None: any."""
    remotes: tuple[IPv4Network | IPv6Network, ...] | None = None
    """Ranges of the other side; None: any."""


def allows_all(rules: Sequence[FilterRule]) -> bool:
    """Return whether the rules allow all traffic of both versions in both directions."""
    every = {(rule.direction, rule.version) for rule in rules if rule.protocol is None and rule.remotes is None}
    return len(every) == 4


def sets() -> list[str]:
    """Return the sets of a table: allowed connections, and peers of protocols without ports."""
    lines: list[str] = []
    for number, _ in _WAYS:
        kind = f"ipv{number}_addr . ipv{number}_addr . inet_proto"
        options = f"size {MOST_FLOWS}; flags dynamic,timeout; timeout 3m;"
        lines.append(f"set flows{number} {{ type {kind} . inet_service . inet_service; {options} }}")
        lines.append(f"set peers{number} {{ type {kind}; {options} }}")
    return lines


def incoming(rules: Sequence[FilterRule]) -> list[str]:
    """Return the rules for traffic towards the guest."""
    return [*_ALWAYS_IN, *_answers("saddr", "daddr", "sport", "dport"), *_allowing(rules, INGRESS)]


def outgoing(rules: Sequence[FilterRule]) -> list[str]:
    """Return the rules for traffic of the guest that has passed those against spoofing."""
    fragments = "ip frag-off & 0x1fff != 0 accept"
    return [_NEIGHBOURS, fragments, *_answers("daddr", "saddr", "dport", "sport"), *_allowing(rules, EGRESS), "drop"]


def noted(direction: str) -> list[str]:
    """Return the rules that note an allowed connection and accept its packet, also if the sets are full."""
    peer, own, there, here = ("saddr", "daddr", "sport", "dport")
    if direction == EGRESS:
        peer, own, there, here = own, peer, here, there
    lines: list[str] = []
    for number, way in _WAYS:
        pair = f"{way} {peer} . {way} {own} . meta l4proto"
        for protocol, lifetime in _LIFETIMES:
            flow = f"{pair} . th {there} . th {here} timeout {lifetime}"
            lines.append(f"meta protocol {way} meta l4proto {protocol} update @flows{number} {{ {flow} }}")
        lines.append(f"meta protocol {way} meta l4proto != {_PORTS} update @peers{number} {{ {pair} timeout 3m }}")
    return [*lines, "accept"]


def _answers(peer: str, own: str, there: str, here: str) -> list[str]:
    lines: list[str] = []
    for number, way in _WAYS:
        pair = f"{way} {peer} . {way} {own} . meta l4proto"
        echo = "icmp type echo-reply" if way == "ip" else "icmpv6 type echo-reply"
        lines += [
            f"meta l4proto {_PORTS} {pair} . th {there} . th {here} @flows{number} accept",
            f"{echo} {pair} @peers{number} accept",
            f"meta l4proto != {{ {ICMP}, {ICMPV6} }} {pair} @peers{number} accept",
        ]
    return lines


def _allowing(rules: Sequence[FilterRule], direction: str) -> list[str]:
    return [
        f"{_match(rule)} jump allowed_{'in' if direction == INGRESS else 'out'}"
        for rule in rules
        if rule.direction == direction and rule.remotes != ()
    ]


def _match(rule: FilterRule) -> str:
    way = "ip" if rule.version == 4 else "ip6"
    words = [f"meta protocol {way}"]
    if rule.remotes is not None:
        remotes = ", ".join(sorted({str(remote) for remote in rule.remotes}))
        words.append(f"{way} {'saddr' if rule.direction == INGRESS else 'daddr'} {{ {remotes} }}")
    if rule.protocol is not None:
        words.append(f"meta l4proto {rule.protocol}")
        words += _ports(rule)
    return " ".join(words)


def _ports(rule: FilterRule) -> list[str]:
    if rule.first is None:
        return []
    if rule.protocol in (ICMP, ICMPV6):
        name = "icmp" if rule.protocol == ICMP else "icmpv6"
        code = [] if rule.last is None else [f"{name} code {rule.last}"]
        return [f"{name} type {rule.first}", *code]
    return [f"th dport {rule.first}-{rule.last}"]
