"""The ways for the VLAN of a network to reach its other hosts: 802.1Q interfaces, tags put on by eBPF, VXLAN.

All hosts have to use the same.  Which of them a kernel can do is found by trying.
"""

from typing import Any, Protocol

from climate.compute.errors import NetworkError
from climate.compute.linux import netns
from climate.compute.network.driver import Link
from climate.compute.network.linux import netlink, vxlan_guard
from climate.compute.network.linux.netlink import Device, Mark


class Segment(Protocol):
    """One of the ways."""

    @property
    def name(self) -> str:
        """What settings call it."""

    @property
    def overhead(self) -> int:
        """Bytes of each frame on the wire that it takes for itself."""

    def ensure(self, ip: Any, link: Link, trunk: Device) -> Device:
        """The interface that goes into the network's bridge; its frames are on VLAN `link.vlan` of `trunk`."""

    def remove(self, ip: Any, network_id: str) -> None:
        """Leave nothing of a network's VLAN."""


class Dot1q:
    """An interface of the kernel's own for a VLAN."""

    name, overhead = "dot1q", 0

    def ensure(self, ip: Any, link: Link, trunk: Device) -> Device:
        """The VLAN's interface (cloud.md D.8, ensure_vlan)."""
        return ensure(ip, link, trunk, self.name, {"kind": "vlan", "link": trunk.index, "vlan_id": link.vlan})

    def remove(self, ip: Any, network_id: str) -> None:
        """Leave nothing of a network's VLAN."""
        remove(ip, network_id)


class Vxlan:
    """A VXLAN whose number is the VLAN's, between the addresses of the hosts' trunks."""

    name, overhead = vxlan_guard.WAY, 50

    def ensure(self, ip: Any, link: Link, trunk: Device) -> Device:
        """The VXLAN's interface; hosts find each other by a multicast group of the VLAN's."""
        if trunk.master is not None:
            raise NetworkError(
                f"{trunk.name} is in a bridge, whose guests are not to be on the wire of the VXLANs: have another"
                " interface for VLANs, or for flat networks."
            )
        vlan = link.vlan or 0
        words = {
            "vxlan_id": vlan,
            "vxlan_link": trunk.index,
            "vxlan_group": f"239.1.{vlan >> 8}.{vlan & 0xFF}",
            "vxlan_port": vxlan_guard.PORT,
            "vxlan_ttl": vxlan_guard.TTL,
            "vxlan_learning": 1,
        }
        vxlan_guard.guard(ip, [(vlan, trunk.name)])
        return ensure(ip, link, trunk, self.name, {"kind": "vxlan", **words})

    def remove(self, ip: Any, network_id: str) -> None:
        """Leave nothing of a network's VLAN."""
        remove(ip, network_id)
        vxlan_guard.guard(ip)


def why_not(way: Segment) -> str | None:
    """What the kernel has against a way; None: it can go it.  Tried in a namespace that is gone afterwards."""

    def tried(ip: Any) -> None:
        ip.link("add", ifname="trunk", kind="veth", peer={"ifname": "wire"})
        way.ensure(ip, Link("trial", "bridge", "trunk", vlan=100), netlink.device(ip, "trunk"))

    try:
        netns.apart(lambda: netlink.inside(None, f"VLANs by {way.name}", tried))
    except NetworkError as error:
        return str(error)
    return None


def ensure(ip: Any, link: Link, trunk: Device, way: str, words: dict[str, Any]) -> Device:
    """An interface `vlan<number>` made of these words, that goes into the bridge; anew when it was made otherwise."""
    name = f"vlan{link.vlan}"
    wanted = Mark(link.network_id, (way, str(link.vlan), str(trunk.index)))
    found = netlink.find(ip, name)
    if found and not found.ours:
        raise NetworkError(f"{name} is there already, and climate has not made it: it is left as it is.")
    if found and found.mark and found.mark.of != link.network_id:
        raise NetworkError(f"VLAN {link.vlan} is that of network {found.mark.of} on this host.")
    if found and found.mark == wanted:
        return found
    if found:
        netlink.delete(ip, found)
    ip.link("add", ifname=name, group=netlink.GROUP, **words)
    netlink.mark(ip, netlink.device(ip, name), wanted)
    netlink.sysctl(f"ipv6/conf/{name}/disable_ipv6", 1)
    return netlink.device(ip, name)


def remove(ip: Any, network_id: str) -> None:
    """Delete the interfaces that carry a network's VLAN."""
    for device in netlink.devices(ip).values():
        if device.ours and device.kind != "bridge" and device.mark and device.mark.of == network_id:
            netlink.delete(ip, device)
