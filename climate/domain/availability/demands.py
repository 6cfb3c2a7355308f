"""Demand of one reservation in a search, and its free times. Times are whole seconds since 1970.

Begins are rounded down and ends up, so that a period that the search calls free is free.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import heappushpop
from itertools import accumulate

from climate.domain.availability.gaps import FAR, Gaps, Steps
from climate.domain.hosts.min_cost_flow import Whole
from climate.domain.hosts.packing import Rooms, Slots
from climate.domain.period import Period

Resources = Mapping[str, int]

HOSTS, ADDRESSES, AMOUNTS = "hosts", "addresses", "amounts"
"""Kinds of numbers that climate's own resource types choose from."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """Period in which a lease may lie, and the present time."""

    period: Period
    now: datetime
    in_maintenance: bool = False
    """True if maintenance windows count as free time."""


@dataclass(frozen=True, slots=True)
class WholeDemand:
    """Whole hosts or addresses: `least` to `most` of the numbers in `gaps`, where they are free."""

    kind: str
    """Kind of the numbers. Demands of one kind choose from the same numbers."""
    least: int
    most: int
    tail: int
    """Seconds after the lease for which they have to be free too: the grace and cleaning time."""
    gaps: Gaps
    must: frozenset[int] = frozenset()
    """Numbers that have to be among them."""
    preemptible: bool = False
    """True for hosts that may be taken for ordinary leases."""

    @property
    def is_possible(self) -> bool:
        """Return whether enough of them exist, whatever holds them."""
        numbers = self.gaps.numbers
        return len(numbers) >= self.least and all(number in numbers for number in self.must)

    def free(self, start: int, end: int) -> list[int]:
        """Return the numbers that are free for a lease from `start` to `end`."""
        return self.gaps.free(start, end + self.tail)

    def number(self, start: int, end: int) -> int:
        """Return how many are free for a lease from `start` to `end`."""
        return len(self.free(start, end))

    def demanded(self, start: int, end: int) -> Whole:
        return Whole(self.free(start, end), self.least, self.most, self.must)

    def changes(self, length: int) -> Sequence[int]:
        """Return the times at which more may become free for a lease of that length, ascending."""
        return self.gaps.lasting(length + self.tail)[0]

    def counts(self, length: int) -> Steps:
        """Return the number that is free for a lease of that length, by its start."""
        return self.gaps.starts(length + self.tail)

    def level(self) -> Steps:
        """Return the number that is free at each time."""
        return self.gaps.starts(1)


@dataclass(frozen=True, slots=True)
class Profile:
    """Free resources of a shared host along time: `rooms[i]` from `times[i - 1]` on.

    A room is None while the host is held as a whole.
    """

    times: Sequence[int]
    rooms: Sequence[Resources | None]

    @classmethod
    def of(cls, capacity: Resources, uses: Iterable[tuple[int, int, Resources | None]]) -> "Profile":
        """Return the profile of a host with uses of (begin, end, resources); None uses the whole host."""
        edges: dict[int, list[tuple[int, Resources | None]]] = {}
        for begin, end, taken in uses:
            edges.setdefault(begin, []).append((1, taken))
            edges.setdefault(end, []).append((-1, taken))
        times, room, lent = sorted(edges), dict(capacity), 0
        rooms: list[Resources | None] = [dict(capacity)]
        for moment in times:
            for sign, taken in edges[moment]:
                lent += sign if taken is None else 0
                for name, amount in (taken or {}).items():
                    room[name] = room.get(name, 0) - sign * amount
            rooms.append(None if lent else dict(room))
        return cls(times, rooms)

    def room(self, start: int, until: int) -> Resources | None:
        """Return what is free throughout; None if the host is held as a whole at some time."""
        first, last = bisect_right(self.times, start), bisect_left(self.times, until)
        found = self.rooms[first]
        for one in self.rooms[first + 1 : last + 1]:
            if found is None or one is None:
                return None
            found = {name: min(amount, one[name]) for name, amount in found.items()}
        return found


@dataclass(frozen=True, slots=True)
class SharedDemand:
    """Slots of one size on hosts that others may share, or volumes of storage pools."""

    kind: str
    amount: int
    size: Resources
    tail: int
    profiles: Mapping[int, Profile]
    affinity: bool | None = None
    lasting: bool = False
    """True if it is kept after the lease, and hence has to be free for ever."""

    @property
    def least(self) -> int:
        return self.amount

    @property
    def is_possible(self) -> bool:
        """Return whether there is room for them on empty hosts."""
        empty = {number: profile.rooms[0] or {} for number, profile in self.profiles.items()}
        return self._worth(empty.values()) >= self.amount

    def until(self, end: int) -> int:
        """Return the time up to which the slots of a lease that ends at `end` have to be free."""
        return FAR if self.lasting else end + self.tail

    def free(self, start: int, end: int) -> dict[int, Resources]:
        """Return what is free on each host for a lease from `start` to `end`, where a slot fits."""
        until, found = self.until(end), {}
        for number, profile in self.profiles.items():
            room = profile.room(start, until)
            if room is not None and self._fit(room):
                found[number] = room
        return found

    def in_stages(self, free: Mapping[int, Resources], start: int, stages: Sequence[int]) -> tuple[Slots, Rooms]:
        """Return the slots and what is free of the hosts in `free`, with each resource counted once for each stage.

        A stage is a time up to which a demand of the lease needs its slots; the last one is that of this demand.
        Demands that end earlier leave their resources to the others after their own stage.
        """
        rooms: dict[int, dict[str, int]] = {}
        for number in free:
            at_stages = enumerate(self.profiles[number].room(start, stage) or {} for stage in stages)
            rooms[number] = {_staged(name, at): amount for at, room in at_stages for name, amount in room.items()}
        size = {_staged(name, at): part for at in range(len(stages)) for name, part in self.size.items()}
        return replace(self.demanded(free), size=size), rooms

    def number(self, start: int, end: int) -> int:
        """Return how many slots are free for a lease from `start` to `end`."""
        return sum(self._fit(room) for room in self.free(start, end).values())

    def demanded(self, rooms: Mapping[int, Resources]) -> Slots:
        return Slots(list(rooms), self.amount, self.size, self.affinity)

    def suffices(self, rooms: Mapping[int, Resources]) -> bool:
        """Return whether the slots fit, if nothing else is asked for."""
        return self._worth(rooms.values()) >= self.amount

    def changes(self, length: int) -> Sequence[int]:
        """Return the times at which more may become free for a lease, whatever its length, ascending."""
        return sorted({moment for profile in self.profiles.values() for moment in profile.times})

    def level(self) -> Steps:
        """Return the number of slots that fit at each time."""
        total, turns = 0, list[tuple[int, int]]()
        for profile in self.profiles.values():
            worth = [self._fit(room or {}) for room in profile.rooms]
            total += worth[0]
            turns += [(at, after - before) for at, before, after in zip(profile.times, worth, worth[1:], strict=False)]
        turns.sort(key=lambda turn: (turn[0], -turn[1]))
        return Steps([at for at, _ in turns], list(accumulate((change for _, change in turns), initial=total)))

    def _fit(self, room: Resources) -> int:
        return max(0, min((room.get(name, 0) // part for name, part in self.size.items() if part), default=self.amount))

    def _worth(self, rooms: Iterable[Resources]) -> int:
        fits = [self._fit(room) for room in rooms]
        if self.affinity is None:
            return sum(fits)
        return max(fits, default=0) if self.affinity else sum(fit > 0 for fit in fits)


def _staged(name: str, stage: int) -> str:
    return f"{name}/{stage}"


Demand = WholeDemand | SharedDemand


def latest_ends(demand: WholeDemand, length: int, starts: Iterable[int]) -> Iterator[int]:
    """Yield for each start, ascending, the latest end of a lease of that length or more; an earlier time if none fits.

    A gap that is over ends before the start. So among all gaps so far the one in the place of `least` is the answer.
    """
    begins, ends = demand.gaps.lasting(length + demand.tail)
    longest, place = [-FAR] * demand.least, 0
    for start in starts:
        while place < len(begins) and begins[place] <= start:
            heappushpop(longest, ends[place])
            place += 1
        yield longest[0] - demand.tail
