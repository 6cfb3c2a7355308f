"""Storage as tests register it and ask for it, and what is promised of it, counted by the leases."""

from datetime import datetime
from typing import Any

from climate.cloud.fake import FakeCloud
from climate.cloud.volumes import CloudStorage
from climate.context import Climate
from climate.domain.facts import AmountHold
from climate.domain.lease import Lease
from climate.domain.status import HoldState
from climate.service import storage
from climate.service.storage import PoolOrder
from climate.store.inventory_pools import Inventory
from tests.conftest import ADMIN


def pool(climate: Climate, capacity_gb: int = 100, name: str = "fast", storage_class: str = "ssd") -> Inventory:
    """A registered pool with a backend of its own."""
    assert isinstance(climate.cloud, FakeCloud)
    climate.cloud.storage[name] = CloudStorage(name, 1000)
    return storage.register(climate, ADMIN, PoolOrder(name, storage_class, name, capacity_gb))


def storage_wanted(size_gb: int = 10, **more: Any) -> dict[str, Any]:
    """A reservation of storage, with what the API adds where it is not said."""
    asked = {"size_gb": size_gb, "storage_class": "ssd", "volumes": 1, "on_end": "delete"}
    return {"resource_type": "storage:pool", **asked, **more}


def amounts(lease: Lease) -> dict[int, int]:
    """GB by the number of the pool, of all reservations of a lease."""
    found: dict[int, int] = {}
    for hold in (hold for r in lease.reservations for hold in r.amounts):
        found[hold.number] = found.get(hold.number, 0) + hold.amount
    return found


def overruns(climate: Climate, known: list[Lease]) -> list[str]:
    """Instants at which a pool is promised beyond its capacity, by trying every moment at which anything begins."""
    holds: list[AmountHold] = []
    for lease in known:
        for one in lease.reservations:
            holds += [hold for hold in one.amounts if lease.state_of(one, hold) is not HoldState.RELEASED]
    found = storage.listed(climate, ADMIN)
    return [
        f"{pool.name} at {moment}: {taken} of {pool.total} GB"
        for pool in found
        for moment in {hold.during.start for hold in holds}
        if (taken := promised(holds, pool.number, moment)) > pool.total
    ]


def promised(holds: list[AmountHold], number: int, moment: datetime) -> int:
    """GB of a pool that are held at a moment."""
    return sum(hold.amount for hold in holds if hold.number == number and hold.during.start <= moment < hold.during.end)
