"""Floating addresses of reservations: created at the start of a lease, deleted at its end."""

from collections.abc import Sequence
from ipaddress import IPv4Address

from climate.compute.context import Compute
from climate.compute.errors import Busy, Conflict, NotFound, StaleToken
from climate.compute.network import floating_ips
from climate.compute.network.allocation.allocator import DISASSOCIATE
from climate.compute.store.networks import floating_pools, network_hosts
from climate.compute.store.networks import reserved_floating_ips as rows
from climate.compute.store.networks.reserved_floating_ips import ExternalNetwork
from climate.database.connections import reading

MARK = "blazar"
"""Tag of all reserved addresses, in Blazar's form."""


def find(compute: Compute, network: str) -> tuple[ExternalNetwork, Sequence[tuple[str, str]]] | None:
    """Return the external network by id or name, and its address ranges that the cloud itself uses."""
    own = [(str(address), str(address)) for address in sorted(compute.network.own)]
    with reading(compute.engine) as conn:
        result = rows.outside(conn, network)
        return (result, [*floating_pools.ranges(conn).get(result.id, ()), *own]) if result else None


def lend(compute: Compute, pool: str, project_id: str, at: tuple[str, str], token: int) -> None:
    """Create a reserved address for a project; `at`: id of the external network, and the address.

    Raise StaleToken, NotFound for an unknown network, Busy while another pool has the address, Conflict if a project
    has it.
    """
    network_id, address = at
    floating_ips.check_not_own(compute.network, IPv4Address(address))
    with compute.engine.begin() as conn:
        if not rows.fence(conn, pool, token):
            raise StaleToken
        result = rows.outside(conn, network_id)
        if result is None:
            raise NotFound(f"network {network_id} does not exist")
        loan = {
            "address": address,
            "pool_id": result.id,
            "project_id": project_id,
            "tags": [MARK, f"reservation:{pool}"],
            "pool": pool,
            "token": token,
        }
        if rows.lend(conn, loan):
            return
        other = rows.holder(conn, address)
    if other is not None:
        raise Busy(f"the address {address} belongs to the reservation {other}")
    raise Conflict(f"the address {address} is in use, or not one of {result.cidr}")


def take_back(compute: Compute, pool: str, token: int) -> None:
    """Delete the addresses of a pool even if they are associated, and reject lower tokens from now on. Raise
    StaleToken.
    """
    with compute.engine.begin() as conn:
        if not rows.fence(conn, pool, token):
            raise StaleToken
        gone = rows.take_back(conn, pool)
        network_hosts.call(conn, {one.host for one in gone})
        changes = [(one.network_id, DISASSOCIATE, {"floating": one.floating, "fixed": one.fixed}) for one in gone]
        compute.network_notifier(conn, changes)
