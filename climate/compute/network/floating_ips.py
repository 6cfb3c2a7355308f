"""Floating addresses: pools, owners, and associations with fixed addresses."""

from collections.abc import Collection
from datetime import datetime
from ipaddress import IPv4Address, IPv4Network

from sqlalchemy import Connection

from climate.compute.errors import (
    BadRequest,
    Conflict,
    FloatingAddressInUse,
    Forbidden,
    NetworkError,
    NoMoreFloatingAddresses,
    NotFound,
    QuotaExceeded,
)
from climate.compute.network import subnetting
from climate.compute.network.allocation.allocator import ASSOCIATE, DISASSOCIATE
from climate.compute.network.allocation.change_notifications import TellNetwork, silent_network
from climate.compute.network.managers import MANAGERS
from climate.compute.network.network_options import NetworkOptions
from climate.compute.network.render import interface_names
from climate.compute.store.networks import floating_ips as rows
from climate.compute.store.networks import floating_pools as pool_rows
from climate.compute.store.networks import network_hosts
from climate.compute.store.networks import networks as network_rows
from climate.compute.store.networks.floating_ips import Fixed, Floating
from climate.compute.store.projects import quotas

MOST_AT_ONCE = 65536
"""Maximum number of addresses added to a pool at once."""


def create_pool(
    conn: Connection,
    name: str,
    cidr: IPv4Network,
    *,
    gateway: IPv4Address | None = None,
    interface: str | None = None,
    pool_id: str | None = None,
) -> str:
    """Create an empty pool, which is an external network; return its id.

    Raise Conflict if it exists or overlaps a network of servers; BadRequest.
    """
    subnetting.check_usable(cidr)
    _check_interface(interface)
    if gateway is not None and gateway not in cidr:
        raise BadRequest(f"gateway {gateway} is not in {cidr}")
    # Lock out the creation of networks of servers, which checks for overlapping pools.
    inside = next((one for one in network_rows.taken(conn) if IPv4Network(one).overlaps(cidr)), None)
    if inside is not None:
        raise Conflict(f"{cidr} overlaps {inside}, the range of a network of servers")
    pool_rows.alone(conn)
    if any(IPv4Network(pool.cidr).overlaps(cidr) for pool in pool_rows.pools(conn)):
        raise Conflict(f"{cidr} overlaps the range of another pool")
    where = {"id": pool_id, "gateway": None if gateway is None else str(gateway), "interface": interface}
    made = pool_rows.create_pool(conn, name, str(cidr), where)
    if made is None:
        raise Conflict(f"Floating pool {name} exists already")
    return made


def _check_interface(name: str | None) -> None:
    """Raise BadRequest for a name that no interface of a host can have."""
    try:
        interface_names.interface(name or "lo")
    except NetworkError as error:
        raise BadRequest(str(error)) from None


def add(
    conn: Connection, pool_id: str, first: IPv4Address, last: IPv4Address, own: Collection[IPv4Address] = ()
) -> list[str]:
    """Add a range of addresses to a pool, except hosts' `own`; return those that were missing.

    Raise NotFound, BadRequest for addresses outside the pool's network.
    """
    pool_rows.lock(conn, pool_id)
    result = next((one for one in pool_rows.pools(conn) if one.id == pool_id), None)
    if result is None:
        raise NotFound(f"Floating pool {pool_id} could not be found.")
    count = counted(first, last)
    cidr = IPv4Network(result.cidr)
    if first not in cidr or last not in cidr:
        raise BadRequest(f"{first} to {last} is not inside {cidr}, the network of pool {result.name}")
    spared = {result.gateway, str(cidr[0]), str(cidr[-1])} if cidr.prefixlen < 31 else {result.gateway}
    spared |= {str(one) for one in own}
    wanted = [str(first + index) for index in range(count)]
    return pool_rows.add(conn, pool_id, [address for address in wanted if address not in spared])


def counted(first: IPv4Address, last: IPv4Address) -> int:
    """Return the number of addresses of a range. Raise BadRequest if it is too large for one call."""
    count = int(last) - int(first) + 1
    if not 0 < count <= MOST_AT_ONCE:
        raise BadRequest(f"{first} to {last} must be 1 to {MOST_AT_ONCE} addresses")
    return count


def remove(conn: Connection, pool_id: str, first: IPv4Address, last: IPv4Address) -> None:
    """Remove a range of addresses from a pool. Raise Conflict if a project has one of them."""
    pool_rows.lock(conn, pool_id)
    held = pool_rows.remove(conn, pool_id, str(first), str(last))
    if held is not None:
        raise Conflict(f"Floating address {held} is allocated to a project: release it first")


def drop_pool(conn: Connection, pool_id: str) -> None:
    """Delete a pool with all of its addresses. Raise Conflict if a project has one of them."""
    remove(conn, pool_id, IPv4Address(0), IPv4Address(2**32 - 1))
    pool_rows.drop_pool(conn, pool_id)


def pool(conn: Connection, wanted: str | None, default: str) -> str:
    """Return the id of a pool by id or name; None: the default pool. Raise NotFound."""
    result = pool_rows.pools(conn)
    name = default if wanted is None else wanted
    for one in result:
        if name in (one.id, one.name):
            return one.id
    if wanted is None and len(result) == 1:
        return result[0].id
    raise NotFound(f"Floating pool {name} could not be found.")


def allocate(
    conn: Connection, project_id: str, pool_id: str, now: datetime, *, address: str | None = None, description: str = ""
) -> Floating:
    """Allocate a free address of a pool to a project, any or the given one.

    Raise QuotaExceeded, NoMoreFloatingAddresses; Conflict if the given address is not free.
    """
    _check_quota(conn, project_id)
    wanted = {"project_id": project_id, "now": now, "address": address, "description": description}
    result = rows.allocate(conn, pool_id, wanted)
    if result is None and address is not None:
        raise Conflict(f"Floating address {address} is not free in that pool")
    if result is None:
        raise NoMoreFloatingAddresses
    return get(conn, result)


def allocate_this(
    conn: Connection, project_id: str, pool_id: str, now: datetime, *, address: str, description: str = ""
) -> Floating:
    """Allocate the given address of a pool's network to a project, even one outside the pool's ranges.

    Raise QuotaExceeded; Conflict if the address is taken or not usable.
    """
    _check_quota(conn, project_id)
    wanted = {"project_id": project_id, "now": now, "address": address, "description": description}
    result = rows.allocate(conn, pool_id, wanted) or rows.create(conn, pool_id, wanted)
    if result is None:
        raise Conflict(f"Floating address {address} is not free, or not one of that pool's network")
    return get(conn, result)


def check_not_own(options: NetworkOptions, address: IPv4Address) -> None:
    """Raise Conflict for an address of a network host itself."""
    if address in options.own:
        raise Conflict(f"Floating address {address} is a network host's own")


def _check_quota(conn: Connection, project_id: str) -> None:
    limit = quotas.lock_limits(conn, project_id)["floating_ips"]
    if 0 <= limit <= rows.used(conn, project_id):
        raise QuotaExceeded("Address quota exceeded. You cannot allocate any more addresses")


def get(conn: Connection, floating_id: str, project_id: str | None = None) -> Floating:
    """Return the address, locked. Raise NotFound if it is unknown or another project's; project None: any project."""
    result = rows.get(conn, floating_id)
    if result is None or result.project_id is None or project_id not in (None, result.project_id):
        raise NotFound(f"Floating IP {floating_id} could not be found.")
    return result


def by_address(conn: Connection, address: str, project_id: str | None = None) -> Floating:
    """Return an address by its text, locked. Raise NotFound if nobody has it, Forbidden if another project does."""
    result = rows.by_address(conn, address)
    if result is None or result.project_id is None:
        raise NotFound(f"Address ({address}) is not allocated")
    if project_id not in (None, result.project_id):
        raise Forbidden(f"Address ({address}) is not allocated to your project({project_id})")
    return result


def fixed(conn: Connection, project_id: str | None, **wanted: str | None) -> Fixed:
    """Return a server's fixed address by `port_id`, `server_id` and `address`, else its first one. Raise NotFound."""
    result = rows.fixed(conn, {**wanted, "project_id": project_id})
    if not result:
        named = " ".join(str(value) for value in wanted.values() if value is not None)
        raise NotFound(f"There is no fixed address of {named}")
    return result[0]


def associate(
    conn: Connection, floating: Floating, fixed: Fixed, now: datetime, tell: TellNetwork = silent_network
) -> None:
    """Associate a project's floating address with a fixed one of its servers.

    Raise FloatingAddressInUse if it is associated, and Forbidden for another project's server. Raise Conflict if the
    fixed address has another one or the manager of its network has no floating addresses.
    """
    if floating.fixed_address is not None:
        raise FloatingAddressInUse(
            f"Floating ip {floating.address} is already in use by fixed ip {floating.fixed_address}."
        )
    if fixed.project_id != floating.project_id:
        raise Forbidden(f"Address ({floating.address}) is not allocated to the server's project")
    if not MANAGERS[fixed.manager].FLOATING:
        raise Conflict(f"The network of {fixed.address} has no floating addresses: its manager is {fixed.manager}")
    taken = rows.standing_for(conn, fixed)
    if taken is not None:
        raise Conflict(f"Floating address {taken} is already associated with {fixed.address}")
    rows.associate(conn, floating.id, fixed, now)
    network_hosts.call(conn, [fixed.host] if fixed.host else [])
    tell(conn, [(fixed.network_id, ASSOCIATE, {"floating": floating.address, "fixed": fixed.address})])


def move(
    conn: Connection, floating: Floating, fixed: Fixed | None, now: datetime, tell: TellNetwork = silent_network
) -> None:
    """Associate a floating address with a fixed one, or with none, whatever it is associated with now.

    Raise the errors of `disassociate` and `associate`.
    """
    if fixed is not None and (floating.fixed_network_id, floating.fixed_address) == (fixed.network_id, fixed.address):
        return
    if floating.fixed_address is not None:
        disassociate(conn, floating, now, tell)
    if fixed is not None:
        associate(conn, get(conn, floating.id), fixed, now, tell)


def disassociate(conn: Connection, floating: Floating, now: datetime, tell: TellNetwork = silent_network) -> None:
    """Disassociate a floating address. Raise Conflict if it is not associated, or was assigned with its server."""
    if floating.fixed_address is None or floating.fixed_network_id is None:
        raise Conflict("Address is not associated.")
    if floating.auto_assigned:
        raise Conflict(f"Address ({floating.address}) was assigned with its server: delete the server to release it")
    host = rows.disassociate(conn, floating.id, now)
    network_hosts.call(conn, [host] if host else [])
    change = {"floating": floating.address, "fixed": floating.fixed_address}
    tell(conn, [(floating.fixed_network_id, DISASSOCIATE, change)])


def release(conn: Connection, floating: Floating, now: datetime, tell: TellNetwork = silent_network) -> None:
    """Release a floating address. Raise Conflict if it was assigned with a server or belongs to a reservation."""
    if floating.auto_assigned:
        raise Conflict(f"Address ({floating.address}) was assigned with its server: delete the server to release it")
    if floating.reservation is not None:
        raise Conflict(f"Address ({floating.address}) belongs to a reservation until its end")
    if floating.fixed_address is not None:
        disassociate(conn, floating, now, tell)
    rows.release(conn, floating.id, now)


def auto_assign(
    conn: Connection,
    project_id: str,
    server_ids: tuple[str, ...],
    source: tuple[str, datetime],
    tell: TellNetwork = silent_network,
) -> None:
    """Associate a floating address with the first fixed one of each new server (auto_assign_floating_ip).

    `source`: the pool, and the time. Raise NoMoreFloatingAddresses if there are too few.
    """
    pool_id, now = source
    for server_id in server_ids:
        result = rows.allocate(conn, pool_id, {"project_id": project_id, "now": now, "auto": True})
        if result is None:
            raise NoMoreFloatingAddresses
        associate(conn, get(conn, result), fixed(conn, project_id, server_id=server_id), now, tell)
