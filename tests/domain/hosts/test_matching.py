"""Matching against brute force: what fits is found, and what does not is refused with a true reason."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from climate.domain.hosts.matching import Demand, Unmatched, holds, match
from climate.domain.hosts.min_cost_flow import Whole
from climate.domain.hosts.packing import Slots
from tests.campaign import cases
from tests.domain.hosts.brute_force import Rooms, brute, fits

WORLDS = 500


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


@pytest.mark.parametrize("seed", cases(range(88), range(8), range(8, 12)))
def test_match_agrees_with_brute_force(seed: int) -> None:
    random, granted = Random(seed), 0
    for _ in range(WORLDS):
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
    assert 0.1 < granted / WORLDS < 0.9


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
