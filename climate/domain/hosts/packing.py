"""Slots of several sizes on the same hosts, beside whole hosts: an exact search with a limit of its steps.

Hosts are taken one after the other. Each gets a greatest possible pattern, such as two slots of the first demand and
one of the second. It may also get none, so that it stays whole. Hosts with the same room for the same demands are
interchangeable: once one of them is left out, the others are. A branch ends where the hosts that follow cannot have
room for the rest, or where too few whole hosts remain. It also ends where the same rest was met at the same host
before.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, combinations

from climate.domain.errors import TooComplex
from climate.domain.hosts.min_cost_flow import Whole

MOST_STEPS = 50_000
"""Maximum number of steps of one search: some tenths of a second."""

FEW = 5
"""Number of demands up to which all their subsets are compared with the room that is left."""

Rooms = Mapping[int, Mapping[str, int]]
"""What is free on each host throughout the window, by the name of the resource."""


@dataclass(frozen=True, slots=True)
class Slots:
    """Demand for a number of slots of one size on hosts that others may share; also for pieces of storage."""

    candidates: Sequence[int]
    """Numbers of the hosts on which it can have slots, best first."""
    amount: int
    size: Mapping[str, int]
    """What one slot takes, by the name of the resource."""
    affinity: bool | None = None
    """True: all on one host; False: each on another host."""
    kept: Mapping[int, int] = field(default_factory=dict)
    """Slots by host that are in use already and must stay there."""
    caps: Mapping[int, int] = field(default_factory=dict)
    """Maximum number of slots on a host, whatever its room; no maximum if it is not named."""

    def fit(self, host: int, room: Mapping[str, int]) -> int:
        """Return the number of slots that fit on a host with that room, up to the amount."""
        fits = [room.get(name, 0) // part for name, part in self.size.items() if part]
        return max(0, min([self.amount, self.caps.get(host, self.amount), *fits]))


@dataclass
class Work:
    """Steps that are left to a search."""

    left: int = MOST_STEPS

    def step(self) -> None:
        """Count one step; raise TooComplex after the last."""
        self.left -= 1
        if self.left < 0:
            raise TooComplex()


Pattern = tuple[int, ...]
"""Number of slots of each demand on one host."""


@dataclass(frozen=True, slots=True)
class _Host:
    """Host that may be shared. Those of one `kind` are interchangeable."""

    number: int
    kind: object
    room: tuple[int, ...]
    fits: Pattern
    """Number of slots of each demand alone."""
    wholes: frozenset[int]
    """Whole demands that could have it."""


def pack(
    slots: Sequence[Slots], wholes: Sequence[Whole], rooms: Rooms, work: Work
) -> Iterator[tuple[dict[int, int], ...]]:
    """Yield the ways to place all slots, by number of host, so that enough whole hosts may be left.

    For few whole demands, these ways leave enough whole hosts for certain. For many, the caller checks that, and takes
    the next way.
    """
    fixed = tuple(dict(demand.kept) for demand in slots)
    left = [_beside_kept(demand) for demand in slots]
    names = sorted({name for demand in slots for name in demand.size})
    free = _after_kept(slots, rooms)
    if any(part < 0 for host in {h for demand in slots for h in demand.kept} for part in _used(slots, host, free)):
        return
    search = _Search(left, wholes, _hosts(left, wholes, free, names), names, work)
    for chosen in search.ways():
        yield tuple({**now, **_sum(now, more)} for now, more in zip(fixed, chosen, strict=True))


def _sum(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    return {host: one.get(host, 0) + count for host, count in other.items()}


def _beside_kept(demand: Slots) -> Slots:
    """Return what is to be chosen beside the kept slots."""
    kept, rest = demand.kept, demand.amount - sum(demand.kept.values())
    hosts = demand.candidates
    if kept and demand.affinity is not None:
        hosts = [host for host in hosts if (host in kept) is demand.affinity]
    caps = {host: most - kept.get(host, 0) for host, most in demand.caps.items()}
    return Slots(hosts, max(0, rest), demand.size, demand.affinity, caps=caps)


def _after_kept(slots: Sequence[Slots], rooms: Rooms) -> dict[int, dict[str, int]]:
    free = {host: dict(room) for host, room in rooms.items()}
    for demand in slots:
        for host, count in demand.kept.items():
            room = free.setdefault(host, {})
            for name, part in demand.size.items():
                room[name] = room.get(name, 0) - part * count
    return free


def _used(slots: Sequence[Slots], host: int, free: Rooms) -> list[int]:
    """Return what is left of the resources of a host that kept slots use."""
    names = {name for demand in slots if host in demand.kept for name, part in demand.size.items() if part}
    return [free[host].get(name, 0) for name in names]


def _hosts(slots: Sequence[Slots], wholes: Sequence[Whole], rooms: Rooms, names: Sequence[str]) -> list[_Host]:
    """Return the hosts with room, by kind: those that no whole demand can have come first, then the best."""
    wanted = sum(demand.amount for demand in slots) + sum(demand.least for demand in wholes)
    could = [frozenset(demand.candidates) for demand in wholes]
    able = [frozenset(demand.candidates) for demand in slots]
    demands = list(zip(slots, able, strict=True))
    kinds: dict[object, list[_Host]] = {}
    for number in _shareable(slots, wholes):
        host = _host(demands, number, rooms.get(number, {}), names, _places(could, number))
        same = kinds.setdefault(host.kind, []) if host else []
        if host and len(same) < wanted:  # more of one kind are of no use
            same.append(host)
    return [host for same in sorted(kinds.values(), key=lambda same: len(same[0].wholes)) for host in same]


def _shareable(slots: Sequence[Slots], wholes: Sequence[Whole]) -> Iterable[int]:
    """Return the candidates for slots, best first, without hosts that a whole demand must have."""
    never = {host for demand in wholes for host in demand.must}
    return dict.fromkeys(host for demand in slots for host in demand.candidates if host not in never)


def _host(
    demands: Sequence[tuple[Slots, frozenset[int]]],
    number: int,
    room: Mapping[str, int],
    names: Sequence[str],
    wholes: frozenset[int],
) -> _Host | None:
    """Return a host for the demands whose candidates it is among; None if it has room for no slot."""
    fits = tuple(_usable(demand, number, room) if number in known else 0 for demand, known in demands)
    parts = tuple(room.get(name, 0) for name in names)
    return _Host(number, (parts, fits, wholes), parts, fits, wholes) if any(fits) else None


def _places(sets: Sequence[frozenset[int]], number: int) -> frozenset[int]:
    """Return the indexes of the sets that have the number."""
    return frozenset(index for index, numbers in enumerate(sets) if number in numbers)


def _usable(demand: Slots, number: int, room: Mapping[str, int]) -> int:
    """Return the slots that a demand can have on a host: all or none with affinity, one with anti-affinity."""
    count = demand.fit(number, room)
    if demand.affinity is False:
        return min(count, 1)
    return 0 if demand.affinity and count < demand.amount else count


class _Search:
    """Depth first over the hosts."""

    def __init__(
        self, slots: Sequence[Slots], wholes: Sequence[Whole], hosts: Sequence[_Host], names: Sequence[str], work: Work
    ) -> None:
        self._slots, self._wholes, self._hosts, self._work = slots, wholes, hosts, work
        self._sizes = [tuple(demand.size.get(name, 0) for name in names) for demand in slots]
        self._following = [index for index, _ in enumerate(hosts)]
        for index in range(len(hosts) - 1, -1, -1):
            same = index + 1 < len(hosts) and hosts[index + 1].kind == hosts[index].kind
            self._following[index] = self._following[index + 1] if same else index + 1
        self._bounds = self._room_bounds()
        self._groups = _subsets(range(len(wholes)))
        many = len(wholes) > FEW  # their hosts are then counted by the demands that could have them
        self._kinds = list(dict.fromkeys(host.wholes for host in hosts)) if many else []
        self._spare = self._spare_wholes()
        self._failed: set[object] = set()

    def ways(self) -> Iterator[tuple[dict[int, int], ...]]:
        """Yield the assignments, with a stack instead of a recursion as deep as there are hosts."""
        rest = tuple(demand.amount for demand in self._slots)
        if min(self._spare, default=0) < 0:
            return
        path: list[tuple[int, Pattern]] = []
        stack = [self._branches(0, rest, self._spare)]
        if not any(rest):
            yield self._assignment(path)
            return
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                if path:
                    path.pop()
                continue
            place, pattern, rest, spare, following = step
            path.append((place, pattern))
            if any(rest):
                stack.append(self._branches(following, rest, spare))
            else:
                yield self._assignment(path)
                path.pop()

    def _assignment(self, path: Sequence[tuple[int, Pattern]]) -> tuple[dict[int, int], ...]:
        chosen: tuple[dict[int, int], ...] = tuple({} for _ in self._slots)
        for place, pattern in path:
            for demand, count in zip(chosen, pattern, strict=True):
                if count:
                    demand[self._hosts[place].number] = count
        return chosen

    def _branches(
        self, place: int, rest: Pattern, spare: Pattern
    ) -> Iterator[tuple[int, Pattern, Pattern, Pattern, int]]:
        """Yield what can be done with a host: each pattern, and then none, for this and all of its kind."""
        self._work.step()
        if place >= len(self._hosts) or (place, rest, spare) in self._failed or not self._has_room(place, rest):
            return
        host = self._hosts[place]
        uses = [not group.isdisjoint(host.wholes) for group in self._groups]
        uses += [host.wholes == kind for kind in self._kinds]
        fewer = tuple(n - use for n, use in zip(spare, uses, strict=True))
        if min(fewer, default=0) >= 0:
            for pattern in self._patterns(host, rest):
                less = tuple(n - taken for n, taken in zip(rest, pattern, strict=True))
                yield place, pattern, less, fewer, place + 1
        yield place, (0,) * len(rest), rest, spare, self._following[place]
        self._failed.add((place, rest, spare))

    def _patterns(self, host: _Host, rest: Pattern) -> list[Pattern]:
        """Return the patterns to which no slot can be added; those that cover most of the rest come first."""
        most = [self._clipped(index, min(fit, n)) for index, (fit, n) in enumerate(zip(host.fits, rest, strict=True))]
        found = [pattern for pattern in self._filled(host.room, most, ()) if any(pattern)]
        shares = [1 / n if n else 0 for n in rest]
        return sorted(found, key=lambda pattern: -sum(n * share for n, share in zip(pattern, shares, strict=True)))

    def _clipped(self, place: int, count: int) -> int:
        demand = self._slots[place]
        return count if not demand.affinity or count == demand.amount else 0

    def _filled(self, room: tuple[int, ...], most: Sequence[int], so_far: Pattern) -> Iterator[Pattern]:
        self._work.step()
        place = len(so_far)
        if place == len(most):
            if not any(self._more(room, place, most[place] - n) for place, n in enumerate(so_far)):
                yield so_far
            return
        size = self._sizes[place]
        count = max(0, min([most[place], *(free // part for free, part in zip(room, size, strict=True) if part)]))
        all_or_none = self._slots[place].affinity
        is_last = place == len(most) - 1 or not any(size)  # fewer slots of it make room for no other
        for n in range(count, count - 1 if is_last and not all_or_none else -1, -1):
            if n == 0 or not all_or_none or n == most[place]:
                left = tuple(free - n * part for free, part in zip(room, size, strict=True))
                yield from self._filled(left, most, (*so_far, n))

    def _more(self, room: tuple[int, ...], place: int, left: int) -> bool:
        """Return whether there is room for a further slot of a demand, or for all of one that stays together."""
        count = left if self._slots[place].affinity else min(left, 1)
        parts = zip(room, self._sizes[place], strict=True)
        return count > 0 and all(free >= count * part for free, part in parts if part)

    def _has_room(self, place: int, rest: Pattern) -> bool:
        """Return whether the hosts from a place on can have room for the rest, by each bound."""
        return all(
            sum(n * weight for n, weight in zip(rest, weights, strict=True)) <= left[place]
            for weights, left in self._bounds
        )

    def _room_bounds(self) -> list[tuple[Pattern, list[int]]]:
        """Return bounds: weights of the demands, and the greatest sum of them from each host on."""
        result = []
        for group in _subsets(range(len(self._slots))):
            if len(group) == 1:
                result.append(self._bound(group, [1] * len(self._slots), lambda host, g=group: host.fits[min(g)]))
                continue
            for name in range(len(self._sizes[0])):
                sizes = [size[name] for size in self._sizes]
                if all(sizes[place] for place in group):
                    result.append(self._bound(group, sizes, lambda host, n=name: max(0, host.room[n])))
        return result

    def _bound(self, group: Collection[int], weights: Sequence[int], worth: object) -> tuple[Pattern, list[int]]:
        able = [worth(host) if any(host.fits[place] for place in group) else 0 for host in self._hosts]  # type: ignore
        left = [0, *accumulate(reversed(able))][::-1]
        return tuple(weight if place in group else 0 for place, weight in enumerate(weights)), left

    def _spare_wholes(self) -> Pattern:
        """Return how many hosts some whole demands have beyond those that they need, for groups of them."""
        result = []
        for group in self._groups:
            could = {host for place in group for host in self._wholes[place].candidates}
            others = {h for place, one in enumerate(self._wholes) if place not in group for h in one.must}
            result.append(len(could - others) - sum(_least(self._wholes[place]) for place in group))
        return (*result, *(sum(host.wholes == kind for host in self._hosts) for kind in self._kinds))


def _least(demand: Whole) -> int:
    return max(demand.least, len(demand.must))


def _subsets(places: Sequence[int]) -> list[frozenset[int]]:
    """Return all subsets of few places, and otherwise single ones and all together."""
    sizes = range(1, len(places) + 1) if len(places) <= FEW else sorted({1, len(places)})
    return [frozenset(group) for size in sizes for group in combinations(places, size)]
