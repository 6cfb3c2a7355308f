"""What may come from a guest's interface: frames of its own MAC and addresses, and nothing that only a network says.

Each interface has an nftables table of its name, which is replaced and deleted as one.
"""

import json
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address

from climate.compute.network.driver import is_interface_name
from climate.compute.network.linux import commands, netlink

_FROM_TEXT = ("nft", "-f", "-")
_NO_ADDRESS = "0.0.0.0"  # noqa: S104  (what one who has none yet sends from)
_ASKING = "{ nd-router-solicit, mld2-listener-report }"
_CLIENT = "@th,288,48"
"""Where a client's hardware address is in a packet of DHCP, behind the head of UDP."""
_RARP, _ASKS_FOR_ADDRESS = "0x8035", "@nh,48,16 3"
"""Source: QEMU asks this of nobody in a guest's name, with its MAC twice, so that switches learn where it is by now."""
_AT_MOST = "limit rate 5/second burst 50 packets"
"""Questions to DHCP servers: each is answered by a program that is started for it, and a file."""


Addresses = Sequence[IPv4Address | IPv6Address]


def text(name: str, mac: str, addresses: Addresses, ranges: Sequence[IPv4Network] = ()) -> str:
    """For `nft -f`: the table of one interface, in place of the one it had.

    Without an address of its own a guest may ask for one (DHCP), in its own name; before it takes one it may ask
    whether that is in use (ARP probes, IPv6's search for duplicates).  To ask that of an address that is another's
    would keep the other from taking it.  Its link-local address is the one made of its MAC.  What is in `ranges` it
    answers for, as a router does.  A machine that has moved says so by RARP, in its own name.
    """
    fixed = [str(one) for one in addresses if one.version == 4]
    routed = [*fixed, *(str(one) for one in ranges)]
    own = [netlink.link_local(mac), *(one for one in addresses if isinstance(one, IPv6Address))]
    spoken_for = ", ".join(f"0x{int(one):032x}" for one in own)
    number = f"0x{mac.replace(':', '')}"
    client = f"{_CLIENT} {number}"
    rules = [
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
        *([f"ip saddr {{ {', '.join(routed)} }} accept"] if routed else []),
        "icmpv6 type { nd-router-advert, nd-redirect } drop",
        f"icmpv6 type nd-neighbor-advert @th,64,128 != {{ {spoken_for} }} drop",
        f"ip6 saddr :: icmpv6 type nd-neighbor-solicit @th,64,128 {{ {spoken_for} }} accept",
        f"ip6 saddr :: icmpv6 type {_ASKING} accept",
        f"ip6 saddr {{ {', '.join(map(str, own))} }} accept",
    ]
    hook = f'type filter hook ingress device "{name}" priority 0; policy drop;'
    body = "\n".join(f"        {line}" for line in [hook, *rules])
    return f"{_without(name)}table netdev {name} {{\n    chain ingress {{\n{body}\n    }}\n}}\n"


def put_up(name: str, mac: str, addresses: Addresses, ranges: Sequence[IPv4Network] = ()) -> None:
    """Let nothing else pass from an interface of this thread's namespace."""
    commands.run(None, _FROM_TEXT, text=text(name, mac, addresses, ranges))


def take_down(name: str) -> None:
    """Leave nothing of an interface's table."""
    commands.run(None, _FROM_TEXT, text=_without(name))


def standing() -> frozenset[str]:
    """Names of interfaces that there are tables for, whether or not the interfaces are still there."""
    listed = json.loads(commands.run(None, ("nft", "-j", "list", "tables", "netdev")) or "{}").get("nftables", [])
    names = (entry["table"]["name"] for entry in listed if "table" in entry)
    return frozenset(name for name in names if is_interface_name(name))


def _without(name: str) -> str:
    """That there be no such table, whether there is one or not."""
    return f"add table netdev {name}\ndelete table netdev {name}\n"
