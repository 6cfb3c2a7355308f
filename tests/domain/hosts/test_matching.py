"""Matching against brute force: what fits is found, and what does not is refused with a true reason."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from random import Random

import pytest

from climate.domain.hosts.flow import Whole
from climate.domain.hosts.matching import Demand, Unmatched, holds, match
from climate.domain.hosts.packing import Slots
from tests.campaign import length

WORLDS = length(4_000, 200_000)

Rooms = Mapping[int, Mapping[str, int]]


def options(host: int, demands: Sequence[Demand], rooms: Rooms) -> Iterator[tuple[int, ...]]:
    """All that a host can give: itself to one demand, or slots that fit into its room together."""
    yield (0,) * len(demands)
    for place, demand in enumerate(demands):
        if isinstance(demand, Whole) and host in demand.candidates:
            yield tuple(int(place == other) for other in range(len(demands)))
    counts = [
        range(demand.amount + 1) if isinstance(demand, Slots) and host in demand.candidates else (0,)
        for demand in demands
    ]
    for given in product(*counts):
        used: dict[str, int] = {}
        for count, demand in zip(given, demands, strict=True):
            if isinstance(demand, Slots):
                for name, part in demand.size.items():
                    used[name] = used.get(name, 0) + count * part
        if any(given) and all(part <= rooms[host].get(name, 0) for name, part in used.items() if part):
            yield given


def allowed(demand: Demand, given: Sequence[int], hosts: Sequence[int]) -> bool:
    """Whether a demand may have exactly this of each host."""
    if isinstance(demand, Whole):
        return demand.least <= sum(given) <= demand.most and all(given[hosts.index(host)] for host in demand.must)
    if any(given[hosts.index(host)] < count for host, count in demand.kept.items()):
        return False
    if demand.affinity is not None and demand.amount:
        spread = sum(1 for count in given if count)
        return sum(given) == demand.amount and (spread == 1 if demand.affinity else max(given) == 1)
    return sum(given) == demand.amount


def brute(demands: Sequence[Demand], rooms: Rooms) -> list[tuple[tuple[int, ...], ...]]:
    """Every assignment: for each demand, what it has of each host."""
    hosts = sorted(rooms)
    ways = product(*(list(options(host, demands, rooms)) for host in hosts))
    turned = (tuple(zip(*way, strict=True)) for way in ways)
    return [
        way for way in turned if all(allowed(demand, given, hosts) for demand, given in zip(demands, way, strict=True))
    ]


def fits(demands: Sequence[Demand], rooms: Rooms) -> bool:
    return bool(brute(demands, rooms))


def world(random: Random) -> tuple[list[Demand], Rooms]:
    """Some hosts, partly in use, and up to four demands; mostly each of them fits alone."""
    hosts = list(range(1, random.randint(2, 4) + 1))
    names = ("vcpus", "memory")[: random.randint(1, 2)]
    rooms = {host: {name: random.choice([-1, 1, 2, 3, 4]) for name in names} for host in hosts}
    count, demands = random.randint(1, 4), list[Demand]()
    for _ in range(200):
        one = demand(random, hosts, names)
        if random.random() < 0.05 or fits([one], rooms):
            demands.append(one)
        if len(demands) == count:
            break
    return demands, rooms


def demand(random: Random, hosts: Sequence[int], names: Sequence[str]) -> Demand:
    candidates = random.sample(hosts, max(0, len(hosts) - random.choice([0, 0, 1, 1, 2])))
    if random.random() < 0.5:
        least = random.choice([1, 1, 2])
        drawbacks = {host: random.randint(0, 2) for host in candidates}
        must = frozenset(candidates[:1]) if random.random() < 0.1 else frozenset()
        return Whole(candidates, least, least + random.randint(0, 2), must, drawbacks)
    size = {name: random.randint(0 if name == "memory" else 1, 2) for name in names}
    kept = {candidates[0]: 1} if candidates and random.random() < 0.1 else {}
    return Slots(candidates, random.randint(1, 3), size, random.choice([None, None, True, False]), kept)


@pytest.mark.parametrize("seed", range(8))
def test_match_agrees_with_brute_force(seed: int) -> None:
    random, granted = Random(seed), 0
    for _ in range(WORLDS // 8):
        demands, rooms = world(random)
        ways, found = brute(demands, rooms), match(demands, rooms)
        assert isinstance(found, Unmatched) != bool(ways), (demands, rooms, found)
        if isinstance(found, Unmatched):
            check_reason(demands, rooms, found)
            continue
        granted += 1
        hosts = sorted(rooms)
        assert tuple(tuple(had.get(host, 0) for host in hosts) for had in found) in ways, (demands, rooms, found)
        assert holds(demands, rooms, found)
    assert 0.1 < granted / (WORLDS // 8) < 0.9


def check_reason(demands: Sequence[Demand], rooms: Rooms, refused: Unmatched) -> None:
    """The demands named are too much together, none can be left out, and so much less of the last would fit."""
    named = [demands[place] for place in refused.demands]
    assert not fits(named, rooms)
    for place in range(len(named)):
        assert len(named) == 1 or fits([*named[:place], *named[place + 1 :]], rooms), (demands, rooms, refused)
    *others, last = named
    assert refused.short is not None
    if isinstance(last, Whole) and not last.must:
        assert fits([*others, replace(last, least=last.least - refused.short)], rooms) or refused.short == last.least
        assert not fits([*others, replace(last, least=last.least - refused.short + 1)], rooms)
    if isinstance(last, Slots) and not last.kept:
        assert fits([*others, replace(last, amount=last.amount - refused.short)], rooms)
        assert not fits([*others, replace(last, amount=last.amount - refused.short + 1)], rooms)
