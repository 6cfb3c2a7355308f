"""Layer 2 of one host: bridges, VLANs and guests' interfaces, without services."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from ipaddress import IPv6Address
from pathlib import Path
from typing import TypeVar

from climate.compute.errors import NetworkError
from climate.compute.linux import netns
from climate.compute.network.driver import Link, Plug, is_interface_name
from climate.compute.network.linux import atomic_files, bridges, netlink, vifs
from climate.compute.network.linux.netlink import Device, Netlink
from climate.compute.network.linux.vlan.bpf_transport import Bpf
from climate.compute.network.linux.vlan.vlan_transport import Dot1q, Segment, Vxlan, why_not

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

AUTO = "auto"
WAYS: tuple[Segment, ...] = (Dot1q(), Bpf(), Vxlan())
"""VLAN transports, the best first."""


class Layer2:
    """Layer 2 of one namespace. Its methods raise NetworkError.

    State is read from the kernel each time. A lock lets one process of a host change it at a time.
    """

    def __init__(self, namespace: str | None, folder: Path, way: str = AUTO) -> None:
        """Create it. `way`: VLAN transport, the same on all hosts: dot1q, bpf or vxlan; auto: the first that works."""
        self._namespace = namespace
        self._folder = folder
        self._way = way

    @cached_property
    def segment(self) -> Segment:
        """Return the VLAN transport, chosen once by probing the kernel."""
        named = [way for way in WAYS if self._way in (AUTO, way.name)]
        if not named:
            raise NetworkError(
                f"VLAN transport must be {AUTO} or one of {', '.join(way.name for way in WAYS)}, not {self._way}."
            )
        reasons = []
        for way in named:
            reason = why_not(way)
            if reason is None:
                _LOG.info("VLAN transport is %s on %s", way.name, self._namespace or "this host")
                return way
            reasons.append(reason)
        raise NetworkError(f"This host supports no VLAN transport. {'; '.join(reasons)}")

    def mtu(self, link: Link) -> int:
        """Return the MTU of a network here: the requested one, reduced to what the wire and the VLAN overhead allow."""
        return self._inside(f"reading network {link.network_id}", lambda ip: self._room(ip, link))

    def marked(self) -> dict[str, bool]:
        """Return the ids of the networks whose bridge is climate's, and whether this host is their gateway."""
        result = self._inside("reading bridges", netlink.devices).values()
        return {
            one.mark.of: bool(bridges.gateways(one))
            for one in result
            if one.ours and one.kind == "bridge" and one.mark is not None
        }

    def plugs(self) -> frozenset[str]:
        """Return the names of guests' interfaces."""
        return self._inside("reading interfaces", vifs.standing)

    def ensure(self, link: Link) -> None:
        """Create the bridge of a network, attach it, and configure its gateway's addresses."""
        with self._alone():
            self._inside(f"network {link.network_id}", lambda ip: self._ensured(ip, link))

    def link_local(self, link: Link) -> IPv6Address:
        """Return the link-local address of a network's bridge, adding one if needed."""
        doing = f"link-local address of {link.bridge}"
        return self._inside(doing, lambda ip: bridges.link_local(netlink.device(ip, link.bridge)))

    def let_go(self, network_id: str) -> None:
        """Remove the gateway's addresses from a network's bridge."""
        with self._alone():
            self._inside(f"network {network_id}", lambda ip: bridges.let_go(ip, network_id))

    def remove(self, network_id: str) -> None:
        """Remove a network's bridge and VLAN, whatever its transport."""
        with self._alone():
            self._inside(f"network {network_id}", lambda ip: self._removed(ip, network_id))

    def remove_unused(self, network_id: str) -> None:
        """Remove a network's bridge that has no guest's interface, unless it is a gateway."""

        def in_use(ip: Netlink) -> bool:
            devices = netlink.devices(ip).values()
            masters = {device.master for device in devices if is_interface_name(device.name)}
            ours = [
                device for device in devices if device.ours and device.mark is not None and device.mark.of == network_id
            ]
            return any(one.index in masters or bridges.gateways(one) for one in ours if one.kind == "bridge")

        def spared(ip: Netlink) -> None:
            if not in_use(ip):
                self._removed(ip, network_id)

        with self._alone():
            self._inside(f"network {network_id}", spared)

    def plug(self, plug: Plug) -> None:
        """Connect a guest's interface to its network, which was ensured before."""

        def plugged(ip: Netlink) -> None:
            bridge = bridges.existing(ip, plug.link)
            vifs.plug(ip, plug, bridge, self._room(ip, plug.link))

        with self._alone():
            self._inside(f"interface {plug.name}", plugged)

    def guard(self, plug: Plug) -> None:
        """Replace the rules of a guest's interface, if it exists."""
        with self._alone():
            self._inside(f"interface {plug.name}", lambda ip: vifs.guard(ip, plug))

    def unplug(self, name: str) -> None:
        """Remove a guest's interface."""
        with self._alone():
            self._inside(f"interface {name}", lambda ip: vifs.unplug(ip, name))

    def drop_netns(self, name: str) -> None:
        """Remove a guest's namespace."""
        if name == self._namespace:
            raise NetworkError(f"{name} is the network of the host, not of a guest.")
        with netlink.saying(f"namespace {name}"):
            netns.drop(name)

    def _removed(self, ip: Netlink, network_id: str) -> None:
        bridges.remove(ip, network_id)
        for way in WAYS:
            way.remove(ip, network_id)

    def _ensured(self, ip: Netlink, link: Link) -> Device:
        mtu = self._room(ip, link)
        bridge = bridges.ensure(ip, link, mtu)
        if not link.ours:
            return bridge
        if link.interface is not None:
            trunk = netlink.device(ip, link.interface)
            if link.vlan is None:
                bridges.attach(ip, bridge, trunk)
            else:
                netlink.shape(ip, trunk, up=True)
                port = self.segment.ensure(ip, link, trunk)
                netlink.shape(ip, port, up=True, mtu=mtu, master=bridge.index)
        bridges.ensure_gateway(ip, bridge, link)
        return bridge

    def _room(self, ip: Netlink, link: Link) -> int:
        if link.interface is None or not link.ours:
            return link.mtu
        overhead = 0 if link.vlan is None else self.segment.overhead
        return min(link.mtu, netlink.device(ip, link.interface).mtu - overhead)

    def _inside(self, doing: str, work: Callable[[Netlink], T]) -> T:
        return netlink.inside(self._namespace, doing, work)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with ExitStack() as stack:
            with netlink.saying(f"locking {self._folder}"):
                stack.enter_context(atomic_files.alone(self._folder))
            yield
