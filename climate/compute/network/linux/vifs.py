"""Guests' interfaces: veth pairs that end in a guest's namespace, and taps."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_interface

from climate.compute.errors import NetworkError
from climate.compute.linux import netns, taps
from climate.compute.network.driver import Kind, Plug, is_interface_name
from climate.compute.network.linux import anti_spoofing, netlink
from climate.compute.network.linux.netlink import Device, Mark, Netlink

_FAMILY, _MAIN_TABLE = 2, 254
_TAP = "tun"


def plug(ip: Netlink, plug: Plug, bridge: Device, mtu: int) -> None:
    """Connect an interface to a bridge. It comes up last, after the anti-spoofing rules."""
    port = _standing(ip, plug) or _create_interface(ip, plug, mtu)
    anti_spoofing.install(plug)
    netlink.shape(ip, port, up=plug.up, mtu=mtu, master=bridge.index)
    if plug.kind is Kind.VETH:
        netlink.inside(plug.netns, f"interface {plug.device} of {plug.netns}", lambda guest: _set_up(guest, plug, mtu))


def guard(ip: Netlink, plug: Plug) -> None:
    """Replace the rules of an interface, if it exists."""
    if netlink.find(ip, plug.name) is not None:
        anti_spoofing.install(plug)


def unplug(ip: Netlink, name: str) -> None:
    """Delete an interface with its peer, and then its anti-spoofing rules."""
    if not is_interface_name(name):
        raise NetworkError(f"{name} is not a guest's interface.")
    result = netlink.find(ip, name)
    if result is not None and _ours(result):
        netlink.delete(ip, result)
    anti_spoofing.take_down(name)


def standing(ip: Netlink) -> frozenset[str]:
    """Return the names of guests' interfaces that exist in whole or in part."""
    devices = netlink.devices(ip)
    return frozenset(name for name, one in devices.items() if is_interface_name(name) and _ours(one)) | (
        anti_spoofing.standing() - {name for name, one in devices.items() if not _ours(one)}
    )


def _ours(device: Device) -> bool:
    """Return whether climate created it; a new tap is not yet in climate's group."""
    return device.ours or device.kind == _TAP


def _standing(ip: Netlink, plug: Plug) -> Device | None:
    """Return the interface if it is as wanted; delete it otherwise."""
    result = netlink.find(ip, plug.name)
    if result is None:
        return None
    if result.mark == _mark(plug) and (plug.kind is Kind.TAP or _ends_there(result, plug)):
        return result
    if not _ours(result):
        raise NetworkError(f"{result.name} exists already and was not created by climate: delete or rename it.")
    netlink.delete(ip, result)
    return None


def _ends_there(port: Device, plug: Plug) -> bool:
    """Return whether the peer is in the guest's namespace under its name."""
    if not netns.exists(plug.netns):
        return False
    there = netlink.inside(plug.netns, f"reading {plug.netns}", lambda ip: netlink.find(ip, plug.device))
    return there is not None and (there.index, there.mac) == (port.peer, plug.mac)


def _create_interface(ip: Netlink, plug: Plug, mtu: int) -> Device:
    if plug.kind is Kind.TAP:
        taps.create(plug.name)
    else:
        netns.create(plug.netns)
        with _opened(plug.netns) as guest:
            peer = {"ifname": plug.device, "address": plug.mac, "net_ns_fd": guest, "mtu": mtu}
            ip.link("add", ifname=plug.name, kind="veth", group=netlink.GROUP, mtu=mtu, peer=peer)
    made = netlink.device(ip, plug.name)
    ip.link("set", index=made.index, group=netlink.GROUP, ifalias=str(_mark(plug)))
    # The host itself does not talk to a guest by this interface.
    netlink.sysctl(f"ipv6/conf/{plug.name}/disable_ipv6", 1)
    return made


def _mark(plug: Plug) -> Mark:
    where = (plug.netns, plug.device) if plug.kind is Kind.VETH else ()
    return Mark(plug.vif_id, (plug.kind.value, plug.mac, *where))


def _set_up(ip: Netlink, plug: Plug, mtu: int) -> None:
    """Set the guest's end up, and configure it if there is no DHCP server."""
    # A guest has no capabilities in its namespace, and listens on ports such as 22 all the same.
    netlink.sysctl("ipv4/ip_unprivileged_port_start", 0)
    result = netlink.device(ip, plug.device)
    netlink.shape(ip, result, up=True, mtu=mtu)
    if not plug.static:
        return
    held = netlink.addresses(ip, result.index, 4)
    steps = [("addr", "del", netlink.address(result.index, one)) for one in held if one not in plug.static]
    steps += [("addr", "add", netlink.own_address(result.index, one)) for one in plug.static if one not in held]
    if plug.router is not None and (steps or not _leads_by(ip, str(plug.router))):
        words = {"dst": str(ip_interface("0.0.0.0/0")), "gateway": str(plug.router), "oif": result.index}
        steps.append(("route", "replace", words))
    if steps:
        netlink.at_once(steps)


def _leads_by(ip: Netlink, router: str) -> bool:
    """Return whether there is a default route by this router."""
    rows = ip.get_routes(family=_FAMILY, table=_MAIN_TABLE)
    return any(row["dst_len"] == 0 and row.get_attr("RTA_GATEWAY") == router for row in rows)


@contextmanager
def _opened(name: str) -> Iterator[int]:
    handle = os.open(netns.FOLDER / name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)
