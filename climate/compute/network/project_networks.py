"""Networks that projects create: each has a VLAN of the administrators' range, and a subnet once it is given one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv4Network

from sqlalchemy import Connection

from climate.compute.errors import BadRequest, Conflict, QuotaExceeded
from climate.compute.network import fixed_ips, networks, subnetting
from climate.compute.network.models import VLAN, Draft, Network
from climate.compute.network.network_options import NetworkOptions
from climate.compute.network.networks_without_subnet import Stretch
from climate.compute.store.networks import floating_pools, ports
from climate.compute.store.networks import networks as rows
from climate.compute.store.networks import networks_without_subnet as outline_rows
from climate.compute.store.networks.networks_without_subnet import Outline
from climate.compute.store.projects import quotas

Route = tuple[IPv4Network, IPv4Address]


@dataclass(frozen=True, slots=True)
class Subnet:
    """The subnet of a network of a project."""

    cidr: IPv4Network
    gateway: IPv4Address | None
    """None: DHCP offers no default gateway."""
    name: str | None = None
    """None: the name of the network."""
    dns: tuple[IPv4Address, ...] = ()
    ranges: Sequence[Stretch] = ()
    """Ranges that the pool assigns; empty: all addresses but the gateway."""
    routes: Sequence[Route] = ()


def create(conn: Connection, options: NetworkOptions, label: str, project_id: str) -> Outline:
    """Create a network without a subnet. Raise QuotaExceeded; Conflict if no VLAN is left."""
    limit = quotas.lock_limits(conn, project_id)["networks"]
    if 0 <= limit <= rows.count(conn, project_id) + outline_rows.count(conn, project_id):
        raise QuotaExceeded("Quota exceeded for resources: ['network'].")
    rows.taken(conn)
    used = {one.vlan for one in outline_rows.listed(conn)}
    for network in rows.listed(conn):
        used.add(network.vlan)
        named = re.fullmatch(r"br(\d{1,4})", network.bridge or "")
        used |= {int(named[1])} if named else set()
    vlan = next((number for number in options.project_vlans if number not in used), None)
    if vlan is None:
        raise Conflict("Unable to create the network. No tenant network is available for allocation.")
    values = {"label": label, "manager": VLAN, "vlan": vlan, "project_id": project_id, "by_project": True}
    return outline_rows.create(conn, values)


def complete(conn: Connection, options: NetworkOptions, outline: Outline, subnet: Subnet) -> None:
    """Give a locked outline its subnet: it becomes a network with the same id, and its ports move there.

    Raise BadRequest for a range that is not usable, or that overlaps another network.
    """
    _check(options, subnet)
    taken = [IPv4Network(cidr) for cidr in rows.taken(conn)]
    taken += [IPv4Network(pool.cidr) for pool in floating_pools.pools(conn)]
    if any(other.overlaps(subnet.cidr) for other in taken):
        raise BadRequest(
            f"Invalid input for operation: Requested subnet with cidr: {subnet.cidr} for network: {outline.id} "
            "overlaps with another subnet."
        )
    draft = _draft(options, outline, subnet)
    if options.use_ipv6:
        prefix = subnetting.prefix_v6(options.range_v6, networks.place_v6(options.range_v6, 1, rows.listed(conn)))
        draft = replace(draft, cidr_v6=prefix, gateway_v6=prefix[1])
    outline_rows.drop(conn, outline.id)
    rows.create(conn, draft)
    ports.move_to_network(conn, outline.id)


def _check(options: NetworkOptions, subnet: Subnet) -> None:
    """Raise BadRequest for a range that the networks of projects cannot have, or ranges that are not in it."""
    cidr = subnet.cidr
    subnetting.check_usable(cidr)
    subnetting.prefix_length(cidr.num_addresses)
    if not cidr.subnet_of(options.fixed_range):
        raise BadRequest(f"cidr {cidr} must be inside {options.fixed_range}, the range of all networks of servers")
    ends = (cidr[0], cidr[-1])
    if subnet.gateway is not None and (subnet.gateway not in cidr or subnet.gateway in ends):
        raise BadRequest(f"gateway_ip {subnet.gateway} is not an address for an interface in {cidr}")
    for first, last in subnet.ranges:
        if first not in cidr or last not in cidr:
            raise BadRequest(f"allocation_pools: {first} to {last} is not inside {cidr}")
        if subnet.gateway is not None and first <= subnet.gateway <= last:
            raise BadRequest(f"allocation_pools: {first} to {last} contains the gateway {subnet.gateway}")


def _draft(options: NetworkOptions, outline: Outline, subnet: Subnet) -> Draft:
    cidr, gateway = subnet.cidr, subnet.gateway or subnet.cidr[1]
    spared = {cidr[0], cidr[-1], gateway}
    assigned = [one for one in cidr if one not in spared and _is_assigned(one, subnet.ranges)]
    if not assigned:
        raise BadRequest(f"allocation_pools: no address of {cidr} is left for servers")
    return Draft(
        label=outline.label,
        manager=VLAN,
        cidr=cidr,
        gateway=gateway,
        dhcp_start=assigned[0],
        dns=subnet.dns,
        bridge=f"br{outline.vlan}",
        bridge_interface=options.vlan_interface,
        vlan=outline.vlan,
        project_id=outline.project_id,
        reserved=tuple(sorted(set(cidr) - set(assigned))),
        network_id=outline.id,
        by_project=True,
        subnet_name=subnet.name,
        routed=subnet.gateway is not None,
        ranges=tuple(subnet.ranges),
        routes=tuple(subnet.routes),
    )


def _is_assigned(address: IPv4Address, ranges: Sequence[Stretch]) -> bool:
    return not ranges or any(first <= address <= last for first, last in ranges)


def subnet_of(network: Network) -> Subnet:
    """Return the subnet of a network."""
    gateway = network.gateway if network.routed else None
    return Subnet(network.cidr, gateway, network.subnet_name, network.dns, network.ranges, network.routes)


def change(conn: Connection, options: NetworkOptions, network: Network, subnet: Subnet) -> None:
    """Change the subnet of a locked network; another gateway or other ranges only while no port has an address.

    Raise Conflict, BadRequest.
    """
    before = subnet_of(network)
    is_kept = subnet.gateway in (None, network.gateway) and list(subnet.ranges) == list(before.ranges)
    if not is_kept:
        if rows.in_use(conn, network.id):
            raise Conflict(f"Subnet {network.subnet_id} has addresses in use: its gateway and pools cannot change")
        _check(options, subnet)
        remade = replace(_draft(options, _outline(network), subnet), subnet_id=network.subnet_id)
        rows.remake(conn, network.id, remade)
    changes = {
        "subnet_name": subnet.name,
        "dns": [str(server) for server in subnet.dns],
        "routed": subnet.gateway is not None,
        "routes": rows.pairs(subnet.routes),
    }
    rows.set_columns(conn, network.id, changes)
    fixed_ips.call_hosts(conn, [network])


def drop_subnet(conn: Connection, network: Network) -> None:
    """Delete the subnet of a locked network, which stays without one. Raise Conflict while a port has an address."""
    if rows.held(conn, network.id):
        raise Conflict(f"Unable to complete operation on subnet {network.subnet_id}: ports have addresses of it.")
    outline = _outline(network)
    fields = ("id", "label", "manager", "interface", "vlan", "project_id", "by_project")
    outline_rows.create(conn, {name: getattr(outline, name) for name in fields})
    ports.move_to_outline(conn, network.id)
    rows.delete(conn, network.id)
    fixed_ips.call_hosts(conn, [network])


def delete(conn: Connection, network: Network) -> None:
    """Delete a locked network with its subnet. Raise Conflict while it has ports."""
    if ports.in_network(conn, network.id) or rows.held(conn, network.id):
        raise Conflict(f"Unable to complete operation on network {network.id}: it has ports that are in use.")
    rows.delete(conn, network.id)
    fixed_ips.call_hosts(conn, [network])


def _outline(network: Network) -> Outline:
    return Outline(network.id, network.label, VLAN, None, network.vlan, network.project_id, network.created_at, True)
