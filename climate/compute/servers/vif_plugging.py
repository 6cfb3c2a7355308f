"""Interfaces of a server on its node: plugged before its guest is created or started, unplugged after its deletion.

All steps are idempotent, as the methods of the drivers are.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Interface, IPv4Network, IPv6Address, IPv6Interface

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import NetworkError, VirtError
from climate.compute.linux import netns
from climate.compute.models.server import Server
from climate.compute.network import ipv6, managers
from climate.compute.network.driver import PREFIX, Kind, NetworkDriver, Plug, interface_name
from climate.compute.network.models import Vif
from climate.compute.network.render import interfaces as rendered
from climate.compute.network.render.interfaces import Card
from climate.compute.store.networks import fixed_ips
from climate.compute.store.networks import networks as network_rows
from climate.compute.store.servers import servers
from climate.compute.virt import Interface, Wiring
from climate.compute.vpn import cloudpipe_script
from climate.connections import reading

NETNS_PREFIX = "clg-"
"""Prefix of the names of guests' network namespaces, before the server's id."""
_NETNS = re.compile(rf"{NETNS_PREFIX}([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})")


@dataclass(frozen=True, slots=True)
class Socket:
    """The driver and namespace for the interfaces of a server's node."""

    driver: NetworkDriver
    netns: str | None
    wiring: Wiring


def netns_of(server_id: str) -> str:
    """Return the name of a guest's network namespace."""
    return f"{NETNS_PREFIX}{server_id}"


def plug(compute: Compute, server: Server, *, up: bool) -> tuple[Interface, ...]:
    """Plug a server's interfaces on its node, for its driver; `up` False: set down until the server is woken.

    Raises VirtError.
    """
    with reading(compute.engine) as conn:
        vifs = fixed_ips.vifs_of(conn, [server.id])
        routed = {vif.id: _routed(conn, vif) for vif in vifs}
    socket = _socket(compute, server.node or "")
    if socket.wiring is not Wiring.NONE:
        try:
            for vif in vifs:
                _connect(socket.driver, replace(_plug(compute, socket, vif, up=up), ranges=routed[vif.id]))
        except NetworkError as error:
            raise VirtError(f"the network cannot be configured: {error}") from error
    wired = socket.driver.real
    result = tuple(_interface(vif, socket, wired=wired) for vif in vifs)
    text = _injected(compute, vifs)
    return (replace(result[0], interfaces_file=text), *result[1:]) if text else result


def _connect(driver: NetworkDriver, wanted: Plug) -> None:
    """Plug an interface in; retry once if its unused bridge was removed concurrently."""
    driver.ensure(wanted.link)
    try:
        driver.plug(wanted)
    except NetworkError:
        driver.ensure(wanted.link)
        driver.plug(wanted)


def unplug(compute: Compute, server: Server) -> None:
    """Remove all interfaces of a server from its node. Raises VirtError."""
    socket = _socket(compute, server.node or "")
    if socket.wiring is Wiring.NONE or (socket.driver.real and socket.netns and not netns.exists(socket.netns)):
        return
    with reading(compute.engine) as conn:
        vifs = fixed_ips.vifs_of(conn, [server.id])
    try:
        for vif in vifs:
            socket.driver.unplug(interface_name(vif.id))
        if socket.wiring is Wiring.NETNS:
            socket.driver.drop_netns(netns_of(server.id))
    except NetworkError as error:
        raise VirtError(f"the network cannot be removed: {error}") from error


def sweep(compute: Compute) -> None:
    """Remove unneeded interfaces, namespaces and bridges from this service's nodes. Raises VirtError.

    These are interfaces of no server there, namespaces of no server, and bridges without guests. The host is listed
    before the rows are read, because each of them is created after its row.
    """
    try:
        _sweep(compute, _hosts(compute))
    except NetworkError as error:
        raise VirtError(f"the network cannot be listed: {error}") from error


def _sweep(compute: Compute, nodes: Mapping[str, str | None]) -> None:
    there = {host: compute.wires.on(host).standing() for host in set(nodes.values())}
    spaces = [match[1] for name in netns.names() if (match := _NETNS.fullmatch(name))]
    heads = sorted({name.removeprefix(PREFIX) for standing in there.values() for name in standing.plugs})
    networks = sorted({network_id for standing in there.values() for network_id in standing.networks})
    with reading(compute.engine) as conn:
        vifs = fixed_ips.vifs_beginning(conn, heads) if heads else []
        gone = set(networks) - (network_rows.by_ids(conn, networks).keys() if networks else set())
        strays = sorted(set(spaces) - servers.known(conn, spaces)) if there and spaces else []
    for host, standing in there.items():
        # Interfaces of nodes of another service on the same host are skipped.
        kept = {interface_name(vif) for vif, node in vifs if node is not None and nodes.get(node, host) == host}
        driver = compute.wires.on(host)
        _clear(driver, standing.plugs - kept, strays, standing.networks & gone)
        for network_id in sorted(standing.networks - standing.served - gone):
            driver.spare(network_id)


def _clear(driver: NetworkDriver, plugs: Iterable[str], server_ids: Iterable[str], networks: Iterable[str]) -> None:
    for name in sorted(plugs):
        driver.unplug(name)
    for server_id in server_ids:
        driver.drop_netns(netns_of(server_id))
    for network_id in sorted(networks):
        driver.remove(network_id)


def lacking(compute: Compute) -> set[str]:
    """Return the servers of this service's nodes with an interface that is missing but can be plugged.

    Raises NetworkError.
    """
    nodes = _hosts(compute)
    if not nodes:
        return set()
    with reading(compute.engine) as conn:
        vifs = fixed_ips.vifs_on(conn, compute.service_host)
    hosts = {host for host in nodes.values() if compute.wires.on(host).trouble() is None}
    there = {host: compute.wires.on(host).standing().plugs for host in hosts}
    return {
        server_id
        for vif_id, server_id, node in vifs
        if node in nodes and nodes[node] in hosts and interface_name(vif_id) not in there[nodes[node]]
    }


def _hosts(compute: Compute) -> dict[str, str | None]:
    """Return the network namespaces of this service's nodes whose guests are connected to networks."""
    wirings: dict[str, Wiring] = {}  # one query per driver: only clusters differ from each other
    result: dict[str, str | None] = {}
    for spec in compute.driver.nodes():
        kind = spec.driver if spec.cluster is None else spec.name
        if kind not in wirings:
            wirings[kind] = compute.driver.wiring(spec.name)
        if wirings[kind] is not Wiring.NONE:
            result[spec.name] = spec.netns
    return result


def _socket(compute: Compute, node: str) -> Socket:
    host = compute.driver.host_netns(node)
    return Socket(compute.wires.on(host), host, compute.driver.wiring(node))


def _plug(compute: Compute, socket: Socket, vif: Vif, *, up: bool) -> Plug:
    network, manager = vif.network, managers.of(vif.network)
    static = () if manager.DHCP or not network.injected else tuple(_own(vif))
    made = _address_v6(compute, vif)
    return Plug(
        vif_id=vif.id,
        mac=vif.mac,
        kind=Kind.TAP if socket.wiring is Wiring.TAP else Kind.VETH,
        link=manager.link(network, compute.network, own=False),
        addresses=(*vif.addresses, *([made] if made is not None else [])),
        netns=netns_of(vif.server_id),
        device=f"eth{vif.place}",
        static=static,
        router=network.gateway if static and vif.place == 0 else None,
        up=up,
    )


def _routed(conn: Connection, vif: Vif) -> tuple[IPv4Network, ...]:
    """Return the addresses of VPN clients, which are routed to the cloudpipe of a network."""
    if vif.network.vpn_private_address not in vif.addresses:
        return ()
    given = cloudpipe_script.clients(conn, vif.network.id)
    return () if given is None else tuple(given.ranges)


def _own(vif: Vif) -> list[IPv4Interface]:
    return [IPv4Interface(f"{one}/{vif.network.cidr.prefixlen}") for one in vif.addresses]


def _address_v6(compute: Compute, vif: Vif) -> IPv6Address | None:
    if vif.network.cidr_v6 is None:
        return None
    return ipv6.address(compute.network.ipv6_backend, vif.network.cidr_v6, vif.mac, vif.project_id)


def _injected(compute: Compute, vifs: Sequence[Vif]) -> str | None:
    """Return the network configuration file for a guest without DHCP; None if nothing is injected."""
    cards = [_card(compute, vif) for vif in vifs if _is_injected(vif)]
    return rendered.interfaces(cards) if cards else None


def _is_injected(vif: Vif) -> bool:
    return vif.network.injected and bool(vif.addresses) and not managers.of(vif.network).DHCP


def _card(compute: Compute, vif: Vif) -> Card:
    network, made = vif.network, _address_v6(compute, vif)
    length = None if network.cidr_v6 is None else network.cidr_v6.prefixlen
    return Card(
        device=f"eth{vif.place}",
        address=_own(vif)[0],
        gateway=network.gateway if vif.place == 0 else None,
        dns=network.dns,
        address_v6=None if made is None else IPv6Interface(f"{made}/{length}"),
        gateway_v6=network.gateway_v6,
    )


def _interface(vif: Vif, socket: Socket, *, wired: bool) -> Interface:
    return Interface(
        mac=vif.mac,
        addresses=tuple(str(one) for one in vif.addresses),
        device=f"eth{vif.place}",
        host_netns=socket.netns,
        netns=netns_of(vif.server_id) if wired and socket.wiring is Wiring.NETNS else None,
        tap=interface_name(vif.id) if wired and socket.wiring is Wiring.TAP else None,
        dhcp=managers.of(vif.network).DHCP,
    )
