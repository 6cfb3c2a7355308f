"""Bundled allocator: grants addresses by reserving them in the database.

Notifications need no action, because the network host is driven by the same database.
"""

from collections.abc import Mapping
from ipaddress import IPv4Address

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, NoMoreAddresses
from climate.compute.network import managers, networks
from climate.compute.network.allocation.allocator import Allocation, Interface, InUse, Release, Translation
from climate.compute.network.models import Network
from climate.compute.store.networks import granted_fixed_ips as rows


class BundledAllocator:
    """Allocator that grants addresses from the pools of networks."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute

    def allocate_for_instance(self, allocation: Allocation, /) -> Mapping[str, str]:
        """Reserve an address for each interface, all or none. A repeated request gets the same addresses."""
        with self._compute.engine.begin() as conn:
            rows.alone(conn, allocation.id)
            network = networks.get(conn, allocation.network_id)
            granted = rows.addresses_of(conn, allocation.id, allocation.network_id)
            left = [interface for interface in allocation.interfaces if interface.server_id not in granted]
            exact = managers.of(network).address(network, allocation.vpn)
            for one in left:
                if one.address is not None or exact is not None:
                    granted |= self._hold_address(conn, allocation, network, (one, exact))
            macs = {one.server_id: one.mac for one in left if one.address is None and exact is None}
            if macs:
                granted |= rows.hold_free(conn, allocation.id, network.id, macs, self._compute.now(conn))
            if len(granted) < len(allocation.interfaces):
                raise NoMoreAddresses(f"Zero fixed ips available on network {network.id}.", found=len(granted))
        return granted

    def _hold_address(
        self, conn: Connection, allocation: Allocation, network: Network, whose: tuple[Interface, IPv4Address | None]
    ) -> Mapping[str, str]:
        """Reserve the requested address, else the one that such servers have. Return nothing if the latter is taken."""
        one, exact = whose
        address = one.address or str(exact)
        if IPv4Address(address) not in network.cidr:
            raise BadRequest(f"Fixed IP address {address} is not one of network {network.id}.")
        wanted: dict[str, str | bool] = {
            "server_id": one.server_id,
            "mac": one.mac,
            "address": address,
            "reserved": address == str(exact),
        }
        if rows.hold_address(conn, allocation.id, network.id, wanted, self._compute.now(conn)):
            return {one.server_id: address}
        if one.address is not None:
            raise BadRequest(f"Fixed IP address {address} is not free in network {network.id}.")
        return {}

    def add_fixed_ip_to_instance(self, allocation: Allocation, /) -> Mapping[str, str]:
        """Reserve one more address for an interface. Raise Conflict if the requested one is not free."""
        try:
            return self.allocate_for_instance(allocation)
        except BadRequest as refusal:
            raise Conflict(str(refusal)) from None

    def cancel_allocation(self, allocation: Allocation, /) -> None:
        """Release the addresses that are still reserved for these interfaces."""
        with self._compute.engine.begin() as conn:
            rows.alone(conn, allocation.id)
            servers = [interface.server_id for interface in allocation.interfaces]
            rows.release(conn, allocation.id, allocation.network_id, servers, self._compute.now(conn))

    def deallocate_for_instance(self, released: Release, /) -> None:
        """Do nothing: the addresses were released in the database, and DHCP follows it."""

    def remove_fixed_ip_from_instance(self, released: Release, /) -> None:
        """Do nothing, as for a deleted server."""

    def associate_floating_ip(self, change: Translation, /) -> None:
        """Do nothing: the host translates according to the database."""

    def disassociate_floating_ip(self, change: Translation, /) -> None:
        """Do nothing, as for an association."""

    def reconcile(self, in_use: InUse, /) -> None:
        """Do nothing: the beats of the host release expired reservations."""
