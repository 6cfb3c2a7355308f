"""Storage pools that can be reserved: register, show, update and delete them, and list their allocations."""

from collections.abc import Sequence
from functools import partial

from flask.typing import ResponseReturnValue

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation import pages
from api.reservation.dates import maybe, stamp
from api.reservation.hosts.schema import AllocationQuery, OneAllocationQuery
from api.reservation.leases.request_options import DryRun, Repeatable, key_of
from api.reservation.resources import resource_allocations
from api.reservation.resources.storage_schema import (
    StorageAllocationAnswer,
    StorageAllocationsAnswer,
    StoragePoolAnswer,
    StoragePoolChanges,
    StoragePoolOrder,
    StoragePoolsAnswer,
)
from api.reservation.view_decorator import PREFIX, Operation, Read, nothing, serve
from climate.domain.policy import Caller
from climate.service import storage_pools
from climate.service.storage_pools import PoolOrder
from climate.store.inventories import Allocated, Inventory

blueprint = Blueprint(
    "storage_pools", __name__, url_prefix=PREFIX, description="Storage that can be reserved, and its allocations."
)


@serve(
    blueprint,
    "GET",
    "/storage-pools",
    Operation("storage_pools:get", {200: StoragePoolsAnswer}, query=pages.Paged),
)
def list_storage_pools(query: Read) -> ResponseReturnValue:
    """List storage pools that can be reserved."""
    part, asker = pages.requested(), caller()
    result = storage_pools.listed(climate(), asker, part.marker, part.fetch)
    return pages.listing("storage_pools", result, part, lambda pool: pool_body(pool, asker))


@serve(
    blueprint,
    "POST",
    "/storage-pools",
    Operation(
        "storage_pools:post",
        {201: StoragePoolAnswer, 200: StoragePoolAnswer},
        query=DryRun,
        headers=Repeatable,
        body=StoragePoolOrder,
        refuses=(404, 409, 422),
        example={"name": "fast", "storage_class": "ssd", "backend": "local", "capacity_gb": 500},
    ),
)
def register_storage_pool(query: Read, headers: Read, body: Read) -> ResponseReturnValue:
    """Register a backend of the cloud as a storage pool.

    A dry run answers 200 instead of 201.
    """
    made = storage_pools.register(climate(), caller(), PoolOrder(**body), key_of(headers), dry_run=query["dry_run"])
    return {"storage_pool": pool_body(made, caller())}, 200 if query["dry_run"] else 201


@serve(
    blueprint,
    "GET",
    "/storage-pools/allocations",
    Operation("storage_pools:allocations", {200: StorageAllocationsAnswer}, query=AllocationQuery),
)
def list_storage_allocations(query: Read) -> ResponseReturnValue:
    """List storage pools with their current and future reservations."""
    find = partial(storage_pools.allocations, climate(), caller())
    return resource_allocations.listing(find, lambda known, taken: _allocation(known, taken, query))


@serve(
    blueprint,
    "GET",
    "/storage-pools/<storage_pool_id>",
    Operation("storage_pools:get", {200: StoragePoolAnswer}, refuses=(404,)),
)
def show_storage_pool(storage_pool_id: str, query: Read) -> ResponseReturnValue:
    """Show a storage pool."""
    return _pool_now(storage_pool_id)


def _pool_now(storage_pool_id: str) -> Read:
    asker = caller()
    return {"storage_pool": pool_body(storage_pools.get(climate(), asker, storage_pool_id), asker)}


@serve(
    blueprint,
    "PUT",
    "/storage-pools/<storage_pool_id>",
    Operation(
        "storage_pools:put",
        {200: StoragePoolAnswer},
        query=DryRun,
        body=StoragePoolChanges,
        refuses=(404, 409),
        example={"closed": True},
        shows=_pool_now,
    ),
)
def change_storage_pool(storage_pool_id: str, query: Read, body: Read) -> ResponseReturnValue:
    """Update a storage pool: its name, its size, or whether it takes new allocations."""
    asker = caller()
    known = storage_pools.change(climate(), asker, storage_pool_id, body, dry_run=query["dry_run"])
    return {"storage_pool": pool_body(known, asker)}


@serve(
    blueprint,
    "DELETE",
    "/storage-pools/<storage_pool_id>",
    Operation("storage_pools:delete", {204: None}, query=DryRun, refuses=(404, 409)),
)
def remove_storage_pool(storage_pool_id: str, query: Read) -> ResponseReturnValue:
    """Delete a storage pool from those that can be reserved."""
    storage_pools.remove(climate(), caller(), storage_pool_id, dry_run=query["dry_run"])
    return nothing()


@serve(
    blueprint,
    "GET",
    "/storage-pools/<storage_pool_id>/allocation",
    Operation("storage_pools:allocations", {200: StorageAllocationAnswer}, query=OneAllocationQuery, refuses=(404,)),
)
def show_storage_allocation(storage_pool_id: str, query: Read) -> ResponseReturnValue:
    """Show one storage pool with its current and future reservations."""
    known, taken = storage_pools.allocation(climate(), caller(), storage_pool_id)
    return {"allocation": _allocation(known, taken, query)}


def pool_body(known: Inventory, asker: Caller) -> dict[str, object]:
    """Return a storage pool; only administrators see its backend."""
    return {
        "id": str(known.id),
        "name": known.name,
        "storage_class": known.resource_class,
        **({"backend": known.backend} if asker.is_admin else {}),
        "capacity_gb": known.total,
        "closed": known.closed,
        "created_at": stamp(known.created_at),
        "updated_at": maybe(stamp, known.updated_at),
    }


def _allocation(known: Inventory, taken: Sequence[Allocated], query: Read) -> dict[str, object]:
    shown = [
        {**body, "size_gb": one.amount, "kept": one.kept} for one, body in resource_allocations.chosen(taken, query)
    ]
    return {"resource_id": str(known.id), "name": known.name, "reservations": shown}
