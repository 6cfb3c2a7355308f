"""Bridges: creation, attachment to the host's interfaces, and addresses of gateways.

The order of addresses follows ensure_bridge of Nova's linux_net: a gateway's address is first on its bridge.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv6Address, IPv6Interface, ip_interface

from climate.compute.errors import NetworkError
from climate.compute.network.driver import Link
from climate.compute.network.linux import netlink
from climate.compute.network.linux.netlink import Device, Interface, Mark, Netlink, Row, Step

_BY_THE_WAY_BACK = 1
_MAIN_TABLE, _BY_KERNEL, _UNICAST, _LINK_LOCAL = 254, 2, 1, 253


def ensure(ip: Netlink, link: Link, mtu: int) -> Device:
    """Ensure that the bridge of a network exists, creating it if climate owns it; attach nothing yet."""
    result = netlink.find(ip, link.bridge)
    if not link.ours:
        return _theirs(link, result)
    if result is not None:
        _check(link, result)
    else:
        _create(ip, link.bridge)
        result = netlink.device(ip, link.bridge)
    netlink.mark(ip, result, _mark(link, result.mark))
    if link.vlan is not None or link.interface is None:
        # The host ignores guests' traffic on a bridge without addresses of its own. A bridge that took over an
        # interface's addresses accepts what that interface accepted.
        netlink.sysctl(f"ipv4/conf/{link.bridge}/rp_filter", _BY_THE_WAY_BACK)
    netlink.shape(ip, result, up=True, mtu=mtu)
    return netlink.device(ip, link.bridge)


def existing(ip: Netlink, link: Link) -> Device:
    """Return the existing bridge of a network. Raise NetworkError if it is missing."""
    result = netlink.device(ip, link.bridge)
    if not link.ours:
        return _theirs(link, result)
    _check(link, result)
    return result


def attach(ip: Netlink, bridge: Device, interface: Device) -> None:
    """Add a host interface to a bridge, which takes over the global addresses and routes of the interface."""
    if interface.master not in (None, bridge.index):
        raise NetworkError(f"{interface.name} is already in a bridge other than {bridge.name}.")
    if interface.master is None and (lent := netlink.temporary_addresses(ip, interface.index)):
        # The DHCP client would renew the lease on an interface that hears nothing any more, and cut the host off.
        raise NetworkError(
            f"{interface.name} has the temporary address {lent[0]}, as from DHCP: give it a"
            " static address or none before it joins a bridge."
        )
    netlink.shape(ip, interface, up=True)
    if interface.master is None and bridge.mac != interface.mac:
        # Neighbours have this MAC in their caches; the bridge keeps it to stay reachable.
        ip.link("set", index=bridge.index, address=interface.mac)
    moved = list(_moving(ip, interface.index, bridge.index))
    if any(":" in str(words.get("address", "")) for _, _, words in moved):
        netlink.sysctl(f"ipv6/conf/{bridge.name}/disable_ipv6", 0)
    if interface.master is None or moved:
        enslaved = ("link", "set", {"index": interface.index, "master": bridge.index})
        added, taken = _added(moved), [step for step in moved if step[1] == "del"]
        netlink.at_once([*added, enslaved, *taken])


def ensure_gateway(ip: Netlink, bridge: Device, link: Link) -> None:
    """Configure the gateway's addresses on a bridge; the IPv4 address becomes its first."""
    wanted = [gateway for gateway in (link.gateway, link.gateway_v6) if gateway is not None]
    stale = [gateway for gateway in gateways(bridge) if gateway not in wanted] if wanted else []
    steps: list[Step] = [("addr", "del", netlink.address(bridge.index, gateway)) for gateway in stale]
    if link.gateway is not None:
        result = netlink.addresses(ip, bridge.index, 4).items()
        held = {one: broadcast for one, broadcast in result if one not in stale}
        steps += _reordered(ip, bridge.index, held, link.gateway)
    if link.gateway_v6 is not None:
        steps += _with_gateway_v6(ip, bridge, link.gateway_v6)
    if steps:
        netlink.at_once(steps)
    if wanted:
        netlink.mark(ip, bridge, Mark(link.network_id, tuple(map(str, wanted))))


def link_local(bridge: Device) -> IPv6Address:
    """Return the link-local address of a bridge, configured even if nothing is connected to it."""
    netlink.sysctl(f"ipv6/conf/{bridge.name}/disable_ipv6", 0)
    address = netlink.link_local(bridge.mac)
    words = netlink.address(bridge.index, IPv6Interface((address, 64)))
    netlink.at_once([("addr", "add", {**words, "scope": _LINK_LOCAL})])
    return address


def let_go(ip: Netlink, network_id: str) -> None:
    """Remove the gateway's addresses from the bridge of a network."""
    for bridge in _of(ip, network_id):
        steps = [("addr", "del", netlink.address(bridge.index, gateway)) for gateway in gateways(bridge)]
        if steps:
            netlink.at_once(steps)
        netlink.mark(ip, bridge, Mark(network_id))


def remove(ip: Netlink, network_id: str) -> None:
    """Delete the bridge of a network; the host's interfaces get their addresses and routes back.

    Bridges whose creation was interrupted before they were marked are deleted too.
    """
    for bridge in _of(ip, network_id):
        let_go(ip, network_id)
        _restore(ip, bridge)
        netlink.delete(ip, bridge)
    for device in netlink.devices(ip).values():
        if device.ours and device.mark is None:
            netlink.delete(ip, device)


def gateways(bridge: Device) -> list[Interface]:
    """Return the addresses of a bridge that are a network's gateway, according to its mark."""
    return [ip_interface(word) for word in bridge.mark.words] if bridge.mark else []


def in_order(held: Sequence[Interface], gateway: Interface) -> tuple[list[Interface], list[Interface]]:
    """Return the addresses to remove and to add, in order, so that `gateway` becomes the first of the interface."""
    if list(held[:1]) == [gateway]:
        return [], []
    return list(held), [gateway, *(address for address in held if address != gateway)]


def _theirs(link: Link, device: Device | None) -> Device:
    if device is None or device.kind != "bridge":
        raise NetworkError(
            f"There is no bridge {link.bridge} on this host: create it, because climate does not manage it."
        )
    return device


def _check(link: Link, device: Device) -> None:
    if not device.ours or device.kind != "bridge":
        raise NetworkError(
            f"{link.bridge} exists already and was not created by climate: rename it, or choose another bridge."
        )
    if device.mark and device.mark.of != link.network_id:
        raise NetworkError(f"{link.bridge} belongs to network {device.mark.of}, not to {link.network_id}.")


def _mark(link: Link, there: Mark | None) -> Mark:
    wanted = [str(gateway) for gateway in (link.gateway, link.gateway_v6) if gateway is not None]
    # Addresses are marked before they are added, and unmarked after they are removed.
    return Mark(link.network_id, tuple(dict.fromkeys([*wanted, *(there.words if there else ())])))


def _create(ip: Netlink, name: str) -> None:
    # A bridge with an explicit MAC keeps it when interfaces join.
    mac = "02:" + ":".join(f"{byte:02x}" for byte in secrets.token_bytes(5))
    words = {"kind": "bridge", "br_stp_state": 0, "br_forward_delay": 0, "br_mcast_snooping": 0}
    ip.link("add", ifname=name, group=netlink.GROUP, address=mac, **words)
    for key, value in (("accept_ra", 0), ("accept_dad", 0), ("disable_ipv6", 1)):
        # The host must not be an IPv6 neighbour of guests on bridges without an address of its own.
        netlink.sysctl(f"ipv6/conf/{name}/{key}", value)
    for family in ("ip", "ip6", "arp"):
        netlink.sysctl(f"bridge/bridge-nf-call-{family}tables", 0)


def _of(ip: Netlink, network_id: str) -> list[Device]:
    return [
        device
        for device in netlink.devices(ip).values()
        if device.ours and device.kind == "bridge" and device.mark and device.mark.of == network_id
    ]


def _with_gateway_v6(ip: Netlink, bridge: Device, gateway: Interface) -> list[Step]:
    """Allow IPv6 on the bridge, and return the step that adds the gateway's address if it has not got it."""
    netlink.sysctl(f"ipv6/conf/{bridge.name}/disable_ipv6", 0)
    if gateway in netlink.addresses(ip, bridge.index, 6):
        return []
    return [("addr", "add", netlink.own_address(bridge.index, gateway))]


def _reordered(ip: Netlink, index: int, held: Mapping[Interface, str | None], interface: Interface) -> list[Step]:
    removed, added = in_order(list(held), interface)
    routes = _routes(ip, index, index) if removed else []
    return [
        *(("addr", "del", netlink.address(index, one)) for one in removed),
        *(("addr", "add", netlink.own_address(index, one)) for one in added if one == interface),
        *(("addr", "add", netlink.address(index, one, held[one])) for one in added if one != interface),
        *routes,
    ]


def _restore(ip: Netlink, bridge: Device) -> None:
    ports = [
        one for one in netlink.devices(ip).values() if one.master == bridge.index and not one.ours and not one.mark
    ]
    for interface in ports[:1]:
        freed: Step = ("link", "set", {"index": interface.index, "master": 0})
        moved = list(_moving(ip, bridge.index, interface.index))
        netlink.at_once([freed, *_added(moved), *(step for step in moved if step[1] == "del")])


def _moving(ip: Netlink, source: int, target: int) -> Iterator[Step]:
    """Return the steps that move addresses and routes from one interface to another."""
    for version in (4, 6):
        for held, broadcast in netlink.addresses(ip, source, version).items():
            yield "addr", "add", netlink.address(target, held, broadcast)
            yield "addr", "del", netlink.address(source, held)
    yield from _routes(ip, source, target)


def _added(moved: Sequence[Step]) -> list[Step]:
    """Return the moved rows, addresses before the routes that need them."""
    return sorted((step for step in moved if step[1] != "del"), key=lambda step: step[0] == "route")


def _routes(ip: Netlink, source: int, target: int) -> list[Step]:
    """Return the routes of one interface redirected to another, without those that the kernel derives
    from addresses.
    """
    result = (
        row
        for row in ip.get_routes(family=2, table=_MAIN_TABLE)
        if row.get_attr("RTA_OIF") == source and row["proto"] != _BY_KERNEL and row["type"] == _UNICAST
    )
    # Routes to neighbours first, because others use them as gateways.
    return [("route", "replace", _route(row, target)) for row in sorted(result, key=lambda row: -int(row["scope"]))]


def _route(row: Row, target: int) -> dict[str, object]:
    words = {"dst": f"{row.get_attr('RTA_DST') or '0.0.0.0'}/{row['dst_len']}", "oif": target}  # noqa: S104  (a route)
    names = {"gateway": "RTA_GATEWAY", "priority": "RTA_PRIORITY", "prefsrc": "RTA_PREFSRC"}
    kept = {word: row.get_attr(name) for word, name in names.items() if row.get_attr(name) is not None}
    return {**words, **kept, "proto": row["proto"], "scope": row["scope"]}
