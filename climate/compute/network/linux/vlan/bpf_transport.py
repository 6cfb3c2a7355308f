"""VLAN transport for kernels without 802.1Q interfaces: eBPF programs add and remove the tags."""

import errno
import os
from collections.abc import Callable
from contextlib import closing

from climate.compute.network.driver import Link
from climate.compute.network.linux import netlink
from climate.compute.network.linux.netlink import Device, Mark, Netlink
from climate.compute.network.linux.vlan import bpf_programs, vlan_transport

_INGRESS, _EGRESS = 0xFFFFFFF2, 0xFFFFFFF3
_ALL_FRAMES, _DIRECT_ACTION = 3, 1
_PROMISCUOUS = 0x100
_SIGN = "climate:"


class Bpf:
    """VLAN as a pair of interfaces: one joins the bridge; frames that leave by the other are tagged.

    Frames on the wire are those of 802.1Q. Programs at the trunk are named after their network, so that they can be
    removed later.
    """

    name, overhead = "bpf", 0

    def ensure(self, ip: Netlink, link: Link, trunk: Device) -> Device:
        """Ensure the pair; return the end for the bridge."""
        vlan, name = link.vlan or 0, f"tk{link.vlan}"
        peer = {"ifname": name, "group": netlink.GROUP}
        port = vlan_transport.ensure(ip, link, trunk, self.name, {"kind": "veth", "peer": peer})
        inner = netlink.device(ip, name)
        netlink.mark(ip, inner, Mark(link.network_id))
        netlink.sysctl(f"ipv6/conf/{name}/disable_ipv6", 1)
        netlink.shape(ip, inner, up=True, mtu=trunk.mtu)
        sign = f"{_sign(link.network_id)}{vlan}:{inner.index}:{trunk.index}"
        _attach(ip, inner.index, 1, sign, lambda: bpf_programs.pushing(vlan, trunk.index))
        _attach(ip, trunk.index, vlan, sign, lambda: bpf_programs.popping(vlan, inner.index))
        # Frames for guests have other destination MACs than the trunk's.
        ip.link("set", index=trunk.index, flags=_PROMISCUOUS, change=_PROMISCUOUS)
        return port

    def remove(self, ip: Netlink, network_id: str) -> None:
        """Remove a network's VLAN."""
        for index in [row["index"] for row in ip.get_qdiscs() if row.get_attr("TCA_KIND") == "clsact"]:
            _detach(ip, index, network_id)
        vlan_transport.remove(ip, network_id)


def _sign(network_id: str) -> str:
    return f"{_SIGN}{network_id}:"


def _attach(ip: Netlink, index: int, order: int, sign: str, load: Callable[[], int]) -> None:
    """Attach exactly one program of this order to an interface: the one of that sign."""
    result = _programs(ip, index, _INGRESS)
    if result.get(sign) == order:
        return
    for name in (name for name in result if name.startswith(_SIGN) and result[name] == order):
        _take_off(ip, index, result[name])
    with netlink.tolerating(errno.EEXIST):
        ip.tc("add", "clsact", index)
    with closing(os.fdopen(load(), "rb")) as program:
        words = {"fd": program.fileno(), "name": sign, "flags": _DIRECT_ACTION, "protocol": _ALL_FRAMES}
        ip.tc("add-filter", "bpf", index, parent=_INGRESS, prio=order, **words)


def _detach(ip: Netlink, index: int, network_id: str) -> None:
    result = _programs(ip, index, _INGRESS)
    mine = [order for name, order in result.items() if name.startswith(_sign(network_id))]
    for order in mine:
        _take_off(ip, index, order)
    left = _programs(ip, index, _INGRESS).keys() | _programs(ip, index, _EGRESS).keys()
    if mine and not any(name.startswith(_SIGN) for name in left):
        ip.link("set", index=index, flags=0, change=_PROMISCUOUS)
    if mine and not left:
        ip.tc("del", "clsact", index)


def _take_off(ip: Netlink, index: int, order: int) -> None:
    ip.tc("del-filter", "bpf", index, parent=_INGRESS, prio=order, protocol=_ALL_FRAMES)


def _programs(ip: Netlink, index: int, where: int) -> dict[str, int]:
    """Return the order of each filter at an interface by name; filters other than named programs share
    the empty name.
    """
    rows = (row for row in ip.get_filters(index=index, parent=where) if row.get_attr("TCA_OPTIONS") is not None)
    return {row.get_nested("TCA_OPTIONS", "TCA_BPF_NAME") or "": row["info"] >> 16 for row in rows}
