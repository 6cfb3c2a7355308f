"""Address translation of a host as one nftables table, replaced atomically.

Floating addresses are elements of two maps, so the cost per packet does not depend on their number. Forwarding rules
are the same as with iptables (nat_iptables.py).
"""

from collections.abc import Iterable

from climate.compute.network.driver import Nat
from climate.compute.network.render.interface_names import interface
from climate.compute.network.render.nat_common import METADATA, METADATA_PORT, VPN_PORT, metadata_target, routed

FAMILY, TABLE = "inet", "climate"

CLEARED = f"add table {FAMILY} {TABLE}\ndelete table {FAMILY} {TABLE}\n"
"""Commands that delete the table whether or not it exists."""


def ruleset(nat: Nat) -> str:
    """Return the table as one transaction."""
    parts = [*_values(nat), *_inwards(nat), *_outwards(nat), *_WALLS, *_bridged(nat), *_host(nat)]
    return f"{CLEARED}table {FAMILY} {TABLE} {{\n{''.join(f'  {line}{chr(10)}' for line in parts)}}}\n"


def _values(nat: Nat) -> list[str]:
    inwards = {str(forward.floating): str(forward.fixed) for forward in nat.forwards}
    outwards: dict[str, str] = {}
    for forward in nat.forwards:
        outwards.setdefault(str(forward.fixed), str(forward.floating))
    return [
        *_collection("map fip_in", "ipv4_addr : ipv4_addr", (f"{one} : {other}" for one, other in inwards.items())),
        *_collection("map fip_out", "ipv4_addr : ipv4_addr", (f"{one} : {other}" for one, other in outwards.items())),
        *_collection("set bridges", "ifname", (f'"{interface(bridge)}"' for bridge in nat.bridges)),
        *_collection("set routed", "ifname . ifname", (f'"{one}" . "{other}"' for one, other in routed(nat))),
    ]


def _collection(name: str, kind: str, elements: Iterable[str]) -> list[str]:
    held = ", ".join(elements)
    return [f"{name} {{", f"  type {kind}", *([f"  elements = {{ {held} }}"] if held else []), "}"]


def _inwards(nat: Nat) -> list[str]:
    target = metadata_target(nat)
    metadata = [f"  ip daddr {METADATA} tcp dport {METADATA_PORT} dnat ip to {target}"] if target else []
    rules = [
        *(f"  ip daddr {vpn.public} udp dport {vpn.port} dnat ip to {vpn.private}:{VPN_PORT}" for vpn in nat.vpns),
        "  dnat ip to ip daddr map @fip_in",
    ]
    return [
        *("chain prerouting {", "  type nat hook prerouting priority -100; policy accept;", *metadata, *rules, "}"),
        *("chain output {", "  type nat hook output priority -100; policy accept;", *rules, "}"),
    ]


def _outwards(nat: Nat) -> list[str]:
    own = nat.fixed_range
    kept = [f"  ip saddr {own} ip daddr {nat.kept} accept"] if nat.kept is not None else []
    target = "masquerade" if nat.source is None else f"snat ip to {nat.source}"
    outside = f'  ip saddr {own} oifname "{interface(nat.interface)}" {target}' if nat.interface is not None else None
    return [
        "chain postrouting {",
        "  type nat hook postrouting priority 100; policy accept;",
        # Traffic from a server to a floating address of its own network returns through this host.
        f"  ip saddr {own} ip daddr {own} ct status dnat masquerade",
        *kept,
        f"  ip saddr {own} ip daddr {own} accept",
        "  snat ip to ip saddr map @fip_out",
        *([outside] if outside else []),
        "}",
    ]


_WALLS = (
    "chain forward {",
    "  type filter hook forward priority 0; policy accept;",
    "  iifname @bridges jump bridged",
    "  oifname @bridges jump bridged",
    "}",
)


def _bridged(nat: Nat) -> list[str]:
    return [
        "chain bridged {",
        *(f"  ip daddr {vpn.private} udp dport {VPN_PORT} accept" for vpn in nat.vpns),
        "  ct state established,related accept",
        "  ct status dnat accept",
        "  iifname . oifname @routed accept",
        "  iifname @bridges oifname @bridges drop",
        "  iifname @bridges accept",
        *([f"  ip saddr {nat.kept} accept"] if nat.kept is not None else []),
        "  meta nfproto ipv6 accept",
        "  drop",
        "}",
    ]


def _host(nat: Nat) -> list[str]:
    another = "fib daddr type local fib daddr . iif type != local drop"
    return [
        "chain input {",
        "  type filter hook input priority 0; policy accept;",
        "  ct status dnat accept",
        f"  iifname @bridges ip daddr {nat.fixed_range} {another}",
        f"  iifname @bridges meta nfproto ipv6 {another}",
        "}",
    ]
