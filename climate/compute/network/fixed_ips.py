"""Life cycle of servers' fixed addresses: one interface per network, with addresses of its pool."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Address
from uuid import uuid4

import structlog
from sqlalchemy import Connection

from climate.compute.errors import BadRequest, Conflict, MacsCollide, NoMoreAddresses, NotFound, QuotaExceeded
from climate.compute.network import mac_addresses, managers
from climate.compute.network.allocation.allocator import DEALLOCATE, REMOVE
from climate.compute.network.allocation.change_notifications import Change, TellNetwork, silent_network
from climate.compute.network.allocation.grants import Granted
from climate.compute.network.driver import DhcpAction, DhcpEvent
from climate.compute.network.models import FLAT, Network, Vif
from climate.compute.network.network_options import MAC_ATTEMPTS, NetworkOptions
from climate.compute.store.networks import fixed_ips as rows
from climate.compute.store.networks import floating_ips as floating_rows
from climate.compute.store.networks import granted_fixed_ips, network_hosts
from climate.compute.store.networks import networks as network_rows
from climate.compute.store.networks import ports as port_rows
from climate.compute.store.networks.fixed_ips import DeallocatedAddress, NewVif
from climate.compute.store.projects import quotas
from climate.compute.store.servers import servers

log = structlog.get_logger(__name__)

ChooseMac = mac_addresses.Choose


@dataclass(frozen=True, slots=True)
class InterfaceRequest:
    """Servers of one request, which all get interfaces in the same networks."""

    project_id: str
    server_ids: tuple[str, ...]
    networks: tuple[Network, ...]
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Network -> requested address of the only server."""
    vpn: bool = False
    """True for cloudpipes, which have a fixed address of their own."""
    places: tuple[int, ...] = ()
    """Places of the interfaces in these networks; empty: from 0 on."""

    @property
    def numbers(self) -> Sequence[int]:
        return self.places or range(len(self.networks))


def chosen(
    conn: Connection, options: NetworkOptions, project_id: str, wanted: Sequence[str] | None
) -> tuple[Network, ...]:
    """Return the networks of a new server: the requested ones, or by default those of its project.

    Raise BadRequest for a network that the project may not use or that is not served yet, and NoMoreNetworks.
    """
    if wanted is None:
        return tuple(managers.MANAGERS[options.manager].attached(conn, project_id))
    return _usable(conn, project_id, wanted)


def _usable(conn: Connection, project_id: str, wanted: Sequence[str]) -> tuple[Network, ...]:
    if not wanted:
        return ()
    network_rows.lock_shared(conn, wanted)
    result = network_rows.by_ids(conn, wanted, project_id)
    for network_id in wanted:
        if network_id not in result:
            raise BadRequest(f"Network {network_id} could not be found.")
        if not result[network_id].usable:
            raise BadRequest(f"Network {network_id} is not served by any network host yet: try again soon.")
    return tuple(result[network_id] for network_id in wanted)


def check_wanted(networks: Sequence[Network], addresses: Mapping[str, str], count: int) -> None:
    """Raise BadRequest if several servers request one address, or a network does not contain the address."""
    if addresses and count > 1:
        raise BadRequest("Failed to launch instances: max_count cannot be greater than 1 if a fixed_ip is specified.")
    for network in networks:
        if network.id in addresses and IPv4Address(addresses[network.id]) not in network.cidr:
            raise BadRequest(f"Fixed IP address {addresses[network.id]} is not one of network {network.id}.")


def record(conn: Connection, request: InterfaceRequest, granted: Sequence[Granted], now: datetime) -> None:
    """Record the interfaces and addresses that network hosts granted to each server.

    Raise Conflict if an address is no longer free or its grant has expired; QuotaExceeded, MacsCollide.
    """
    check_quota(conn, request.project_id, len(granted) * len(request.server_ids))
    vifs = [
        NewVif(str(uuid4()), interface.mac, grant.network.id, interface.server_id, place)
        for place, grant in zip(request.numbers, granted, strict=True)
        for interface in grant.asked.interfaces
        if interface.server_id in request.server_ids
    ]
    if vifs and len(rows.insert_vifs(conn, vifs)) < len(vifs):
        raise MacsCollide("A chosen MAC was taken by another interface: try again")
    for grant in sorted(granted, key=lambda one: one.network.id):
        _record_one(conn, grant, {server_id: grant.addresses[server_id] for server_id in request.server_ids}, now)
    call_hosts(conn, [grant.network for grant in granted])


def _record_one(conn: Connection, grant: Granted, addresses: Mapping[str, str], now: datetime) -> None:
    asked = grant.asked
    recorded = granted_fixed_ips.record(conn, asked.id, asked.network_id, addresses, now, reserved=asked.vpn)
    lost = sorted(address for server_id, address in addresses.items() if server_id not in recorded)
    if lost:
        log.warning("granted addresses are not free", network=asked.network_id, host=grant.network.host, addresses=lost)
        raise Conflict(
            f"The network host of network {asked.network_id} granted {', '.join(lost)}, which is not free "
            "in that network by now: try again"
        )


def allocate(
    conn: Connection, request: InterfaceRequest, now: datetime, choose: ChooseMac = mac_addresses.choose
) -> None:
    """Allocate an interface and an address in each network for each server.

    Raise NoMoreAddresses if a pool has too few, BadRequest if a requested address is not free, QuotaExceeded,
    MacsCollide.
    """
    if not request.networks or not request.server_ids:
        return
    check_quota(conn, request.project_id, len(request.networks) * len(request.server_ids))
    wanted = [
        (server_id, network.id, place)
        for place, network in zip(request.numbers, request.networks, strict=True)
        for server_id in request.server_ids
    ]
    made = _insert_vifs(conn, wanted, choose)
    # Requests for given addresses wait for each other: lock all of them in the same order.
    for network in sorted({one.id: one for one in request.networks}.values(), key=lambda one: one.id):
        _take(conn, network, request, [vif.id for vif in made if vif.network_id == network.id], now)
    call_hosts(conn, request.networks)


def _take(conn: Connection, network: Network, request: InterfaceRequest, vif_ids: Sequence[str], now: datetime) -> None:
    """Allocate an address to each of these interfaces of the servers; each server has equally many of them."""
    exact = managers.of(network).address(network, request.vpn)
    wanted = request.addresses.get(network.id)
    if wanted is not None and wanted != str(exact):
        if not rows.take_this(conn, network.id, vif_ids[0], wanted, now):
            raise BadRequest(f"Fixed IP address {wanted} is not free in network {network.id}.")
        return
    if exact is None:
        result = len(rows.take(conn, network.id, vif_ids, now))
    else:
        result = sum(rows.take_this(conn, network.id, vif_id, str(exact), now, reserved=True) for vif_id in vif_ids[:1])
    if result < len(vif_ids):
        each = len(vif_ids) // len(request.server_ids)
        raise NoMoreAddresses(f"Zero fixed ips available on network {network.id}.", found=result // each)


def _insert_vifs(conn: Connection, wanted: Sequence[tuple[str, str, int]], choose: ChooseMac) -> list[NewVif]:
    """Insert interfaces, each of a server in a network at its place; return them in this order."""
    vifs = [NewVif(str(uuid4()), "", network_id, server_id, place) for server_id, network_id, place in wanted]
    left = {vif.id: at for at, vif in enumerate(vifs)}
    for _ in range(MAC_ATTEMPTS):
        for at in left.values():
            vifs[at] = vifs[at]._replace(mac=choose())
        for vif_id in rows.insert_vifs(conn, [vifs[at] for at in left.values()]):
            del left[vif_id]
        if not left:
            return vifs
    raise MacsCollide(f"{MAC_ATTEMPTS} MACs in a row were another interface's")


def check_quota(conn: Connection, project_id: str, more: int) -> None:
    """Raise QuotaExceeded if the project may not have `more` further addresses."""
    limit = quotas.limits(conn, project_id)["fixed_ips"]
    if limit >= 0 and rows.used(conn, project_id) + more > limit:
        raise QuotaExceeded(f"Maximum number of fixed ips exceeded: the project may have {limit}.")


def call_hosts(conn: Connection, networks: Collection[Network]) -> None:
    """Call the network hosts whose DHCP servers answer differently now."""
    network_hosts.call(conn, {network.host for network in networks if network.host and managers.of(network).DHCP})


def call_released(conn: Connection, given: Collection[DeallocatedAddress], others: Collection[str] = ()) -> None:
    """Call the network hosts of released addresses that DHCP served, and other hosts."""
    network_hosts.call(conn, {*others, *(one.host for one in given if one.host and one.manager != FLAT)})


def deallocate(conn: Connection, server_id: str, now: datetime, tell: TellNetwork = silent_network) -> None:
    """Delete all interfaces of a server and release its addresses; leased ones become free when the lease ends.

    Ports that a project created are detached, and keep their addresses.
    """
    hosts = port_rows.unbind(conn, server_id, now)
    given = rows.deallocate(conn, server_id, now)
    tell(conn, _released(DEALLOCATE, server_id, given))
    # Read floating addresses after the lock on the fixed ones, to see those associated in the meantime.
    hosts |= floating_rows.let_go(conn, server_id, now)
    call_released(conn, given, hosts)


def _released(method: str, server_id: str, given: Collection[DeallocatedAddress]) -> list[Change]:
    """Return the notifications for each network's allocator when a server releases addresses."""
    by_network: dict[str, list[str]] = {}
    for one in given:
        by_network.setdefault(one.network_id, []).append(one.address)
    return [
        (network_id, method, {"server_id": server_id, "addresses": sorted(addresses)})
        for network_id, addresses in sorted(by_network.items())
    ]


def add(
    conn: Connection, server_id: str, project_id: str, network_id: str, now: datetime, *, address: str | None = None
) -> None:
    """Add an address of a network to a server, any free one or the given one, with an interface if there is none.

    Raise NotFound for an unknown server, BadRequest for a network that the project may not use, and Conflict for an
    address that is not free. Raise NoMoreAddresses, QuotaExceeded.
    """
    network, vif_id = _joined(conn, (server_id, project_id, network_id), mac_addresses.choose)
    if address is not None and not rows.take_this(conn, network.id, vif_id, address, now):
        raise Conflict(f"Fixed IP address {address} is not free in network {network.id}.")
    if address is None and not rows.take(conn, network.id, [vif_id], now):
        raise NoMoreAddresses(f"Zero fixed ips available on network {network.id}.")
    call_hosts(conn, [network])


def add_granted(conn: Connection, server_id: str, project_id: str, granted: Granted, now: datetime) -> None:
    """Add the address that a network host granted to a server. Raises as `add` does."""
    mac = granted.asked.interfaces[0].mac
    network, _ = _joined(conn, (server_id, project_id, granted.asked.network_id), lambda: mac)
    _record_one(conn, granted, granted.addresses, now)
    call_hosts(conn, [network])


def _joined(conn: Connection, whose: tuple[str, str, str], choose: ChooseMac) -> tuple[Network, str]:
    """Return the network and the interface that the server has in it, a new one if it has none but ports of projects.

    `whose`: server, project, network.
    """
    server_id, project_id, network_id = whose
    quotas.lock_limits(conn, project_id)
    if servers.get(conn, server_id, lock=True) is None:
        raise NotFound(f"Instance {server_id} could not be found.")
    network = _usable(conn, project_id, [network_id])[0]
    there = rows.vifs_of(conn, [server_id])
    check_quota(conn, project_id, 1)
    own = next((vif.id for vif in there if vif.network.id == network.id and not vif.kept), None)
    if own is not None:
        return network, own
    return network, _insert_vifs(conn, [(server_id, network.id, next_place(there))], choose)[0].id


def next_place(there: Sequence[Vif]) -> int:
    """Return the place of a further interface of a server."""
    return max((vif.place for vif in there), default=-1) + 1


def remove(
    conn: Connection,
    server_id: str,
    address: str,
    now: datetime,
    tell: TellNetwork = silent_network,
    *,
    vif_id: str | None = None,
) -> None:
    """Remove one address from a server, or from this interface of it.

    Raise NotFound if the server lacks it, Conflict if a floating address uses it.
    """
    given = rows.deallocate(conn, server_id, now, vif_id=vif_id, address=address)
    if not given:
        raise NotFound(f"Instance {server_id} doesn't have fixed ip '{address}'.")
    if floating_rows.stands_for(conn, given[0].network_id, address):
        raise Conflict(f"A floating address is associated with {address}: disassociate it first")
    tell(conn, _released(REMOVE, server_id, given))
    call_released(conn, given)


def note(conn: Connection, event: DhcpEvent, now: datetime) -> None:
    """Record an event of a DHCP client."""
    address, network_id = str(event.address), event.network_id
    if event.what is DhcpAction.RELEASED:
        held = rows.released(conn, network_id, address, event.mac, now)
        if held is None:
            log.error(f"IP {address} released that is not associated", network=network_id, mac=event.mac)
        elif not held:
            log.warning(f"IP {address} released that was not leased", network=network_id, mac=event.mac)
        return
    allocated = rows.leased(conn, network_id, address, event.mac, now)
    if allocated is None:
        log.error(f"IP {address} leased that is not associated", network=network_id, mac=event.mac)
    elif not allocated:
        log.warning(f"IP {address} leased that isn't allocated", network=network_id, mac=event.mac)
