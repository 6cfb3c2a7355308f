"""Anti-spoofing rules: a guest's interface may only send frames with its own MAC and addresses.

Each interface has an nftables table of its own name, which is replaced and deleted atomically.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address

from climate.compute.network.driver import Plug, is_interface_name
from climate.compute.network.linux import commands, netlink
from climate.compute.network.render import port_filter
from climate.compute.network.render.port_filter import FilterRule

_HOOKS = ("ingress", "egress")
_FROM_TEXT = ("nft", "-f", "-")
_NO_ADDRESS = "0.0.0.0"  # noqa: S104  (what one who has none yet sends from)
_ASKING = "{ nd-router-solicit, mld2-listener-report }"
_CLIENT = "@th,288,48"
"""Offset and length of the client hardware address in a DHCP packet, after the UDP header."""
_RARP, _ASKS_FOR_ADDRESS = "0x8035", "@nh,48,16 3"
"""RARP announcement that QEMU sends after a migration, with the guest's MAC, so that switches learn its port."""
_AT_MOST = "limit rate 5/second burst 50 packets"
"""Rate limit of DHCP requests: dnsmasq starts its script for each, which writes a file."""


Addresses = Sequence[IPv4Address | IPv6Address]


def text(
    name: str,
    mac: str,
    addresses: Addresses,
    ranges: Sequence[IPv4Network] = (),
    rules: Sequence[FilterRule] | None = None,
) -> str:
    """Return the nftables ruleset that replaces the table of one interface.

    A guest without an address may use DHCP with its own MAC, ARP probes and IPv6 duplicate address detection. Probes
    for another guest's address are dropped, because they would block that guest. Its link-local address is the EUI-64
    one. The guest may route the networks in `ranges`. A migrated guest announces itself by RARP with its own MAC.
    `rules`: what its security groups allow, None: all.
    """
    lines = _own_frames(mac, addresses, ranges, "accept" if rules is None else "goto outgoing")
    if rules is None:
        ingress = [f'type filter hook ingress device "{name}" priority 0; policy drop;', *lines]
        return f"{_without(name)}table netdev {name} {{\n{_chain('ingress', ingress)}}}\n"
    chains = {
        "ingress": lines,
        "egress": port_filter.incoming(rules),
        "outgoing": port_filter.outgoing(rules),
        "allowed_out": port_filter.noted(port_filter.EGRESS),
        "allowed_in": port_filter.noted(port_filter.INGRESS),
    }
    return "\n".join([*_emptied(name, chains), *_filled(name, chains), ""])


def _emptied(name: str, chains: Iterable[str]) -> list[str]:
    """Return commands after which a table has these chains without rules.

    The sets stay, so that connections outlive a change of the rules.
    """
    hooks = {chain: f' {{ type filter hook {chain} device "{name}" priority 0; policy drop; }}' for chain in _HOOKS}
    return [
        f"add table netdev {name}",
        *(f"add {_placed(one, name)}" for one in port_filter.sets()),
        *(f"add chain netdev {name} {chain}{hooks.get(chain, '')}" for chain in chains),
        *(f"flush chain netdev {name} {chain}" for chain in chains),
    ]


def _filled(name: str, chains: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"add rule netdev {name} {chain} {line}" for chain, lines in chains.items() for line in lines]


def _placed(definition: str, name: str) -> str:
    """Return the definition of a set with the table that it is in."""
    kind, _, rest = definition.partition(" ")
    return f"{kind} netdev {name} {rest}"


def _own_frames(mac: str, addresses: Addresses, ranges: Sequence[IPv4Network], verdict: str) -> list[str]:
    """Return the rules for frames of a guest; `verdict` is that of its IP packets with an own address."""
    fixed = [str(address) for address in addresses if address.version == 4]
    routed = [*fixed, *(str(one) for one in ranges)]
    own = [netlink.link_local(mac), *(address for address in addresses if isinstance(address, IPv6Address))]
    spoken_for = ", ".join(f"0x{int(one):032x}" for one in own)
    number = f"0x{mac.replace(':', '')}"
    client = f"{_CLIENT} {number}"
    return [
        f"ether saddr != {mac} drop",
        f"ether type {_RARP} {_ASKS_FOR_ADDRESS} @nh,64,48 {number} @nh,144,48 {number} accept",
        "ether type != { ip, arp, ip6 } drop",
        f"ether type arp arp saddr ether != {mac} drop",
        *([f"ether type arp arp saddr ip {{ {', '.join(routed)} }} accept"] if routed else []),
        *([f"ether type arp arp saddr ip {_NO_ADDRESS} arp daddr ip {{ {', '.join(fixed)} }} accept"] if fixed else []),
        "ether type arp drop",
        "meta l4proto udp udp sport { 67, 547 } drop",
        f"ip saddr {{ {', '.join([_NO_ADDRESS, *fixed])} }} udp sport 68 udp dport 67 {client} {_AT_MOST} accept",
        "udp dport 67 drop",
        *([f"ip saddr {{ {', '.join(routed)} }} {verdict}"] if routed else []),
        "icmpv6 type { nd-router-advert, nd-redirect } drop",
        f"icmpv6 type nd-neighbor-advert @th,64,128 != {{ {spoken_for} }} drop",
        f"ip6 saddr :: icmpv6 type nd-neighbor-solicit @th,64,128 {{ {spoken_for} }} accept",
        f"ip6 saddr :: icmpv6 type {_ASKING} accept",
        f"ip6 saddr {{ {', '.join(map(str, own))} }} {verdict}",
    ]


def _chain(name: str, lines: Sequence[str]) -> str:
    body = "\n".join(f"        {line}" for line in lines)
    return f"    chain {name} {{\n{body}\n    }}\n"


def install(plug: Plug) -> None:
    """Install the rules of an interface in this thread's network namespace."""
    commands.run(None, _FROM_TEXT, text=text(plug.name, plug.mac, plug.addresses, plug.ranges, plug.rules))


def take_down(name: str) -> None:
    """Remove the table of an interface."""
    commands.run(None, _FROM_TEXT, text=_without(name))


def standing() -> frozenset[str]:
    """Return the names of interfaces that have a table, whether or not the interface exists."""
    listed = json.loads(commands.run(None, ("nft", "-j", "list", "tables", "netdev")) or "{}").get("nftables", [])
    names = (entry["table"]["name"] for entry in listed if "table" in entry)
    return frozenset(name for name in names if is_interface_name(name))


def _without(name: str) -> str:
    """Return commands that delete a table whether or not it exists."""
    return f"add table netdev {name}\ndelete table netdev {name}\n"
