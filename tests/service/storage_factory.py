"""Storage as tests register it and ask for it, and what is promised of it, counted by the leases."""

from datetime import datetime
from typing import Any

from climate.cloud.fake import FakeCloud
from climate.cloud.volumes import CloudStorage
from climate.context import Climate
from climate.domain.facts import FOREVER, AmountHold
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.status import EventKind, HoldState
from climate.service import storage_pools
from climate.service.storage_pools import PoolOrder
from climate.store.inventories import Inventory
from tests.conftest import ADMIN


def pool(climate: Climate, capacity_gb: int = 100, name: str = "fast", storage_class: str = "ssd") -> Inventory:
    """A registered pool with a backend of its own."""
    assert isinstance(climate.cloud, FakeCloud)
    climate.cloud.storage[name] = CloudStorage(name, 1000)
    return storage_pools.register(climate, ADMIN, PoolOrder(name, storage_class, name, capacity_gb))


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
    found = storage_pools.listed(climate, ADMIN)
    return [
        f"{pool.name} at {moment}: {taken} of {pool.total} GB"
        for pool in found
        for moment in {hold.during.start for hold in holds}
        if (taken := promised(holds, pool.number, moment)) > pool.total
    ]


def counted(known: list[Lease], without: Lease | None = None) -> list[AmountHold]:
    """What counts of the leases, but for one of them."""
    found: list[AmountHold] = []
    for lease in (one for one in known if without is None or one.id != without.id):
        for r in lease.reservations:
            found += [hold for hold in r.amounts if lease.state_of(r, hold) is not HoldState.RELEASED]
    return found


def room(pool: Inventory, holds: list[AmountHold], period: Period) -> int:
    """GB of a pool that nobody holds at any instant of the period, by trying each at which anything begins."""
    begins = {period.start, *(h.during.start for h in holds if period.start < h.during.start < period.end)}
    return pool.total - max(promised(holds, pool.number, moment) for moment in begins)


def fits(pools: list[Inventory], holds: list[AmountHold], asked: dict[str, Any], period: Period) -> bool:
    """Whether volumes of that size can be had, each in one of the pools that are open."""
    lasting = Period(period.start, FOREVER) if asked["on_end"] == "keep" else period
    size = asked["size_gb"] // asked["volumes"]
    there = sum(max(0, room(one, holds, lasting)) // size for one in pools if not one.closed)
    return there >= int(asked["volumes"])


def misplaced(cloud: FakeCloud, known: list[Lease]) -> list[str]:
    """Volumes that no lease has, that outlast theirs without being kept, or that are of another size."""
    owners = {str(r.id): (lease, r) for lease in known for r in lease.reservations}
    wrong: list[str] = []
    for volume in cloud.made_volumes.values():
        lease, r = owners[volume.pool]
        most = int(r.spec["size_gb"]) // int(r.spec["volumes"])
        kept = r.spec["on_end"] == "keep" and lease.event(EventKind.END).is_done_for(r.resource_type)
        if lease.hold_state_of(r) is not (HoldState.RELEASED if volume.kept else HoldState.ACTIVE):
            wrong.append(f"{volume} of {lease.status}")
        if volume.size_gb > most or volume.kept > kept:
            wrong.append(f"{volume} is not as asked for: {dict(r.spec)}")
    return wrong


def overfull(cloud: FakeCloud, pools: list[Inventory]) -> list[str]:
    """Pools whose volumes take more than can be promised of them."""
    made = list(cloud.made_volumes.values())
    taken = {one.name: sum(volume.size_gb for volume in made if volume.backend == one.backend) for one in pools}
    return [f"{taken[one.name]} of {one.total} GB of {one.name}" for one in pools if taken[one.name] > one.total]


def promised(holds: list[AmountHold], number: int, moment: datetime) -> int:
    """GB of a pool that are held at a moment."""
    return sum(hold.amount for hold in holds if hold.number == number and hold.during.start <= moment < hold.during.end)
