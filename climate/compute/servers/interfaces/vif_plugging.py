"""Interfaces of a server on its node: plugged before its guest is created or started, unplugged after its deletion.

All steps are idempotent, as the methods of the drivers are.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import IPv4Interface, IPv4Network, IPv6Address, IPv6Interface
from typing import Protocol

from sqlalchemy import Connection, Engine

from climate.compute import one_by_one
from climate.compute.context import Compute
from climate.compute.errors import NetworkError, VirtError
from climate.compute.linux import netns
from climate.compute.models.server import Server
from climate.compute.network import ipv6, managers
from climate.compute.network.driver import PREFIX, ExistingResources, Kind, NetworkDriver, Plug, interface_name
from climate.compute.network.driver.registry import DriverCache
from climate.compute.network.models import Vif
from climate.compute.network.network_options import NetworkOptions
from climate.compute.network.operations import security_groups
from climate.compute.network.render import interfaces
from climate.compute.network.render.interfaces import GuestInterface
from climate.compute.servers.interfaces import port_filters
from climate.compute.store.networks import fixed_ips
from climate.compute.store.networks import networks as network_rows
from climate.compute.store.networks import security_groups as group_rows
from climate.compute.store.servers import servers
from climate.compute.virt import Interface, Wiring
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.compute.vpn import cloudpipe_script
from climate.database.connections import reading

NETNS_PREFIX = "clg-"
"""Prefix of the names of guests' network namespaces, before the server's id."""
_NETNS = re.compile(rf"{NETNS_PREFIX}([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})")


PLUGGED = frozenset({Wiring.NETNS, Wiring.TAP})
"""Wirings of nodes whose interfaces this module plugs; members of clusters plug theirs by the driver of the member."""


class Networking(Protocol):
    """Part of `Compute` that interfaces need."""

    @property
    def engine(self) -> Engine:
        """Return the database."""

    @property
    def network_drivers(self) -> DriverCache:
        """Return the network drivers of this machine."""

    @property
    def network(self) -> NetworkOptions:
        """Return the options of networks."""


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
    result = plug_into(compute, server.id, _socket(compute, server.node or ""), up=up)
    if server.security_groups:
        security_groups.wake_peers(compute, server.security_groups)
    return result


def plug_into(networking: Networking, server_id: str, socket: Socket, *, up: bool) -> tuple[Interface, ...]:
    """Plug a server's interfaces into a host, see `plug`."""
    with reading(networking.engine) as conn:
        vifs = fixed_ips.vifs_of(conn, [server_id])
        routed = {vif.id: _routed(conn, vif) for vif in vifs}
        rules = port_filters.of_vifs(conn, networking.network, vifs)
    if socket.wiring in PLUGGED:
        try:
            for vif in vifs:
                wanted = replace(_plug(networking, socket, vif, up=up), ranges=routed[vif.id], rules=rules[vif.id])
                _connect(socket.driver, wanted)
        except NetworkError as error:
            raise VirtError(f"the network cannot be configured: {error}") from error
    wired = socket.driver.real
    result = tuple(_interface(vif, socket, wired=wired) for vif in vifs)
    text = _injected(networking, vifs)
    return (replace(result[0], interfaces_file=text), *result[1:]) if text else result


def _connect(driver: NetworkDriver, plug: Plug) -> None:
    """Plug an interface in; retry once if its unused bridge was removed concurrently."""
    driver.ensure(plug.link)
    try:
        driver.plug(plug)
    except NetworkError:
        driver.ensure(plug.link)
        driver.plug(plug)


def unplug(compute: Compute, server: Server) -> None:
    """Remove all interfaces of a server from its node. Raises VirtError."""
    unplug_from(compute, server.id, _socket(compute, server.node or ""))


def unplug_from(networking: Networking, server_id: str, socket: Socket) -> None:
    """Remove all interfaces of a server from a host. Raises VirtError."""
    if socket.wiring not in PLUGGED or (socket.driver.real and socket.netns and not netns.exists(socket.netns)):
        return
    with reading(networking.engine) as conn:
        vifs = fixed_ips.vifs_of(conn, [server_id])
    try:
        for vif in vifs:
            socket.driver.unplug(interface_name(vif.id))
        if socket.wiring is Wiring.NETNS:
            socket.driver.drop_netns(netns_of(server_id))
    except NetworkError as error:
        raise VirtError(f"the network cannot be removed: {error}") from error


def renew_filters(compute: Compute, server_id: str | None = None) -> None:
    """Apply the present rules of security groups to the interfaces of a server, or of all, on nodes of this service.

    Members of clusters apply them when they plug an interface in. Raises NetworkError.
    """
    nodes = _hosts(compute)
    if not nodes:
        return
    with reading(compute.engine) as conn:
        ids = [server_id] if server_id is not None else group_rows.filtered(conn, compute.service_host)
        vifs = fixed_ips.vifs_of(conn, ids) if ids else []
        on = {vif_id: node for vif_id, _, node in fixed_ips.vifs_on(conn, compute.service_host)} if vifs else {}
        rules = port_filters.of_vifs(conn, compute.network, vifs)
        routed = {vif.id: _routed(conn, vif) for vif in vifs}

    def renew(vif: Vif) -> None:
        socket = _socket(compute, on[vif.id])
        wanted = replace(_plug(compute, socket, vif, up=True), ranges=routed[vif.id], rules=rules[vif.id])
        socket.driver.guard(wanted)

    _all_of((f"interface {vif.id}", partial(renew, vif)) for vif in vifs if on.get(vif.id) in nodes)


def _all_of(steps: Iterable[tuple[str, Callable[[], object]]]) -> None:
    """Take all steps, also after one has failed; then raise NetworkError with the reasons."""
    reasons: list[str] = []

    def take(step: Callable[[], object]) -> None:
        try:
            step()
        except NetworkError as error:
            reasons.append(str(error))

    one_by_one.steps("interfaces", ((name, partial(take, step)) for name, step in steps))
    if reasons:
        raise NetworkError("; ".join(reasons))


def sweep(compute: Compute) -> None:
    """Remove unneeded interfaces, namespaces and bridges from the hosts of this service. Raises VirtError.

    These are interfaces of no server there, namespaces of no server, and bridges without guests. The host is listed
    before the rows are read, because each of them is created after its row.
    """
    try:
        sweep_hosts(compute, {**_hosts(compute), **_hosts_of_members(compute)})
    except NetworkError as error:
        raise VirtError(f"the network cannot be listed: {error}") from error


def sweep_hosts(compute: Networking, nodes: Mapping[str, str | None]) -> None:
    """Remove what `sweep` removes from these hosts: node or member of a cluster -> namespace. Raises NetworkError."""
    there = {host: compute.network_drivers.on(host).standing() for host in set(nodes.values())}
    spaces = [match[1] for name in netns.names() if (match := _NETNS.fullmatch(name))]
    with reading(compute.engine) as conn:
        vifs = _vifs_with_plugs(conn, there.values())
        gone = _deleted_networks(conn, there.values())
        strays = sorted(set(spaces) - servers.existing(conn, spaces)) if there and spaces else []

    def clear(host: str | None) -> None:
        # Interfaces of nodes of another service on the same host are skipped.
        kept = {interface_name(vif) for vif, node in vifs if node is not None and nodes.get(node, host) == host}
        driver, standing = compute.network_drivers.on(host), there[host]
        unused = standing.networks - standing.served - gone
        steps = _clearing(driver, standing.plugs - kept, strays, standing.networks & gone)
        _all_of([*steps, *((network_id, partial(driver.remove_unused, network_id)) for network_id in sorted(unused))])

    _all_of((host or "this host", partial(clear, host)) for host in there)


def _vifs_with_plugs(conn: Connection, standing: Iterable[ExistingResources]) -> list[tuple[str, str | None]]:
    """Return (VIF, node) of the plugged interfaces."""
    heads = sorted({name.removeprefix(PREFIX) for one in standing for name in one.plugs})
    return fixed_ips.vifs_beginning(conn, heads) if heads else []


def _deleted_networks(conn: Connection, standing: Iterable[ExistingResources]) -> set[str]:
    """Return the networks that the hosts still have, and that were deleted."""
    networks = sorted({network_id for one in standing for network_id in one.networks})
    return set(networks) - network_rows.by_ids(conn, networks).keys() if networks else set()


def _clearing(
    driver: NetworkDriver, plugs: Iterable[str], server_ids: Iterable[str], networks: Iterable[str]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the steps that remove interfaces, namespaces and networks from a host."""
    yield from ((name, partial(driver.unplug, name)) for name in sorted(plugs))
    yield from ((server_id, partial(driver.drop_netns, netns_of(server_id))) for server_id in server_ids)
    yield from ((network_id, partial(driver.remove, network_id)) for network_id in sorted(networks))


def lacking(compute: Compute) -> set[str]:
    """Return the servers of this service's nodes with an interface that is missing but can be plugged.

    Raises NetworkError.
    """
    nodes, members = _hosts(compute), _hosts_of_member_servers(compute)
    if not nodes and not members:
        return set()
    with reading(compute.engine) as conn:
        vifs = fixed_ips.vifs_on(conn, compute.service_host)
    hosts = {
        host for host in {*nodes.values(), *members.values()} if compute.network_drivers.on(host).trouble() is None
    }
    there = {host: compute.network_drivers.on(host).standing().plugs for host in hosts}
    result = set[str]()
    for vif_id, server_id, node in vifs:
        known, key = (members, server_id) if server_id in members else (nodes, node)
        if key in known and known[key] in hosts and interface_name(vif_id) not in there[known[key]]:
            result.add(server_id)
    return result


def _hosts(compute: Compute) -> dict[str, str | None]:
    """Return the network namespaces of this service's nodes whose guests are connected to networks."""
    wirings: dict[str, Wiring] = {}  # one query per driver: only clusters differ from each other
    result: dict[str, str | None] = {}
    for spec in compute.driver.nodes():
        kind = spec.driver if spec.cluster is None else spec.name
        if kind not in wirings:
            wirings[kind] = compute.driver.wiring(spec.name)
        if wirings[kind] in PLUGGED:
            result[spec.name] = spec.netns
    return result


def _hosts_of_members(compute: Compute) -> Mapping[str, str | None]:
    """Return the network namespaces of the cluster members of this service that plug interfaces."""
    return compute.driver.hosts_of_members() if isinstance(compute.driver, MultiNodeDriver) else {}


def _hosts_of_member_servers(compute: Compute) -> Mapping[str, str | None]:
    """Return the network namespaces of servers on such members, for the clusters of this service."""
    return compute.driver.hosts_of_member_servers() if isinstance(compute.driver, MultiNodeDriver) else {}


def _socket(compute: Compute, node: str) -> Socket:
    host = compute.driver.host_netns(node)
    return Socket(compute.network_drivers.on(host), host, compute.driver.wiring(node))


def _plug(compute: Networking, socket: Socket, vif: Vif, *, up: bool) -> Plug:
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
    return [IPv4Interface(f"{address}/{vif.network.cidr.prefixlen}") for address in vif.addresses]


def _address_v6(compute: Networking, vif: Vif) -> IPv6Address | None:
    if vif.network.cidr_v6 is None:
        return None
    return ipv6.address(compute.network.ipv6_backend, vif.network.cidr_v6, vif.mac, vif.project_id)


def _injected(compute: Networking, vifs: Sequence[Vif]) -> str | None:
    """Return the network configuration file for a guest without DHCP; None if nothing is injected."""
    cards = [_guest_interface(compute, vif) for vif in vifs if _is_injected(vif)]
    return interfaces.interfaces(cards) if cards else None


def _is_injected(vif: Vif) -> bool:
    return vif.network.injected and bool(vif.addresses) and not managers.of(vif.network).DHCP


def _guest_interface(compute: Networking, vif: Vif) -> GuestInterface:
    network, made = vif.network, _address_v6(compute, vif)
    length = None if network.cidr_v6 is None else network.cidr_v6.prefixlen
    return GuestInterface(
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
        addresses=tuple(str(address) for address in vif.addresses),
        device=f"eth{vif.place}",
        host_netns=socket.netns,
        netns=netns_of(vif.server_id) if wired and socket.wiring is Wiring.NETNS else None,
        tap=interface_name(vif.id) if wired and socket.wiring is Wiring.TAP else None,
        dhcp=managers.of(vif.network).DHCP,
    )
