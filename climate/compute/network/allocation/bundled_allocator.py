"""The bundled allocator: it grants addresses by holding them in the database, as the manager of their network has it.

All else that an allocator is told is in the database already, by which the host is served.
"""

from collections.abc import Mapping
from ipaddress import IPv4Address

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict, NoMoreAddresses
from climate.compute.network import managers, networks
from climate.compute.network.allocation.allocator import Allocation, Interface, InUse, Release, Translation
from climate.compute.network.models import Network
from climate.compute.store.networks import held_ips as rows


class BookAllocator:
    """Grants addresses of the pools of networks."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute

    def allocate_for_instance(self, asked: Allocation, /) -> Mapping[str, str]:
        """Hold an address for each interface, all of them or none; the same ones for a request that comes again."""
        with self._compute.engine.begin() as conn:
            rows.alone(conn, asked.id)
            network = networks.get(conn, asked.network_id)
            granted = rows.held(conn, asked.id, asked.network_id)
            left = [one for one in asked.interfaces if one.server_id not in granted]
            exact = managers.of(network).address(network, asked.vpn)
            for one in left:
                if one.address is not None or exact is not None:
                    granted |= self._hold_this(conn, asked, network, (one, exact))
            macs = {one.server_id: one.mac for one in left if one.address is None and exact is None}
            if macs:
                granted |= rows.hold(conn, asked.id, network.id, macs, self._compute.now(conn))
            if len(granted) < len(asked.interfaces):
                raise NoMoreAddresses(f"Zero fixed ips available on network {network.id}.", found=len(granted))
        return granted

    def _hold_this(
        self, conn: Connection, asked: Allocation, network: Network, whose: tuple[Interface, IPv4Address | None]
    ) -> Mapping[str, str]:
        """Hold the address that is asked for, else the one that such servers have; nothing when the latter is taken."""
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
        if rows.hold_this(conn, asked.id, network.id, wanted, self._compute.now(conn)):
            return {one.server_id: address}
        if one.address is not None:
            raise BadRequest(f"Fixed IP address {address} is not free in network {network.id}.")
        return {}

    def add_fixed_ip_to_instance(self, asked: Allocation, /) -> Mapping[str, str]:
        """Hold one more address for an interface; Conflict when the one that is asked for is not free."""
        try:
            return self.allocate_for_instance(asked)
        except BadRequest as refusal:
            raise Conflict(str(refusal)) from None

    def cancel_allocation(self, asked: Allocation, /) -> None:
        """Free what is still held for these interfaces."""
        with self._compute.engine.begin() as conn:
            rows.alone(conn, asked.id)
            servers = [one.server_id for one in asked.interfaces]
            rows.give_back(conn, asked.id, asked.network_id, servers, self._compute.now(conn))

    def deallocate_for_instance(self, released: Release, /) -> None:
        """Nothing to do: the addresses were given up in the database, and DHCP follows it."""

    def remove_fixed_ip_from_instance(self, released: Release, /) -> None:
        """Nothing to do, as for a server that is gone."""

    def associate_floating_ip(self, change: Translation, /) -> None:
        """Nothing to do: the host translates what the database says."""

    def disassociate_floating_ip(self, change: Translation, /) -> None:
        """Nothing to do, as for an association."""

    def reconcile(self, in_use: InUse, /) -> None:
        """Nothing to do: what is held for too long is freed at the beats of the host."""
