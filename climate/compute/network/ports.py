"""Ports that projects create: with addresses of a network, with or without a server."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Address
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection

from climate.compute.errors import BadRequest, Conflict, MacsCollide, NoMoreAddresses, NotFound, QuotaExceeded
from climate.compute.network import fixed_ips, mac_addresses
from climate.compute.network.models import Network
from climate.compute.network.network_options import MAC_ATTEMPTS
from climate.compute.store.networks import fixed_ips as address_rows
from climate.compute.store.networks import floating_ips as floating_rows
from climate.compute.store.networks import floating_pools
from climate.compute.store.networks import networks as network_rows
from climate.compute.store.networks import networks_without_subnet as outline_rows
from climate.compute.store.networks import ports as rows
from climate.compute.store.networks.ports import Port, PortRow
from climate.compute.store.projects import quotas


@dataclass(frozen=True, slots=True)
class FixedIp:
    """A requested address of a port; without `address` any free one of the subnet."""

    subnet_id: str | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class NewPort:
    """A port to create."""

    project_id: str
    network_id: str
    fixed_ips: Sequence[FixedIp] | None = None
    """None: one address, if the network has a subnet."""
    mac: str | None = None
    """None: a random one."""
    security_groups: Sequence[str] = ()
    """Ids of groups of the project."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    """Other columns of the port, by name."""


def create(conn: Connection, port: NewPort, seen_by: str | None, now: datetime) -> str:
    """Create a port in a network that a project sees (None: any network); return its id.

    Raise NotFound for the network, and BadRequest for addresses that are not of its subnet. Raise Conflict for a MAC or
    an address in use, and for external networks. Raise NoMoreAddresses, QuotaExceeded, MacsCollide.
    """
    _check_room(conn, port.project_id)
    network = _network(conn, port.network_id, seen_by)
    outline_id = None if network is not None else _outline(conn, port.network_id, seen_by)
    port_id = _inserted(conn, port, network, outline_id)
    asked = (FixedIp(),) if port.fixed_ips is None and network is not None else port.fixed_ips or ()
    if network is None and asked:
        raise BadRequest(f"fixed_ips: network {port.network_id} has no subnet yet")
    if network is not None:
        _take(conn, port_id, network, _checked(asked, network), now)
        fixed_ips.check_quota(conn, port.project_id, 0)
    return port_id


def _check_room(conn: Connection, project_id: str) -> None:
    limit = quotas.lock_limits(conn, project_id)["ports"]
    if 0 <= limit <= rows.count(conn, project_id):
        raise QuotaExceeded("Quota exceeded for resources: ['port'].")


def _network(conn: Connection, network_id: str, seen_by: str | None) -> Network | None:
    network_rows.lock_shared(conn, [network_id])
    return network_rows.by_ids(conn, [network_id], seen_by).get(network_id)


def _outline(conn: Connection, network_id: str, seen_by: str | None) -> str:
    """Return the id of a network without a range, which is kept until the transaction ends."""
    outline = outline_rows.get(conn, network_id, keep=True)
    is_seen = outline is not None and outline.is_seen_by(seen_by)
    is_pool = any(pool.id == network_id for pool in floating_pools.pools(conn))
    if is_pool or (outline is not None and outline.manager is None and is_seen):
        raise Conflict(f"Network {network_id} is external: its addresses are floating IPs, and it has no ports")
    if outline is None or not is_seen:
        raise NotFound("The network of the port could not be found.")
    return outline.id


def _inserted(conn: Connection, wanted: NewPort, network: Network | None, outline_id: str | None) -> str:
    port_id, network_id = str(uuid4()), None if network is None else network.id
    for _ in range(MAC_ATTEMPTS):
        mac = wanted.mac or mac_addresses.choose()
        groups = list(wanted.security_groups)
        port = PortRow(port_id, wanted.project_id, mac, network_id, outline_id, groups, **wanted.properties)
        if rows.create(conn, port):
            return port_id
        if wanted.mac is not None:
            raise Conflict(f"The MAC address {wanted.mac} is in use by another port.")
    raise MacsCollide(f"{MAC_ATTEMPTS} MACs in a row were another interface's")


def _checked(fixed_ips: Sequence[FixedIp], network: Network) -> Sequence[FixedIp]:
    """Return the requested addresses. Raise BadRequest for one that is not of the subnet, or that is given twice."""
    named = [fixed_ip.address for fixed_ip in fixed_ips if fixed_ip.address is not None]
    for fixed_ip in fixed_ips:
        if fixed_ip.subnet_id not in (None, network.subnet_id):
            raise BadRequest(f"fixed_ips: subnet {fixed_ip.subnet_id} is not one of network {network.id}")
        if fixed_ip.address is not None and IPv4Address(fixed_ip.address) not in network.cidr:
            raise BadRequest(f"IP address {fixed_ip.address} is not a valid IP for the specified subnet.")
        if fixed_ip.address is not None and named.count(fixed_ip.address) > 1:
            raise BadRequest(f"fixed_ips: {fixed_ip.address} is given twice")
    return fixed_ips


def _take(conn: Connection, port_id: str, network: Network, asked: Sequence[FixedIp], now: datetime) -> None:
    """Allocate addresses to a port: the given ones in ascending order, and then any."""
    given = sorted(IPv4Address(one.address) for one in asked if one.address is not None)
    for address in given:
        if not address_rows.take_this(conn, network.id, port_id, str(address), now):
            raise Conflict(f"IP address {address} already allocated in subnet {network.subnet_id}")
    for _ in range(len(asked) - len(given)):
        if not address_rows.take(conn, network.id, [port_id], now):
            raise NoMoreAddresses(f"No more IP addresses available on network {network.id}.")
    if asked:
        fixed_ips.call_hosts(conn, [network])


def readdress(conn: Connection, port: Port, asked: Sequence[FixedIp], now: datetime) -> None:
    """Give a locked port these addresses, and release its others. A request for any address keeps one that it has.

    Raise BadRequest, Conflict if an address is in use or a floating one leads to a released one, NoMoreAddresses,
    QuotaExceeded.
    """
    if port.subnet_id is None:
        if asked:
            raise BadRequest(f"fixed_ips: network {port.network_id} has no subnet yet")
        return
    quotas.lock_limits(conn, port.project_id)
    network = network_rows.by_ids(conn, [port.network_id])[port.network_id]
    kept, missing = _compared(port.addresses, _checked(asked, network))
    # Fixed addresses are locked before floating ones, in the order of every association.
    floating_rows.fixed(conn, {"port_id": port.port_id})
    for address in sorted(set(port.addresses) - kept, key=IPv4Address):
        if floating_rows.stands_for(conn, network.id, address):
            raise Conflict(f"A floating address is associated with {address}: disassociate it first")
        rows.release(conn, port, now, address)
    _take(conn, port.port_id, network, missing, now)
    fixed_ips.check_quota(conn, port.project_id, 0)
    fixed_ips.call_hosts(conn, [network])


def _compared(there: Sequence[str], fixed_ips: Sequence[FixedIp]) -> tuple[AbstractSet[str], list[FixedIp]]:
    """Return the addresses to keep, and the requests that none of them serves."""
    named = {fixed_ip.address for fixed_ip in fixed_ips}
    kept = {address for address in there if address in named}
    others = [address for address in there if address not in named]
    of_any = [fixed_ip for fixed_ip in fixed_ips if fixed_ip.address is None]
    missing = [fixed_ip for fixed_ip in fixed_ips if fixed_ip.address is not None and fixed_ip.address not in kept]
    return {*kept, *others[: len(of_any)]}, [*missing, *of_any[len(others) :]]


def delete(conn: Connection, port: Port, now: datetime) -> None:
    """Delete a locked port with its addresses; floating ones are disassociated."""
    floating_rows.fixed(conn, {"port_id": port.port_id})
    hosts = floating_rows.let_go(conn, None, now, port.port_id)
    given = rows.release(conn, port, now)
    rows.drop(conn, port.port_id)
    fixed_ips.call_released(conn, given, hosts)


def bind(conn: Connection, port_id: str, whose: tuple[str, str], place: int, now: datetime) -> None:
    """Make a port an interface of a server; `whose`: server and project.

    Raise NotFound for a port of another project, and Conflict if it is in use. Raise BadRequest if it has no address,
    or its network is not served.
    """
    server_id, project_id = whose
    port = usable(rows.lock(conn, port_id, project_id), port_id)
    network = network_rows.by_ids(conn, [port.network_id])[port.network_id]
    if not network.usable:
        raise BadRequest(f"Network {network.id} is not served by any network host yet: try again soon.")
    rows.bind(conn, port.port_id, server_id, place, now)
    fixed_ips.call_hosts(conn, [network])


def usable(port: Port | None, port_id: str) -> Port:
    """Return a port if a server can have it. Raise NotFound, Conflict, BadRequest."""
    if port is None or not port.kept:
        raise NotFound(f"Port {port_id} could not be found.")
    if port.server_id is not None or port.device_id:
        raise Conflict(f"Port {port_id} is still in use.")
    if port.leaving:
        raise Conflict(f"Port {port_id} is still being detached from its last server: try again soon.")
    if not port.addresses:
        raise BadRequest(f"Port {port_id} requires a FixedIP in order to be used.")
    return port
