"""Operations on pools of floating addresses: list, fill, empty."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, summarize_address_range

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import Conflict, InvalidInput, NotFound
from climate.compute.network import floating_ips
from climate.compute.network.networks_without_subnet import Stretch
from climate.compute.store.networks import floating_pools as rows
from climate.compute.store.networks.floating_pools import PoolRow
from climate.database.connections import reading


@dataclass(frozen=True, slots=True)
class PoolFields:
    """Pool fields in a request; None: unchanged, or the default for a new pool."""

    cidr: IPv4Network | None = None
    gateway: IPv4Address | None = None
    interface: str | None = None


def listed(compute: Compute) -> list[PoolRow]:
    """Return all pools, oldest first."""
    with reading(compute.engine) as conn:
        return rows.pools(conn)


def add_range(compute: Compute, name: str, stretch: Stretch, fields: PoolFields) -> str | None:
    """Add a range of addresses to the named pool, created if missing; return its interface.

    Raise InvalidInput for fields that differ from those of the pool, and Conflict if the pool has all addresses. Raise
    BadRequest for addresses outside its network or too many.
    """
    first, last = stretch
    with compute.engine.begin() as conn:
        there = next((pool for pool in rows.pools(conn) if pool.name == name), None)
        interface = fields.interface or compute.network.public_interface
        if there is None:
            pool_id = _create_pool(conn, name, stretch, fields, interface)
        else:
            _check_same(there, fields)
            pool_id, interface = there.id, there.interface
        if not floating_ips.add(conn, pool_id, first, last, compute.network.own):
            raise Conflict(f"{first} to {last}: all usable addresses are in the pool already")
    return interface


def remove_range(compute: Compute, first: IPv4Address, last: IPv4Address) -> None:
    """Remove a range of addresses from its pool. Raise NotFound, Conflict if a project has one of them."""
    with compute.engine.begin() as conn:
        pool = next((one for one in rows.pools(conn) if _has(one, first, last)), None)
        if pool is None:
            raise NotFound(f"No pool has the addresses {first} to {last}.")
        floating_ips.remove(conn, pool.id, first, last)


def _create_pool(conn: Connection, name: str, stretch: Stretch, fields: PoolFields, interface: str | None) -> str:
    """Create a pool for the given network, else for the smallest network with all addresses and a free end."""
    floating_ips.counted(*stretch)
    cidr = fields.cidr or _around(*stretch)
    return floating_ips.create_pool(conn, name, cidr, gateway=fields.gateway, interface=interface)


def _around(first: IPv4Address, last: IPv4Address) -> IPv4Network:
    whole = next(iter(summarize_address_range(first, last)))
    while last not in whole:
        whole = whole.supernet()
    return whole


def _check_same(there: PoolRow, fields: PoolFields) -> None:
    for key in ("interface", "cidr", "gateway"):
        value, present = getattr(fields, key), getattr(there, key)
        if value is not None and str(value) != present:
            raise InvalidInput(f"{key} of pool {there.name} is {present} and cannot be changed")


def _has(pool: PoolRow, first: IPv4Address, last: IPv4Address) -> bool:
    cidr = IPv4Network(pool.cidr)
    return first in cidr and last in cidr
