"""Who may hand a host frames that are wrapped as VXLAN: the other hosts, by the wire that they share with it.

The kernel unwraps what comes to any address of the host, by any interface: guests, who reach the address of their
gateway, would get into every VLAN.  What hosts send each other was never routed, and so has its TTL still.
"""

from collections.abc import Iterable
from typing import Any

from climate.compute.network.linux import commands, netlink
from climate.compute.network.render.validation import interface

WAY, PORT, TTL = "vxlan", 4789, 255

_TABLE = "inet climate-vxlan"
_NUMBER = "@th,96,24"
"""Where a VXLAN's number is in a packet, behind the head of UDP."""


def text(ways_in: Iterable[tuple[int, str]]) -> str:
    """For `nft -f`: for each VXLAN, the one interface by which it comes; others' VXLANs are let be."""
    rules = [
        f"udp dport {PORT} {_NUMBER} {number} {condition} drop"
        for number, wire in ways_in
        for condition in (f'iifname != "{interface(wire)}"', f"ip ttl != {TTL}")
    ]
    gone = f"add table {_TABLE}\ndelete table {_TABLE}\n"
    hook = "type filter hook input priority -10; policy accept;"
    body = "\n".join(f"        {line}" for line in [hook, *rules])
    return f"{gone}table {_TABLE} {{\n    chain input {{\n{body}\n    }}\n}}\n" if rules else gone


def guard(ip: Any, more: Iterable[tuple[int, str]] = ()) -> None:
    """Let nothing else into the VXLANs that are ours in this thread's namespace, and into `more`."""
    names = {one.index: one for one in netlink.devices(ip).values()}
    marks = [one.mark.words for one in names.values() if one.ours and one.kind == "vxlan" and one.mark is not None]
    there = {(int(number), names[int(trunk)].name) for _, number, trunk in marks if int(trunk) in names}
    commands.run(None, ("nft", "-f", "-"), text=text(sorted(there | set(more))))
