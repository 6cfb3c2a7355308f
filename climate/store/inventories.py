"""Inventories: pools of countable resources; add, get, list, change and remove."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, func, insert, or_, select, update

from climate.database.sql_arrays import in_parameter
from climate.database.violated_constraints import translated
from climate.domain.errors import Conflict, InvalidInput, NotFound
from climate.store import locks
from climate.store.tables.inventories import inventories, inventory_allocations
from climate.store.tables.leases import in_force, leases, reservations


@dataclass(frozen=True, slots=True)
class Inventory:
    """Amount of a resource class in one backend of the cloud. `total` is in the unit of its resource type."""

    number: int
    id: UUID
    resource_type: str
    resource_class: str
    name: str
    backend: str
    """Name of the backend in the cloud."""
    total: int
    closed: bool
    """True if no new allocations are accepted."""
    created_at: datetime
    updated_at: datetime | None


@dataclass(frozen=True, slots=True)
class Allocated:
    """A reservation that holds some of an inventory."""

    number: int
    reservation_id: UUID
    lease_id: UUID
    start: datetime
    end: datetime
    amount: int
    kept: bool
    """True if its lease has ended and the resource still exists."""


_COLUMNS = tuple(inventories.c[name] for name in Inventory.__dataclass_fields__)
_REGISTERED: Select[Any] = select(*_COLUMNS).where(inventories.c.removed_at.is_(None))


def add(conn: Connection, row: Mapping[str, object]) -> Inventory:
    """Register an inventory. Raise Conflict if its name or its backend is taken."""
    return _written(conn, insert(inventories).values(**row).returning(*_COLUMNS), row)


def change(conn: Connection, number: int, changes: Mapping[str, object]) -> Inventory:
    """Change a registered inventory. Raise Conflict if its new name is taken."""
    changed = update(inventories).where(inventories.c.number == number).values(**changes)
    return _written(conn, changed.returning(*_COLUMNS), changes)


def _written(conn: Connection, statement: Any, values: Mapping[str, object]) -> Inventory:
    taken = (name for name in ("name", "backend") if name in values)
    with translated(
        {f"uq_inventories_{name}": Conflict(f"Another pool has the {name} {values[name]}") for name in taken}
    ):
        return Inventory(*conn.execute(statement).one())


def get(conn: Connection, resource_type: str, wanted: UUID, *, lock: bool = False) -> Inventory:
    """Return a registered inventory. Raise NotFound for an unknown id."""
    query = _REGISTERED.where(inventories.c.id == wanted, inventories.c.resource_type == resource_type)
    row = conn.execute(locks.ordered(query, inventories.c.number) if lock else query).one_or_none()
    if row is None:
        raise NotFound(f"There is no {resource_type} with the id {wanted}")
    return Inventory(*row)


def listed(
    conn: Connection, resource_type: str, marker: UUID | None = None, limit: int | None = None
) -> list[Inventory]:
    """Return all registered inventories of a resource type, oldest first."""
    query = _REGISTERED.where(inventories.c.resource_type == resource_type).order_by(inventories.c.number).limit(limit)
    if marker is not None:
        place = conn.scalar(select(inventories.c.number).where(inventories.c.id == marker))
        if place is None:
            raise InvalidInput(f"marker {marker} is not the id of a {resource_type}")
        query = query.where(inventories.c.number > place)
    return [Inventory(*row) for row in conn.execute(query)]


def backends(conn: Connection, numbers: set[int]) -> dict[int, str]:
    """Return the backends of inventories, including those that are no longer registered."""
    rows = conn.execute(select(inventories.c.number, inventories.c.backend).where(inventories.c.number.in_(numbers)))
    return {row.number: row.backend for row in rows}


def promised(conn: Connection, number: int) -> list[UUID]:
    """Return leases that hold some of the inventory, now or later, or keep some after their end."""
    held = inventory_allocations
    query = select(reservations.c.lease_id).join(held, held.c.reservation_id == reservations.c.id)
    return list(conn.scalars(query.where(held.c.number == number, in_force(held)).distinct()))


def allocated(conn: Connection, now: datetime, numbers: Collection[int]) -> list[Allocated]:
    """Return the reservations that hold amounts of these inventories, in the order of numbers and starts.

    Dates are the leases'. An amount can be held for longer: in the grace period, where it is kept, and where an end
    failed.
    """
    held = inventory_allocations
    over = leases.c.gone | (leases.c.status == "TERMINATED")
    query = (
        select(
            held.c.number,
            held.c.reservation_id,
            leases.c.id,
            leases.c.start_date,
            leases.c.end_date,
            held.c.amount,
            over,
        )
        .join(reservations, reservations.c.id == held.c.reservation_id)
        .join(leases, leases.c.id == reservations.c.lease_id)
        .where(in_parameter(held.c.number, "numbers"))
        .where(in_force(held), or_(func.upper(held.c.during) > now, held.c.state == "active"))
        .order_by(held.c.number, leases.c.start_date, held.c.reservation_id)
    )
    return [Allocated(*row) for row in conn.execute(query, {"numbers": sorted(numbers)})] if numbers else []
