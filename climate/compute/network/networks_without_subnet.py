"""Networks created before their range is known, as clients of OpenStack's Network API do.

Only an outline is stored until the subnet is created, so the engine never sees an incomplete network.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address, IPv4Network

from sqlalchemy import Connection

from climate.compute.errors import BadRequest, Conflict
from climate.compute.network import floating_ips, networks
from climate.compute.network.creation_request import CreationRequest
from climate.compute.network.managers import MANAGERS
from climate.compute.network.models import FLAT_DHCP, VLAN, Network
from climate.compute.network.network_options import NetworkOptions
from climate.compute.store.networks import floating_pools, ports
from climate.compute.store.networks import networks as network_rows
from climate.compute.store.networks import networks_without_subnet as rows
from climate.compute.store.networks.networks_without_subnet import Outline

Stretch = tuple[IPv4Address, IPv4Address]
"""First and last address of a contiguous range."""


@dataclass(frozen=True, slots=True)
class NetworkFields:
    """Fields of a network without a range."""

    label: str
    manager: str | None
    """None: an external network, which becomes a pool of floating addresses."""
    interface: str | None = None
    vlan: int | None = None
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """Range that completes an outline."""

    cidr: IPv4Network
    gateway: IPv4Address | None = None
    """Gateway of an external network; None: unknown."""
    dns: tuple[IPv4Address, ...] | None = None
    stretches: Sequence[Stretch] = ()
    """Allocation ranges of an external network; empty: the whole range."""


def draw(conn: Connection, fields: NetworkFields) -> Outline:
    """Create the outline of a network without a range.

    Raise BadRequest for fields that its manager does not support, Conflict for a used name or VLAN.
    """
    if fields.manager != VLAN and fields.vlan is not None:
        raise BadRequest(f"Only networks of the manager {VLAN} have a VLAN")
    if fields.manager != VLAN and fields.project_id is not None:
        raise BadRequest(f"Only networks of the manager {VLAN} have a project: all others are shared")
    if fields.manager is not None and fields.manager not in MANAGERS:
        raise BadRequest(f"There is no network manager {fields.manager!r}, only {', '.join(MANAGERS)}")
    network_rows.taken(conn)
    _check(conn, fields)
    return rows.create(conn, asdict(fields))


def _check(conn: Connection, fields: NetworkFields) -> None:
    there, outlined = network_rows.listed(conn), rows.listed(conn)
    labels = {one.label for one in there} | {one.label for one in outlined}
    labels |= {pool.name for pool in floating_pools.pools(conn)}
    vlans = {one.vlan for one in there} | {one.vlan for one in outlined}
    if fields.label in labels:
        raise Conflict(f"Network {fields.label} exists already")
    if fields.vlan is not None and fields.vlan in vlans:
        raise Conflict(f"VLAN {fields.vlan} belongs to another network")


def complete(conn: Connection, options: NetworkOptions, outline: Outline, given: Range) -> None:
    """Create the network or the pool of an outline, with the same id. Raise BadRequest, Conflict."""
    rows.drop(conn, outline.id)
    if outline.manager is None:
        _complete_pool(conn, options, outline, given)
        return
    there = network_rows.listed(conn)
    wanted = CreationRequest(
        outline.label,
        given.cidr,
        network_id=outline.id,
        bridge=_free_bridge(options.flat_bridge, there) if outline.manager == FLAT_DHCP else None,
        bridge_interface=outline.interface,
        dns=given.dns,
        vlan_start=outline.vlan,
        project_id=outline.project_id,
    )
    networks.create(conn, options, wanted, outline.manager)
    ports.move_to_network(conn, outline.id)


def drop(conn: Connection, outline_id: str) -> None:
    """Delete an outline, whose row is locked. Raise Conflict if it has ports."""
    count = ports.in_network(conn, outline_id)
    if count:
        raise Conflict(f"Network {outline_id} has {count} ports in use: delete them first")
    rows.drop(conn, outline_id)


def _complete_pool(conn: Connection, options: NetworkOptions, outline: Outline, given: Range) -> None:
    floating_ips.create_pool(
        conn, outline.label, given.cidr, gateway=given.gateway, interface=outline.interface, pool_id=outline.id
    )
    for first, last in given.stretches or [(given.cidr[0], given.cidr[-1])]:
        floating_ips.add(conn, outline.id, first, last, options.own)


def _free_bridge(name: str, there: Sequence[Network]) -> str:
    """Return the name, or the first unused one that counts on from it."""
    taken = {network.bridge for network in there}
    stem = name.rstrip("0123456789")
    first = int(name.removeprefix(stem) or 0)
    names = (name if index == 0 else f"{stem}{first + index}" for index in range(len(taken) + 1))
    return next(one for one in names if one not in taken)
