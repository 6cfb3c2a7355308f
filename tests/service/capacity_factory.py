"""Room for servers, as tests ask for it, and what is promised of hosts, counted without the engine's help."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from climate.context import Climate
from climate.domain.lease import Lease
from climate.domain.status import HoldState
from climate.service.hosts import inventory
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, MEMBER

PARTS = ("vcpus", "memory_mb", "disk_gb")


def servers(amount: int = 1, vcpus: int = 1, affinity: bool | None = None, **more: Any) -> dict[str, Any]:
    """A reservation of room for small servers, of which VCPUs alone are scarce."""
    size = {"vcpus": vcpus, "memory_mb": 128, "disk_gb": 1}
    return {"resource_type": "virtual:instance", "amount": amount, "affinity": affinity, **size, **more}


def slots(lease: Lease) -> dict[int, int]:
    """Slots by host, of all reservations of a lease."""
    found: dict[int, int] = {}
    for hold in (hold for r in lease.reservations for hold in r.holds):
        found[hold.host] = found.get(hold.host, 0) + hold.slots
    return found


def change(climate: Climate, lease: Lease, **spec: Any) -> Lease:
    """Change the one reservation of a lease."""
    wanted = Changes(reservations=[{"id": str(lease.reservations[0].id), **spec}])
    return update.update(climate, MEMBER, lease.id, wanted)


def all_leases(climate: Climate) -> list[Lease]:
    return leases.listed(climate, ADMIN, Listing())


def sizes(climate: Climate) -> dict[int, tuple[int, ...]]:
    """What hosts have, by number."""
    found = inventory.listed(climate, ADMIN)
    return {one.id: (one.own["vcpus"], one.own["memory_mb"], one.own["local_gb"]) for one in found}


def overruns(climate: Climate) -> list[str]:
    """Instants at which a host is promised beyond what it has, or shared while somebody has all of it.

    By the leases themselves and by trying every moment at which anything begins.
    """
    held: dict[int, list[tuple[datetime, datetime, Mapping[str, Any], int]]] = {}
    for lease in all_leases(climate):
        for r in lease.reservations if lease.hold_state is not HoldState.RELEASED else ():
            for hold in r.holds:
                held.setdefault(hold.host, []).append((hold.during.start, hold.during.end, r.spec, hold.slots))
    known = sizes(climate)
    return [
        f"host {host} at {moment}"
        for host, taken in held.items()
        for moment in {start for start, *_ in taken}
        if _overrun(known[host], [(spec, count) for start, end, spec, count in taken if start <= moment < end])
    ]


def _overrun(whole: tuple[int, ...], taken: list[tuple[Mapping[str, Any], int]]) -> bool:
    if any(count == 0 for _, count in taken):
        return len(taken) > 1
    return any(sum(spec[part] * n for spec, n in taken) > has for part, has in zip(PARTS, whole, strict=True))


def hours(moment: datetime, count: float) -> datetime:
    return moment + timedelta(hours=count)


def total(found: Iterable[Lease]) -> int:
    return sum(sum(slots(lease).values()) for lease in found)
