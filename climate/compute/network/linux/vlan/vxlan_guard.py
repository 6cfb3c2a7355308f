"""Filter for VXLAN frames: only other hosts on the shared wire may send them.

The kernel unwraps VXLAN that arrives at any address by any interface. Guests reach the address of their gateway, and
could enter every VLAN. Frames between hosts are never routed, so their TTL is still the initial one.
"""

from collections.abc import Iterable

from climate.compute.network.linux import commands, netlink
from climate.compute.network.linux.netlink import Netlink
from climate.compute.network.render.interface_names import interface

WAY, PORT, TTL = "vxlan", 4789, 255

_TABLE = "inet climate-vxlan"
_NUMBER = "@th,96,24"
"""Offset and length of a VXLAN's number in a packet, after the UDP header."""


def text(ways_in: Iterable[tuple[int, str]]) -> str:
    """Return the nftables ruleset with the one input interface of each VXLAN; foreign VXLANs are not filtered."""
    rules = [
        f"udp dport {PORT} {_NUMBER} {number} {condition} drop"
        for number, wire in ways_in
        for condition in (f'iifname != "{interface(wire)}"', f"ip ttl != {TTL}")
    ]
    gone = f"add table {_TABLE}\ndelete table {_TABLE}\n"
    hook = "type filter hook input priority -10; policy accept;"
    body = "\n".join(f"        {line}" for line in [hook, *rules])
    return f"{gone}table {_TABLE} {{\n    chain input {{\n{body}\n    }}\n}}\n" if rules else gone


def guard(ip: Netlink, more: Iterable[tuple[int, str]] = ()) -> None:
    """Filter the VXLANs of climate in this thread's namespace, and `more`."""
    names = {one.index: one for one in netlink.devices(ip).values()}
    marks = [one.mark.words for one in names.values() if one.ours and one.kind == "vxlan" and one.mark is not None]
    there = {(int(number), names[int(trunk)].name) for _, number, trunk in marks if int(trunk) in names}
    commands.run(None, ("nft", "-f", "-"), text=text(sorted(there | set(more))))
