"""Operations on floating addresses: list, allocate, associate, release."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import InvalidInput, NotFound
from climate.compute.network import floating_ips
from climate.compute.network.managers import MANAGERS
from climate.compute.store.networks import floating_ips as rows
from climate.compute.store.networks import floating_pools
from climate.compute.store.networks.floating_ips import Fixed, Floating
from climate.database.connections import reading


@dataclass(frozen=True, slots=True)
class PortAddress:
    """Port, and one of its addresses; None: the first."""

    port_id: str
    address: str | None = None


@dataclass(frozen=True, slots=True)
class NewFloating:
    """Floating address that a client of the Network API requests."""

    project_id: str
    network_id: str
    """External network, which is a pool."""
    subnet_id: object = None
    """Subnet that the network must have; None: any."""
    address: str | None = None
    is_any_allowed: bool = False
    """True if `address` may be outside the ranges of the pool."""
    description: str = ""
    port: PortAddress | None = None


@dataclass(frozen=True, slots=True)
class ChangedFloating:
    """Change of a floating address by a client of the Network API."""

    is_moved: bool
    """True to associate it with `port`, or to disassociate it if `port` is None."""
    port: PortAddress | None = None
    address: str | None = None
    """Fixed address to associate, if no port is given."""
    description: str | None = None
    """None: unchanged."""


def listed(compute: Compute, project_id: str | None, *, free: bool = False) -> list[Floating]:
    """Return the addresses of a project; None: of all projects. `free` includes unallocated ones."""
    with reading(compute.engine) as conn:
        return rows.listed(conn, project_id, free=free)


def get(compute: Compute, floating_id: str, project_id: str | None) -> Floating:
    """Return an address. Raise NotFound if it is unknown or another project's; project None: any project's."""
    with reading(compute.engine) as conn:
        return floating_ips.get(conn, floating_id, project_id)


def allocate(compute: Compute, project_id: str, pool: str | None) -> Floating:
    """Allocate a free address of the named pool to a project; None: of the default pool.

    Raise NotFound, QuotaExceeded, NoMoreFloatingAddresses.
    """
    with compute.engine.begin() as conn:
        pool_id = floating_ips.pool(conn, pool, compute.network.floating_pool)
        return floating_ips.allocate(conn, project_id, pool_id, compute.now(conn))


def create(compute: Compute, floating: NewFloating) -> Floating:
    """Allocate an address to a project, and associate it with a port if one is given.

    Raise NotFound, InvalidInput for a subnet of another network, QuotaExceeded, and the errors of
    `floating.allocate`, `floating.allocate_this` and `floating.associate`.
    """
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        pool_id = _pool(conn, floating)
        fixed = _fixed(conn, floating.port, floating.project_id)
        project_id, said = floating.project_id, floating.description
        if floating.address is not None and floating.is_any_allowed:
            made = floating_ips.allocate_this(
                conn, project_id, pool_id, now, address=floating.address, description=said
            )
        else:
            made = floating_ips.allocate(conn, project_id, pool_id, now, address=floating.address, description=said)
        if fixed is not None:
            floating_ips.associate(conn, made, fixed, now, compute.network_notifier)
        return floating_ips.get(conn, made.id)


def change(compute: Compute, floating_id: str, project_id: str | None, floating: ChangedFloating) -> Floating:
    """Change the port or the description of an address; return the address.

    Raise NotFound, InvalidInput for an address without a port, and the errors of `floating.associate`.
    """
    with compute.engine.begin() as conn:
        fixed = _fixed(conn, floating.port, project_id)
        there = floating_ips.get(conn, floating_id, project_id)
        if floating.description is not None:
            rows.describe(conn, floating_id, floating.description)
        if fixed is None and floating.address is not None:
            fixed = _fixed(conn, PortAddress(_port(there), floating.address), there.project_id)
        if floating.is_moved or fixed is not None:
            floating_ips.move(conn, there, fixed, compute.now(conn), compute.network_notifier)
        return floating_ips.get(conn, floating_id)


def set_tags(compute: Compute, floating_id: str, project_id: str | None, tags: Sequence[str]) -> None:
    """Replace the tags of an address. Raise NotFound."""
    with compute.engine.begin() as conn:
        floating_ips.get(conn, floating_id, project_id)
        rows.tag(conn, floating_id, tags)


def associate(compute: Compute, floating_id: str, project_id: str | None, fixed_address: str) -> Floating:
    """Associate an address with a fixed one; return its earlier state. Raise NotFound, and the errors of
    `floating.associate`.
    """
    with compute.engine.begin() as conn:
        fixed = floating_ips.fixed(conn, project_id, address=fixed_address)
        there = floating_ips.get(conn, floating_id, project_id)
        floating_ips.associate(conn, there, fixed, compute.now(conn), compute.network_notifier)
    return there


def disassociate(compute: Compute, floating_id: str, project_id: str | None) -> Floating:
    """Disassociate an address; return its earlier state. Raise NotFound, and the errors of `floating.disassociate`."""
    with compute.engine.begin() as conn:
        there = floating_ips.get(conn, floating_id, project_id)
        floating_ips.disassociate(conn, there, compute.now(conn), compute.network_notifier)
    return there


def release(compute: Compute, floating_id: str, project_id: str | None) -> Floating:
    """Release an address to its pool; return its earlier state. Raise NotFound, and the errors of
    `floating.release`.
    """
    with compute.engine.begin() as conn:
        there = floating_ips.get(conn, floating_id, project_id)
        floating_ips.release(conn, there, compute.now(conn), compute.network_notifier)
    return there


def _pool(conn: Connection, floating: NewFloating) -> str:
    result = next((pool for pool in floating_pools.pools(conn) if pool.id == floating.network_id), None)
    if result is None:
        raise NotFound(f"Network {floating.network_id} could not be found, or is not external")
    if floating.subnet_id not in (None, result.subnet_id):
        raise InvalidInput(f"subnet_id must be the subnet of the external network, {result.subnet_id}")
    return result.id


def _fixed(conn: Connection, port: PortAddress | None, project_id: str | None) -> Fixed | None:
    """Return the fixed address of a port. Raise NotFound, also if its network has no floating addresses."""
    if port is None:
        return None
    result = floating_ips.fixed(conn, project_id, port_id=port.port_id, address=port.address)
    if not MANAGERS[result.manager].FLOATING:
        raise NotFound(f"The network of port {port.port_id} has no floating addresses: its manager is {result.manager}")
    return result


def _port(there: Floating) -> str:
    if there.port_id is None:
        raise InvalidInput("fixed_ip_address needs port_id: the floating address is not associated")
    return there.port_id
