"""Capacity of hosts that reservations share: slots for servers of one size, at every instant.

A slot is room for one server. Periods are half-open: a use that ends at the start of another does not overlap
it.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from uuid import UUID, uuid5

from climate.domain.period import Period

SERVER_GROUP = "server-group"

EVER, EVER_AFTER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a server, of a host, or of a use. Memory is in MB, disk in GB."""

    vcpus: int
    memory_mb: int
    disk_gb: int

    @property
    def parts(self) -> tuple[int, int, int]:
        return self.vcpus, self.memory_mb, self.disk_gb

    def times(self, count: int) -> "Size":
        return Size(*(count * part for part in self.parts))


NOTHING = Size(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Use:
    """Use of a host for a period; the whole host if `size` is None."""

    host: int
    during: Period
    size: Size | None


@dataclass(frozen=True, slots=True)
class Room:
    """Number of slots of a host that are free throughout a window."""

    host: int
    free: int


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """Request for slots of a size. `affinity` True: all on one host; False: each on another host."""

    size: Size
    amount: int
    affinity: bool | None = None
    kept: Mapping[int, int] = field(default_factory=dict)
    """Slots by host that are in use already and must stay there."""

    @property
    def least(self) -> int:
        """Return the number of free slots below which a host is of no use."""
        return self.amount if self.affinity else 1

    @property
    def most(self) -> int:
        """Return the number of slots beyond which a host is of no more use."""
        return 1 if self.affinity is False else self.amount

    def worth(self, free: int) -> int:
        """Return the number of slots that a host with so many free ones contributes."""
        return min(free, self.most) if free >= self.least else 0


def group_id(reservation_id: UUID) -> str:
    """Id of the server group that keeps the affinity of a reservation."""
    return str(uuid5(reservation_id, SERVER_GROUP))


def choose(rooms: Sequence[Room], order: SlotRequest) -> dict[int, int] | None:
    """Return slots by host, taking as many as possible from each room in order; None if they do not suffice."""
    worth = {room.host: order.worth(room.free) for room in rooms}
    if any(worth.get(host, 0) < slots for host, slots in order.kept.items()):
        return None
    chosen = dict(order.kept)
    left = order.amount - sum(chosen.values())
    for host in (*order.kept, *(room.host for room in rooms)):
        more = min(left, worth[host] - chosen.get(host, 0))
        if more > 0:
            chosen[host] = chosen.get(host, 0) + more
            left -= more
    return chosen if left <= 0 else None


def fitting(order: SlotRequest, rooms: Iterable[Room]) -> int:
    """Return the maximum number of slots for an order of that kind, regardless of its amount."""
    free = [room.free for room in rooms if room.free > 0]
    if order.affinity is None:
        return sum(free)
    return max(free, default=0) if order.affinity else len(free)


def peak(uses: Iterable[Use], window: Period) -> Size | None:
    """Return the maximum use of a host at any instant of the window; None if it is used as a whole at some instant.

    Each component has its own maximum. This suffices, because the scarcest component limits the slots.
    """
    steps: list[tuple[datetime, int, Size]] = []
    for use in uses:
        if not use.during.overlaps(window):
            continue
        if use.size is None:
            return None
        steps += [(max(use.during.start, window.start), 1, use.size), (use.during.end, -1, use.size)]
    taken, most = [0, 0, 0], [0, 0, 0]
    for _, sign, size in sorted(steps, key=lambda step: step[:2]):  # ends before starts of the same instant
        taken = [now + sign * part for now, part in zip(taken, size.parts, strict=True)]
        most = [max(pair) for pair in zip(most, taken, strict=True)]
    return Size(*most)


def free_slots(capacity: Size, taken: Size | None, order: SlotRequest) -> int:
    """Return the number of additional servers that fit on a host with that use, up to the amount of the order."""
    if taken is None:
        return 0
    parts = zip(capacity.parts, taken.parts, order.size.parts, strict=True)
    fits = [(whole - used) // one for whole, used, one in parts if one]
    return max(0, min([order.amount, *fits]))


def by_host(uses: Iterable[Use]) -> dict[int, list[Use]]:
    result: dict[int, list[Use]] = {}
    for use in uses:
        result.setdefault(use.host, []).append(use)
    return result


def earliest_fit(
    capacities: Mapping[int, Size], uses: Sequence[Use], order: SlotRequest, window: Period, known_until: datetime
) -> datetime | None:
    """Return the start of the first window of that length, from `window` on, in which the order fits.

    None if there is none before `known_until`; later uses are not known. For each host, the changes of its worth
    are computed. Then one pass over time suffices. A window can only begin to fit where some use ends.
    """
    length, known = window.end - window.start, by_host(uses)
    worth = {host: order.worth(free_slots(size, NOTHING, order)) for host, size in capacities.items()}
    turns: list[tuple[datetime, bool, int, int]] = []
    for host, taken in known.items():
        there = _turns(capacities[host], taken, order, length)
        turns += [(at, later, host, value) for at, later, value in there if at >= window.start]
        worth[host] = next((value for at, _, value in reversed(there) if at < window.start), worth[host])
    return _first_enough(turns, worth, order, known_until - length)


Turn = tuple[datetime, bool, int]
"""Time of a change of a host's worth, whether it applies only just after that time, and the new worth."""


def _turns(capacity: Size, uses: Sequence[Use], order: SlotRequest, length: timedelta) -> list[Turn]:
    """Yield the worth of a host to a window, by the window's start: more where a use ends, less after it meets one.

    The window slides over the stretches of the host once. `low` are those in it with less room than all after
    them.
    """
    ends = {(use.during.end, False) for use in uses}
    meets = {(use.during.start - length, True) for use in uses}
    stretches = _stretches(capacity, uses, order)
    result: list[Turn] = []
    low: deque[Stretch] = deque()
    ahead = 0
    for at, later in sorted(ends | meets):
        start = _after(at) if later else at
        while ahead < len(stretches) and stretches[ahead].begin < start + length:
            while low and low[-1].free >= stretches[ahead].free:
                low.pop()
            low.append(stretches[ahead])
            ahead += 1
        while low[0].end <= start:
            low.popleft()
        result.append((at, later, order.worth(low[0].free)))
    return result


@dataclass(frozen=True, slots=True)
class Stretch:
    """Period in which a host has constant room."""

    begin: datetime
    end: datetime
    free: int


def _stretches(capacity: Size, uses: Iterable[Use], order: SlotRequest) -> list[Stretch]:
    """Divide time into stretches with the free slots of a host with those uses."""
    steps: dict[datetime, list[tuple[int, Use]]] = {}
    for use in uses:
        steps.setdefault(use.during.start, []).append((1, use))
        steps.setdefault(use.during.end, []).append((-1, use))
    moments, taken, lent = sorted(steps), [0, 0, 0], 0
    result = [Stretch(EVER, min(moments, default=EVER_AFTER), free_slots(capacity, NOTHING, order))]
    for moment, following in zip_longest(moments, moments[1:], fillvalue=EVER_AFTER):
        for sign, use in steps[moment]:
            lent += sign if use.size is None else 0
            taken = [now + sign * part for now, part in zip(taken, (use.size or NOTHING).parts, strict=True)]
        result.append(Stretch(moment, following, free_slots(capacity, None if lent else Size(*taken), order)))
    return result


def _first_enough(
    turns: Iterable[tuple[datetime, bool, int, int]], worth: dict[int, int], order: SlotRequest, latest: datetime
) -> datetime | None:
    total, ordered = sum(worth.values()), sorted(turns)
    for (at, later, host, value), following in zip_longest(ordered, ordered[1:]):
        if at > latest:
            return None
        total += value - worth[host]
        worth[host] = value
        settled = following is None or following[:2] != (at, later)
        if settled and not later and total >= order.amount:
            return at
    return None


def lasts_until(
    capacities: Mapping[int, Size], uses: Sequence[Use], order: SlotRequest, window: Period
) -> datetime | None:
    """Return the first time in the window at which the kept slots are allocated to others, or None."""
    known = by_host(use for use in uses if use.host in order.kept)
    lacking = [
        stretch.begin
        for host, taken in known.items()
        for stretch in _stretches(capacities[host], taken, order)
        if stretch.free < order.kept[host] and window.start < stretch.begin < window.end
    ]
    return min(lacking, default=None)


def _after(moment: datetime) -> datetime:
    return moment + datetime.resolution
