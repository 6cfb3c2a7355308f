"""Inventory of reservable storage pools: register, list, update, delete, and list their allocations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput, NotFound
from climate.domain.facts import FOREVER
from climate.domain.period import Period
from climate.domain.policy import Caller, require
from climate.service.leases import shortages
from climate.service.transaction import run
from climate.store import idempotency
from climate.store import inventories as inventory_pools
from climate.store.allocation import inventories
from climate.store.idempotency import Key
from climate.store.inventories import Allocated, Inventory

RESOURCE_TYPE = "storage:pool"


@dataclass(frozen=True, slots=True)
class PoolOrder:
    """Pool to register. `backend` is the cloud's name of the backend for its volumes."""

    name: str
    storage_class: str
    backend: str
    capacity_gb: int


def register(
    climate: Climate, caller: Caller, order: PoolOrder, key: Key | None = None, *, dry_run: bool = False
) -> Inventory:
    """Register a backend of the cloud as reservable storage.

    Raises NotFound for an unknown backend, InvalidInput if it is smaller than `capacity_gb`, and Conflict if its
    name or the backend is taken.
    """
    require(caller, "storage_pools:post")
    _check_capacity(climate, order.backend, order.capacity_gb)
    return run(climate, _insert, climate, caller, order, key, keep=not dry_run)


def _insert(conn: Connection, climate: Climate, caller: Caller, order: PoolOrder, key: Key | None) -> Inventory:
    if key and (known := idempotency.earlier(conn, caller, key)):
        return inventory_pools.get(conn, RESOURCE_TYPE, UUID(known))
    now = climate.now(conn)
    row = {
        "resource_type": RESOURCE_TYPE,
        "resource_class": order.storage_class,
        "name": order.name,
        "backend": order.backend,
        "total": order.capacity_gb,
        "created_at": now,
    }
    made = inventory_pools.add(conn, row)
    if key:
        idempotency.remember(conn, caller, key, str(made.id), now)
    return made


def _check_capacity(climate: Climate, backend: str, capacity_gb: int) -> None:
    with shortages.of_the_cloud():
        result = climate.cloud.find_storage(backend)
    if result is None:
        raise NotFound(f"The cloud has no storage backend '{backend}'")
    if capacity_gb > result.capacity_gb:
        raise InvalidInput(
            f"capacity_gb is {capacity_gb}, and the backend {backend} has {result.capacity_gb} GB: "
            f"give at most {result.capacity_gb}"
        )


def get(climate: Climate, caller: Caller, pool_id: str) -> Inventory:
    """Return a registered pool; raise NotFound for an unknown id."""
    require(caller, "storage_pools:get")
    return run(climate, inventory_pools.get, RESOURCE_TYPE, _id(pool_id))


def listed(climate: Climate, caller: Caller, marker: str | None = None, limit: int | None = None) -> list[Inventory]:
    """Return all registered pools; raise InvalidInput for an unknown marker."""
    require(caller, "storage_pools:get")
    after = None if marker is None else _marker(marker)
    return run(climate, inventory_pools.listed, RESOURCE_TYPE, after, limit)


def change(
    climate: Climate, caller: Caller, pool_id: str, changes: Mapping[str, Any], *, dry_run: bool = False
) -> Inventory:
    """Change `name`, `capacity_gb` or `closed` of a pool.

    Raises Conflict if more is promised of it at one instant than it would have, and InvalidInput if its backend
    is smaller.
    """
    require(caller, "storage_pools:put")
    capacity = changes.get("capacity_gb")
    if capacity is not None:
        _check_capacity(climate, get(climate, caller, pool_id).backend, capacity)
    return run(climate, _write_changes, climate, pool_id, changes, capacity, keep=not dry_run)


def _write_changes(
    conn: Connection, climate: Climate, pool_id: str, changes: Mapping[str, object], capacity: int | None
) -> Inventory:
    known = inventory_pools.get(conn, RESOURCE_TYPE, _id(pool_id), lock=True)
    now = climate.now(conn)
    peak = inventories.peaks(conn, [known.number], Period(now, FOREVER)).get(known.number, 0)
    if capacity is not None and capacity < peak:
        raise Conflict(
            f"capacity_gb of pool {known.name} cannot become {capacity}: leases count on {peak} GB of it at once"
        )
    renamed = {"total" if key == "capacity_gb" else key: value for key, value in changes.items()}
    return inventory_pools.change(conn, known.number, {**renamed, "updated_at": now})


def remove(climate: Climate, caller: Caller, pool_id: str, *, dry_run: bool = False) -> None:
    """Unregister a pool; raise Conflict with the number of leases that hold it or keep volumes there."""
    require(caller, "storage_pools:delete")
    run(climate, _delete, climate, pool_id, keep=not dry_run)


def _delete(conn: Connection, climate: Climate, pool_id: str) -> None:
    known = inventory_pools.get(conn, RESOURCE_TYPE, _id(pool_id), lock=True)
    count = len(inventory_pools.promised(conn, known.number))
    if count:
        leases = "1 lease counts" if count == 1 else f"{count} leases count"
        raise Conflict(f"Can't delete storage pool {known.name}. It is reserved: {leases} on it")
    inventory_pools.change(conn, known.number, {"removed_at": climate.now(conn)})


def allocations(
    climate: Climate, caller: Caller, marker: str | None = None, limit: int | None = None
) -> list[tuple[Inventory, list[Allocated]]]:
    """Return a page of all pools with their present and future allocations."""
    require(caller, "storage_pools:allocations")
    after = None if marker is None else _marker(marker)
    return run(climate, _read_allocations, climate, limit, after)


def _read_allocations(
    conn: Connection, climate: Climate, limit: int | None, after: UUID | None
) -> list[tuple[Inventory, list[Allocated]]]:
    known = inventory_pools.listed(conn, RESOURCE_TYPE, after, limit)
    held: dict[int, list[Allocated]] = {one.number: [] for one in known}
    for one in inventory_pools.allocated(conn, climate.now(conn), held):
        held[one.number].append(one)
    return [(one, held[one.number]) for one in known]


def allocation(climate: Climate, caller: Caller, pool_id: str) -> tuple[Inventory, list[Allocated]]:
    """Return one pool with its present and future allocations."""
    require(caller, "storage_pools:allocations")
    return run(climate, _read_allocation, climate, pool_id)


def _read_allocation(conn: Connection, climate: Climate, pool_id: str) -> tuple[Inventory, list[Allocated]]:
    known = inventory_pools.get(conn, RESOURCE_TYPE, _id(pool_id))
    return known, inventory_pools.allocated(conn, climate.now(conn), [known.number])


def _id(text: str) -> UUID:
    """Parse an id of a request; raise NotFound unless it is a UUID."""
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(f"There is no {RESOURCE_TYPE} with the id {text}") from None


def _marker(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput(f"marker {text} is not the id of a {RESOURCE_TYPE}") from None
