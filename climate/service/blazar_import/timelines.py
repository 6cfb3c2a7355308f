"""Allocations of hosts and addresses over time, with the lease of each, to find those that overlap."""

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass

from climate.domain.hosts.shared_capacity import Size, Use, peak
from climate.domain.period import Period


@dataclass(frozen=True, slots=True)
class Entry:
    """Allocation of a resource for a lease; of all of it if `size` is None."""

    lease: str
    during: Period
    size: Size | None = None


class Timelines:
    """Accepted allocations by resource."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, list[Entry]] = defaultdict(list)

    def add(self, resource: Hashable, entry: Entry) -> None:
        self._entries[resource].append(entry)

    def conflict(self, resource: Hashable, wanted: Entry, capacity: Size | None = None) -> str | None:
        """Return a lease that leaves no room for an allocation; None if there is room.

        `capacity` is that of the resource; None if it cannot be shared.
        """
        beside = [entry for entry in self._entries[resource] if entry.during.overlaps(wanted.during)]
        if not beside:
            return None if _fits(wanted.size, capacity) else wanted.lease
        if wanted.size is None or capacity is None:
            return beside[0].lease
        taken = peak([Use(0, entry.during, entry.size) for entry in beside], wanted.during)
        if taken is None:
            return next(entry.lease for entry in beside if entry.size is None)
        together = Size(*(one + other for one, other in zip(taken.parts, wanted.size.parts, strict=True)))
        return None if _fits(together, capacity) else beside[0].lease


def _fits(size: Size | None, capacity: Size | None) -> bool:
    if size is None or capacity is None:
        return True
    return all(one <= whole for one, whole in zip(size.parts, capacity.parts, strict=True))
