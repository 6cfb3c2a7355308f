"""Address translation of a host as chains of iptables, laid out as in Nova's linux_net.

In addition, traffic between bridges of different groups is dropped. Traffic from outside reaches only floating
addresses, cloudpipe servers, and servers that keep their own addresses for the source.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from climate.compute.network.driver import Nat
from climate.compute.network.render.interface_names import interface
from climate.compute.network.render.iptables import FILTER_TOP, NAT_BOTTOM, Table
from climate.compute.network.render.nat_common import METADATA, METADATA_PORT, VPN_PORT, metadata_target, routed

BINARY = "climate"

_ESTABLISHED = "-m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT"
_TRANSLATED = "-m conntrack --ctstate DNAT"
_OF_ANOTHER_BRIDGE = "-m addrtype --dst-type LOCAL -m addrtype ! --dst-type LOCAL --limit-iface-in -j DROP"


@dataclass(frozen=True, slots=True)
class Tables:
    """Tables of a host, by name."""

    v4: dict[str, Table]
    v6: dict[str, Table]


def tables(nat: Nat, binary: str = BINARY) -> Tables:
    """Return the chains of the translation."""
    v4, v6 = _filter(binary), _filter(binary)
    for vpn in nat.vpns:
        v4.add("FORWARD", f"-d {vpn.private} -p udp --dport {VPN_PORT} -j ACCEPT")
    for table in (v4, v6):
        _walls(table, nat, v6=table is v6)
    return Tables({"filter": v4, "nat": _nat(binary, nat)}, {"filter": v6})


def none(binary: str = BINARY) -> Tables:
    """Return tables without any rule of the program."""
    return Tables({"filter": Table(binary), "nat": Table(binary)}, {"filter": Table(binary)})


def _filter(binary: str) -> Table:
    table = Table(binary)
    table.add_chain(FILTER_TOP, wrap=False)
    table.add_chain("local")
    table.add(FILTER_TOP, "-j $local", wrap=False)
    for chain in ("FORWARD", "OUTPUT"):
        table.add(chain, f"-j {FILTER_TOP}", wrap=False, top=True)
    _built_in(table, ("INPUT", "OUTPUT", "FORWARD"))
    return table


def _built_in(table: Table, chains: Iterable[str]) -> None:
    for chain in chains:
        table.add_chain(chain)
        table.add(chain, f"-j ${chain}", wrap=False)


def _walls(table: Table, nat: Nat, *, v6: bool) -> None:
    """Add the rules for forwarded traffic, and for guests' traffic to the host itself."""
    bridges = [interface(bridge) for bridge in nat.bridges]
    table.add_chain("bridged")
    table.add_chain("apart")
    for bridge in bridges:
        table.add("INPUT", f"-i {bridge} {_TRANSLATED} -j RETURN")
        table.add("INPUT", f"-i {bridge} {'' if v6 else f'-d {nat.fixed_range} '}{_OF_ANOTHER_BRIDGE}")
        table.add("FORWARD", f"-i {bridge} -j $bridged")
        table.add("FORWARD", f"-o {bridge} -j $bridged")
        table.add("apart", f"-o {bridge} -j DROP")
    table.add("bridged", _ESTABLISHED)
    table.add("bridged", f"{_TRANSLATED} -j ACCEPT")
    for one, other in routed(nat):
        table.add("bridged", f"-i {one} -o {other} -j ACCEPT")
    for bridge in bridges:
        table.add("bridged", f"-i {bridge} -j $apart")
        table.add("bridged", f"--in-interface {bridge} -j ACCEPT")
    if nat.kept is not None and not v6:
        table.add("bridged", f"-s {nat.kept} -j ACCEPT")
    table.add("bridged", "-j ACCEPT" if v6 else "-j DROP")


def _nat(binary: str, nat: Nat) -> Table:
    table = Table(binary)
    table.add_chain(NAT_BOTTOM, wrap=False)
    _built_in(table, ("PREROUTING", "OUTPUT", "POSTROUTING"))
    table.add("POSTROUTING", f"-j {NAT_BOTTOM}", wrap=False)
    table.add_chain("snat")
    table.add_chain("floating-snat")
    table.add(NAT_BOTTOM, "-j $snat", wrap=False)
    table.add("snat", "-j $floating-snat")
    _outwards(table, nat)
    _inwards(table, nat)
    return table


def _outwards(table: Table, nat: Nat) -> None:
    own = nat.fixed_range
    # Traffic from a server to a floating address of its own network returns through this host.
    table.add("POSTROUTING", f"-s {own} -d {own} {_TRANSLATED} -j MASQUERADE")
    if nat.kept is not None:
        table.add("POSTROUTING", f"-s {own} -d {nat.kept} -j ACCEPT")
    table.add("POSTROUTING", f"-s {own} -d {own} -j ACCEPT")
    if nat.interface is not None:
        target = "MASQUERADE" if nat.source is None else f"SNAT --to-source {nat.source}"
        table.add("snat", f"-s {own} -o {interface(nat.interface)} -j {target}")


def _inwards(table: Table, nat: Nat) -> None:
    if (target := metadata_target(nat)) is not None:
        wanted = f"-s 0.0.0.0/0 -d {METADATA}/32 -p tcp -m tcp --dport {METADATA_PORT}"
        table.add("PREROUTING", f"{wanted} -j DNAT --to-destination {target}")
    for vpn in nat.vpns:
        for chain in ("PREROUTING", "OUTPUT"):
            wanted = f"-d {vpn.public} -p udp --dport {vpn.port}"
            table.add(chain, f"{wanted} -j DNAT --to {vpn.private}:{VPN_PORT}")
    for forward in nat.forwards:
        for chain in ("PREROUTING", "OUTPUT"):
            table.add(chain, f"-d {forward.floating} -j DNAT --to {forward.fixed}")
        table.add("floating-snat", f"-s {forward.fixed} -j SNAT --to {forward.floating}")
