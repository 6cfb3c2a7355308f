"""Inventory of reservable floating IPs: register, list, delete, and list their allocations."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from uuid import UUID

from sqlalchemy import Connection

from climate.cloud import ExternalNetwork, ExternalSubnet
from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput, NotFound
from climate.domain.policy import Caller, require
from climate.service.leases import shortages
from climate.service.transaction import run
from climate.store import floating_ips, idempotency
from climate.store.floating_ips import Allocated, FloatingIp
from climate.store.idempotency import Key


def register(
    climate: Climate, caller: Caller, network: str, address: str, key: Key | None = None, *, dry_run: bool = False
) -> FloatingIp:
    """Register an address of an external network, given by id or name, as reservable.

    Raises NotFound for an unknown network. Raises InvalidInput for an address in none of its subnets or in use by
    the cloud itself. Raises Conflict for a registered address.
    """
    require(caller, "floatingips:post")
    with shortages.of_the_cloud():
        result = climate.cloud.find_external(network)
    if result is None:
        raise NotFound(f"There is no external network '{network}'")
    subnet = _subnet(result, IPv4Address(address))
    _check_reservable(subnet, IPv4Address(address))
    place = _ExternalAddress(result.id, subnet.id, address)
    return run(climate, _insert, climate, caller, place, key, keep=not dry_run)


@dataclass(frozen=True, slots=True)
class _ExternalAddress:
    network_id: str
    subnet_id: str
    address: str


def _insert(conn: Connection, climate: Climate, caller: Caller, place: _ExternalAddress, key: Key | None) -> FloatingIp:
    if key and (known := idempotency.earlier(conn, caller, key)):
        return floating_ips.get(conn, UUID(known))
    now = climate.now(conn)
    made = floating_ips.add(conn, place.network_id, place.subnet_id, place.address, now)
    if key:
        idempotency.remember(conn, caller, key, str(made.id), now)
    return made


def _subnet(network: ExternalNetwork, address: IPv4Address) -> ExternalSubnet:
    """Return the subnet of an address; raise InvalidInput if there is none."""
    known = {subnet.cidr: subnet for subnet in network.subnets}
    cidr = next((cidr for cidr in known if address in IPv4Network(cidr)), None)
    if cidr is None:
        message = ", ".join(known) or "there are none"
        raise InvalidInput(f"floating_ip_address {address} is in no subnet of the network; its subnets are: {message}")
    return known[cidr]


def _check_reservable(subnet: ExternalSubnet, address: IPv4Address) -> None:
    """Raise InvalidInput for an address of the subnet that no server can have, or that the cloud allocates itself."""
    cidr, whole = subnet.cidr, IPv4Network(subnet.cidr)
    edges = (whole.network_address, whole.broadcast_address) if whole.prefixlen < 31 else ()
    if address in edges:
        raise InvalidInput(f"floating_ip_address {address} is the first or last of {cidr}, which no server can have")
    if subnet.gateway is not None and address == IPv4Address(subnet.gateway):
        raise InvalidInput(f"floating_ip_address {address} is the gateway of {cidr}")
    for first, last in subnet.handed_out:
        if IPv4Address(first) <= address <= IPv4Address(last):
            raise InvalidInput(
                f"floating_ip_address {address} is in {first} - {last}, which the cloud allocates itself; "
                f"name another address of {cidr}"
            )


def get(climate: Climate, caller: Caller, floatingip_id: str) -> FloatingIp:
    """Return a registered address; raise NotFound for an unknown id."""
    require(caller, "floatingips:get")
    return run(climate, floating_ips.get, _id(floatingip_id))


def listed(climate: Climate, caller: Caller, marker: str | None = None, limit: int | None = None) -> list[FloatingIp]:
    """Return all registered addresses, in one statement; raise InvalidInput for an unknown marker."""
    require(caller, "floatingips:get")
    after = None if marker is None else marker_id(marker)
    return run(climate, floating_ips.listed, after, limit)


def remove(climate: Climate, caller: Caller, floatingip_id: str, *, dry_run: bool = False) -> None:
    """Unregister an address; raise Conflict with the number of leases that hold it, now or later."""
    require(caller, "floatingips:delete")
    run(climate, _delete, climate, floatingip_id, keep=not dry_run)


def _delete(conn: Connection, climate: Climate, floatingip_id: str) -> None:
    known = floating_ips.get(conn, _id(floatingip_id), lock=True)
    count = len(floating_ips.promised(conn, known.number))
    if count:
        leases = "1 lease counts" if count == 1 else f"{count} leases count"
        raise Conflict(f"Can't delete floating IP {known.address}. It is reserved: {leases} on it")
    floating_ips.remove(conn, known.number, climate.now(conn))


def allocations(
    climate: Climate, caller: Caller, marker: str | None = None, limit: int | None = None
) -> list[tuple[FloatingIp, list[Allocated]]]:
    """Return a page of all addresses with their present and future allocations."""
    require(caller, "floatingips:allocations")
    after = None if marker is None else marker_id(marker)
    return run(climate, _read_allocations, climate, limit, after)


def _read_allocations(
    conn: Connection, climate: Climate, limit: int | None, after: UUID | None
) -> list[tuple[FloatingIp, list[Allocated]]]:
    known = {one.number: one for one in floating_ips.listed(conn, after, limit)}
    held: dict[int, list[Allocated]] = {number: [] for number in known}
    for one in floating_ips.allocated(conn, climate.now(conn), known):
        held[one.number].append(one)
    return [(known[number], taken) for number, taken in held.items()]


def allocation(climate: Climate, caller: Caller, floatingip_id: str) -> tuple[FloatingIp, list[Allocated]]:
    """Return one address with its present and future allocations."""
    require(caller, "floatingips:allocations")
    return run(climate, _read_allocation, climate, floatingip_id)


def _read_allocation(conn: Connection, climate: Climate, floatingip_id: str) -> tuple[FloatingIp, list[Allocated]]:
    known = floating_ips.get(conn, _id(floatingip_id))
    return known, floating_ips.allocated(conn, climate.now(conn), [known.number])


def _id(text: str) -> UUID:
    """Parse an id of a request; raise NotFound unless it is a UUID."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(f"Object with {{'floatingip_id': '{text}'}} not found") from None


def marker_id(marker: str) -> UUID:
    """Parse the id of the last row of the page before; raise InvalidInput unless it is a UUID."""
    try:
        return UUID(marker)
    except ValueError:
        raise InvalidInput(f"marker {marker} is not the id of a floating IP") from None
