"""Reservable floating IPs: add, get, list and remove."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, func, insert, or_, select, update

from climate.database.sql_arrays import in_parameter
from climate.database.violated_constraints import translated
from climate.domain.errors import Conflict, InvalidInput, NotFound
from climate.store import locks
from climate.store.tables.floating_ips import floating_allocations, floating_ips
from climate.store.tables.leases import in_force, leases, reservations


@dataclass(frozen=True, slots=True)
class FloatingIp:
    """An address of an external network, which the cloud leaves to reservations."""

    id: UUID
    number: int
    network_id: str
    subnet_id: str
    address: str
    created_at: datetime
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Allocated:
    """A reservation that holds an address."""

    number: int
    reservation_id: UUID
    lease_id: UUID
    start: datetime
    end: datetime


_COLUMNS = (
    floating_ips.c.id,
    floating_ips.c.number,
    floating_ips.c.network_id,
    floating_ips.c.subnet_id,
    func.host(floating_ips.c.address).label("address"),
    floating_ips.c.created_at,
    floating_ips.c.updated_at,
)
_REGISTERED: Select[Any] = select(*_COLUMNS).where(floating_ips.c.removed_at.is_(None))


def add(conn: Connection, network_id: str, subnet_id: str, address: str, now: datetime) -> FloatingIp:
    """Register an address. Raise Conflict if it is registered already."""
    row = {"network_id": network_id, "subnet_id": subnet_id, "address": address, "created_at": now}
    taken = Conflict(f"The floating IP {address} of network {network_id} is already registered")
    with translated({"uq_floating_ips_address": taken}):
        return FloatingIp(*conn.execute(insert(floating_ips).values(row).returning(*_COLUMNS)).one())


def get(conn: Connection, wanted: UUID, *, lock: bool = False) -> FloatingIp:
    """Return a registered address. Raise NotFound for an unknown id."""
    query = _REGISTERED.where(floating_ips.c.id == wanted)
    row = conn.execute(locks.ordered(query, floating_ips.c.number) if lock else query).one_or_none()
    if row is None:
        raise NotFound(f"Object with {{'floatingip_id': '{wanted}'}} not found")
    return FloatingIp(*row)


def listed(conn: Connection, marker: UUID | None = None, limit: int | None = None) -> list[FloatingIp]:
    """Return all registered addresses, oldest first."""
    query = _REGISTERED.order_by(floating_ips.c.number).limit(limit)
    if marker is not None:
        place = conn.scalar(select(floating_ips.c.number).where(floating_ips.c.id == marker))
        if place is None:
            raise InvalidInput(f"marker {marker} is not the id of a floating IP")
        query = query.where(floating_ips.c.number > place)
    return [FloatingIp(*row) for row in conn.execute(query)]


def remove(conn: Connection, number: int, now: datetime) -> None:
    """Remove the registration of an address."""
    conn.execute(update(floating_ips).where(floating_ips.c.number == number).values(removed_at=now))


def promised(conn: Connection, number: int) -> Sequence[UUID]:
    """Return the leases that hold the address, now or later."""
    query = (
        select(reservations.c.lease_id)
        .join(floating_allocations, floating_allocations.c.reservation_id == reservations.c.id)
        .where(floating_allocations.c.number == number, in_force(floating_allocations))
        .distinct()
    )
    return list(conn.scalars(query))


def allocated(conn: Connection, now: datetime, numbers: Collection[int]) -> list[Allocated]:
    """Return the reservations that hold these addresses, now and later. Dates are the leases'.

    An address can be held for longer: by a lease in its grace period, or by one whose end failed.
    """
    held = floating_allocations
    query = (
        select(held.c.number, held.c.reservation_id, leases.c.id, leases.c.start_date, leases.c.end_date)
        .join(reservations, reservations.c.id == held.c.reservation_id)
        .join(leases, leases.c.id == reservations.c.lease_id)
        .where(in_parameter(held.c.number, "numbers"))
        .where(in_force(held), or_(leases.c.end_date > now, held.c.state == "active"))
        .order_by(held.c.number, leases.c.start_date)
    )
    return [Allocated(*row) for row in conn.execute(query, {"numbers": sorted(numbers)})] if numbers else []
