"""VLAN transports between hosts: 802.1Q interfaces, tags by eBPF, or VXLAN.

All hosts must use the same one. The kernel's support is detected by probing.
"""

from typing import Protocol

from climate.compute.errors import NetworkError
from climate.compute.linux import netns
from climate.compute.network.driver import Link
from climate.compute.network.linux import netlink
from climate.compute.network.linux.netlink import Device, Mark, Netlink
from climate.compute.network.linux.vlan import vxlan_guard


class Segment(Protocol):
    """VLAN transport."""

    @property
    def name(self) -> str:
        """Return the name used in settings."""

    @property
    def overhead(self) -> int:
        """Return the bytes that it adds to each frame on the wire."""

    def ensure(self, ip: Netlink, link: Link, trunk: Device) -> Device:
        """Ensure the interface for the network's bridge; its frames are on VLAN `link.vlan` of `trunk`."""

    def remove(self, ip: Netlink, network_id: str) -> None:
        """Remove a network's VLAN."""


class Dot1q:
    """Kernel interface for an 802.1Q VLAN."""

    name, overhead = "dot1q", 0

    def ensure(self, ip: Netlink, link: Link, trunk: Device) -> Device:
        """Ensure the VLAN's interface, as Nova's ensure_vlan does."""
        return ensure(ip, link, trunk, self.name, {"kind": "vlan", "link": trunk.index, "vlan_id": link.vlan})

    def remove(self, ip: Netlink, network_id: str) -> None:
        """Remove a network's VLAN."""
        remove(ip, network_id)


class Vxlan:
    """VXLAN with the VLAN's number, between the addresses of the hosts' trunks."""

    name, overhead = vxlan_guard.WAY, 50

    def ensure(self, ip: Netlink, link: Link, trunk: Device) -> Device:
        """Ensure the VXLAN's interface; hosts find each other by a multicast group per VLAN."""
        if trunk.master is not None:
            raise NetworkError(
                f"{trunk.name} is in a bridge, so guests could reach the wire of the VXLANs: choose another"
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

    def remove(self, ip: Netlink, network_id: str) -> None:
        """Remove a network's VLAN."""
        remove(ip, network_id)
        vxlan_guard.guard(ip)


def why_not(way: Segment) -> str | None:
    """Return why the kernel does not support a transport, or None; probed in a temporary namespace."""

    def tried(ip: Netlink) -> None:
        ip.link("add", ifname="trunk", kind="veth", peer={"ifname": "wire"})
        way.ensure(ip, Link("trial", "bridge", "trunk", vlan=100), netlink.device(ip, "trunk"))

    try:
        netns.apart(lambda: netlink.inside(None, f"VLANs by {way.name}", tried))
    except NetworkError as error:
        return str(error)
    return None


def ensure(ip: Netlink, link: Link, trunk: Device, way: str, words: dict[str, object]) -> Device:
    """Ensure an interface `vlan<number>` with these attributes for the bridge; recreate it if they differ."""
    name = f"vlan{link.vlan}"
    wanted = Mark(link.network_id, (way, str(link.vlan), str(trunk.index)))
    result = netlink.find(ip, name)
    if result and not result.ours:
        raise NetworkError(f"{name} exists already and was not created by climate: delete or rename it.")
    if result and result.mark and result.mark.of != link.network_id:
        raise NetworkError(f"VLAN {link.vlan} belongs to network {result.mark.of} on this host.")
    if result and result.mark == wanted:
        return result
    if result:
        netlink.delete(ip, result)
    ip.link("add", ifname=name, group=netlink.GROUP, **words)
    netlink.mark(ip, netlink.device(ip, name), wanted)
    netlink.sysctl(f"ipv6/conf/{name}/disable_ipv6", 1)
    return netlink.device(ip, name)


def remove(ip: Netlink, network_id: str) -> None:
    """Delete the interfaces that carry a network's VLAN."""
    for device in netlink.devices(ip).values():
        if device.ours and device.kind != "bridge" and device.mark and device.mark.of == network_id:
            netlink.delete(ip, device)
