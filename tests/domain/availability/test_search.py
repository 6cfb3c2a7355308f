"""The search against a slow model: every second of a small horizon, and every choice of a few hosts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest

from climate.domain.availability.daily_windows import Span
from climate.domain.availability.demands import ADDRESSES, HOSTS, Demand, Profile, SharedDemand, WholeDemand
from climate.domain.availability.gaps import ListedGaps
from climate.domain.availability.search import Candidate, Mode, Question, candidates
from tests.campaign import cases

END = 24
WORLDS = 15
"""Worlds of each seed."""


def periods(random: Random) -> list[Span]:
    """Sorted busy periods without overlaps, some of which touch."""
    cuts = sorted(random.sample(range(-3, END + 6), 2 * random.randint(0, 3)))
    return [(begin, end) for begin, end in zip(cuts[::2], cuts[1::2], strict=True)]


Busy = dict[int, list[Span]]


def whole(random: Random, kind: str, numbers: Sequence[int]) -> tuple[WholeDemand, Busy]:
    least = random.randint(1, 3)
    busy = {number: periods(random) for number in random.sample(list(numbers), random.randint(1, len(numbers)))}
    must = frozenset(random.sample(sorted(busy), 1)) if kind == ADDRESSES and random.random() < 0.3 else frozenset()
    most = least if kind == ADDRESSES else least + random.randint(0, 3)
    return WholeDemand(kind, least, most, random.randint(0, 3), ListedGaps(busy), must), busy


def shared(
    random: Random, numbers: Sequence[int]
) -> tuple[SharedDemand, dict[int, list[tuple[int, int, dict[str, int] | None]]]]:
    uses = {
        number: [
            (begin, end, None if random.random() < 0.3 else {"vcpus": random.randint(1, 3)})
            for begin, end in periods(random)
        ]
        for number in numbers
    }
    profiles = {number: Profile.of({"vcpus": 4}, taken) for number, taken in uses.items()}
    size = {"vcpus": random.randint(1, 3)}
    affinity = random.choice([None, None, True, False])
    return SharedDemand(HOSTS, random.randint(1, 5), size, random.randint(0, 2), profiles, affinity), uses


class World:
    """A question, and the slow model of its answers."""

    def __init__(self, random: Random) -> None:
        self.demands: list[Demand] = []
        self.uses: dict[int, dict[int, list[tuple[int, int, dict[str, int] | None]]]] = {}
        self.busy: dict[int, Busy] = {}
        same = {number: periods(random) for number in range(4)}
        for place in range(random.choice([1, 1, 2, 3])):
            if random.random() < 0.6:
                made, busy = whole(random, HOSTS, range(4))
                self.busy[place] = {number: same[number] for number in busy}
                self.demands.append(replace(made, gaps=ListedGaps(self.busy[place])))
            elif random.random() < 0.5:
                made, self.busy[place] = whole(random, ADDRESSES, range(10, 13))
                self.demands.append(made)
            else:
                demand, uses = shared(random, range(4))
                self.demands.append(demand)
                self.uses[place] = uses
        if len(self.uses) > 0:  # whole hosts and slots of one lease see the same hosts
            place, uses = next(iter(self.uses.items()))
            first = self.demands[place]
            assert isinstance(first, SharedDemand)
            for other, demand in enumerate(self.demands):
                if isinstance(demand, SharedDemand):
                    self.demands[other] = SharedDemand(
                        HOSTS, demand.amount, demand.size, demand.tail, first.profiles, demand.affinity
                    )
                    self.uses[other] = uses
                elif demand.kind == HOSTS:
                    busy = {n: merged([(b, e) for b, e, _ in uses[n]]) for n in self.busy[other]}
                    self.busy[other] = busy
                    self.demands[other] = replace(demand, gaps=ListedGaps(busy))
        self.length = random.randint(1, 8)
        cuts = sorted(random.sample(range(END + 1), 4))
        self.openings = [(0, END)] if random.random() < 0.6 else [(cuts[0], cuts[1]), (cuts[2], cuts[3])]
        self.openings = [(begin, end) for begin, end in self.openings if begin < end]
        self.step = random.choice([1, 1, 3])

    def question(self, mode: Mode) -> Question:
        return Question(self.demands, self.length, self.openings, mode, self.step, longest=END)

    def starts(self, length: int) -> Iterator[int]:
        for start in range(END):
            inside = any(begin <= start and start + length <= end for begin, end in self.openings)
            if inside and start % self.step == 0:
                yield start

    def fits(self, start: int, end: int, demands: Sequence[int] | None = None, extra: int = 0) -> bool:
        places = list(range(len(self.demands))) if demands is None else list(demands)
        return self._placed(places, start, end, set(), {}, extra)

    def _placed(
        self, places: list[int], start: int, end: int, taken: set[tuple[str, int]], slots: "Slots", extra: int
    ) -> bool:
        """Try every subset for the first reservation, and the others with what is left."""
        if not places:
            return True
        place, *rest = places
        demand = self.demands[place]
        if isinstance(demand, WholeDemand):
            least = demand.least + extra
            free = [
                number
                for number, busy in self.busy[place].items()
                if all(e <= start or b >= end + demand.tail for b, e in busy)
                and (demand.kind, number) not in taken
                and (demand.kind == ADDRESSES or not slots.get(number))
            ]
            return any(
                demand.must <= set(chosen)
                and self._placed(rest, start, end, taken | {(demand.kind, n) for n in chosen}, slots, 0)
                for chosen in combinations(free, least)
            )
        return any(
            self._placed(rest, start, end, taken, _with(slots, part, end + demand.tail), 0)
            for part in self._divisions(place, start, end, taken, slots)
        )

    def _divisions(
        self, place: int, start: int, end: int, taken: set[tuple[str, int]], slots: "Slots"
    ) -> Iterator[dict[int, int]]:
        """Yield each way to divide the slots, in VCPUs by host."""
        demand = self.demands[place]
        assert isinstance(demand, SharedDemand)
        size, until = demand.size["vcpus"], end + demand.tail

        def room(host: int) -> int:
            if (HOSTS, host) in taken:
                return 0
            levels = []
            for moment in range(start, until):
                now = [used for b, e, used in self.uses[place][host] if b <= moment < e]
                beside = sum(part for last, part in slots.get(host, []) if moment < last)
                levels.append(0 if None in now else 4 - sum(used["vcpus"] for used in now if used) - beside)
            return max(0, min(levels)) // size

        rooms = [room(host) for host in range(4)]

        def divided(host: int, left: int) -> Iterator[dict[int, int]]:
            if host == 4:
                if left == 0:
                    yield {}
                return
            most = {None: rooms[host], False: min(1, rooms[host]), True: rooms[host]}[demand.affinity]
            counts = {0, demand.amount} if demand.affinity else range(left + 1)
            for count in (one for one in counts if one <= min(left, most)):
                for others in divided(host + 1, left - count):
                    yield {host: count * size, **others}

        yield from divided(0, demand.amount)


Slots = dict[int, list[tuple[int, int]]]
"""What the slots placed so far take of each host: up to which moment, and how many VCPUs."""


def _with(slots: Slots, part: dict[int, int], until: int) -> Slots:
    return {
        host: [*slots.get(host, []), *([(until, part[host])] if part.get(host) else [])]
        for host in range(4)
        if slots.get(host) or part.get(host)
    }


def merged(spans: list[Span]) -> list[Span]:
    result: list[Span] = []
    for begin, end in sorted(spans):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((begin, end))
    return result


@pytest.mark.parametrize("seed", cases(range(400), range(12), range(12, 60)))
def test_the_search_finds_what_the_slow_model_finds(seed: int) -> None:
    random = Random(seed)
    for _ in range(WORLDS):
        world = World(random)
        expected = [start for start in world.starts(world.length) if world.fits(start, start + world.length)]
        found = list(candidates(world.question(Mode.FIRST)))
        assert [one.start for one in found][:1] == expected[:1]
        assert {one.start for one in found} <= set(expected)
        _compare_longest(world, list(candidates(world.question(Mode.LONGEST))), expected)
        _compare_portions(world, random.randint(0, END), found)
        for mode, worth in WORTHS.items():
            ranks = [(-worth(one), one.start) for one in candidates(world.question(mode))]
            assert ranks == sorted(ranks)
        if len(world.demands) == 1 and isinstance(world.demands[0], WholeDemand):
            _compare_most(world, list(candidates(world.question(Mode.MOST))), expected)


WORTHS: dict[Mode, Callable[[Candidate], int]] = {
    Mode.MOST: lambda one: sum(one.counts),
    Mode.LONGEST: lambda one: one.end - one.start,
}


def _compare_portions(world: World, since: int, found: list[Candidate]) -> None:
    later = candidates(replace(world.question(Mode.FIRST), since=since))
    assert list(later) == [one for one in found if one.start >= since]


def _compare_longest(world: World, found: list[Candidate], expected: list[int]) -> None:
    assert bool(found) == bool(expected)
    longest = [
        end - start for start in expected for end in range(start + world.length, END + 1) if _inside(world, start, end)
    ]
    if found:
        assert found[0].end - found[0].start == max(longest)
        assert all(world.fits(one.start, one.end) for one in found)


def _inside(world: World, start: int, end: int) -> bool:
    return any(begin <= start and end <= until for begin, until in world.openings) and world.fits(start, end)


def _compare_most(world: World, found: list[Candidate], expected: list[int]) -> None:
    demand = world.demands[0]
    assert isinstance(demand, WholeDemand)
    counts = [
        extra
        for start in expected
        for extra in range(demand.most - demand.least + 1)
        if world.fits(start, start + world.length, extra=extra)
    ]
    assert ([one.counts[0] for one in found][:1] or [0])[0] == (demand.least + max(counts) if counts else 0)


def hosts(least: int, most: int, *busy: list[Span]) -> WholeDemand:
    return WholeDemand(HOSTS, least, most, 0, ListedGaps(dict(enumerate(busy))))


def test_a_limit_reduces_the_number_to_what_it_allows() -> None:
    def permit(candidate: Candidate) -> float | None:
        total = sum(candidate.counts)
        return None if total > 3 else total / 3

    asked = Question([hosts(1, 5, [], [], [], [], [])], 2, [(0, END)], permit=permit)
    assert next(candidates(asked)).counts == (3,)
    cheap = Question([hosts(1, 5, [], [], [], [], [])], 2, [(0, END)], Mode.CHEAPEST, permit=permit)
    assert next(candidates(cheap)) == Candidate(0, 2, (1,), 1 / 3)


def test_a_start_is_tried_where_the_project_gives_something_back() -> None:
    def permit(candidate: Candidate) -> float | None:
        return 1.0 if candidate.start >= 7 else None

    asked = Question([hosts(1, 1, [])], 2, [(0, END)], permit=permit, turns=(7,))
    assert [one.start for one in candidates(asked)] == [7]


def test_at_tries_the_beginning_only() -> None:
    assert [one.start for one in candidates(Question([hosts(1, 1, [(0, 1)])], 2, [(0, 2)], Mode.AT))] == []
    assert [one.start for one in candidates(Question([hosts(1, 1, [(2, 3)])], 2, [(0, 2)], Mode.AT))] == [0]


def test_demands_with_different_tails_need_their_slots_for_different_times() -> None:
    profiles = {0: Profile.of({"vcpus": 4}, [(6, 8, {"vcpus": 1})])}
    cleaned = SharedDemand(HOSTS, 3, {"vcpus": 1}, 2, profiles)
    plain = SharedDemand(HOSTS, 1, {"vcpus": 1}, 0, profiles)
    for demands in ([cleaned, plain], [plain, cleaned]):
        found = next(candidates(Question(demands, 2, [(0, 8)], Mode.LONGEST, longest=END)))
        assert (found.start, found.end) == (0, 6)
