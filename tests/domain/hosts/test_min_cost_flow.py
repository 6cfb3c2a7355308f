"""Whole hosts to demands: the best hosts that are possible, and fair shares of what is left."""

from collections.abc import Sequence
from itertools import product
from random import Random

import pytest

from climate.domain.hosts.min_cost_flow import Flow, Whole

WORLDS = 500


def ways(demands: Sequence[Whole]) -> list[list[list[int]]]:
    """Every assignment that gives each demand its least number or more."""
    hosts = sorted({host for demand in demands for host in demand.candidates})
    result = []
    for given in product(range(-1, len(demands)), repeat=len(hosts)):
        had = [[host for host, to in zip(hosts, given, strict=True) if to == place] for place in range(len(demands))]
        pairs = list(zip(demands, had, strict=True))
        if all(
            set(one) <= set(d.candidates) and d.least <= len(one) <= d.most and d.must <= set(one) for d, one in pairs
        ):
            result.append(had)
    return result


def drawbacks(demands: Sequence[Whole], had: Sequence[Sequence[int]]) -> list[int]:
    """The number of hosts of each level of drawbacks, the highest first."""
    levels = [demand.drawbacks.get(host, 0) for demand, hosts in zip(demands, had, strict=True) for host in hosts]
    return [levels.count(level) for level in (2, 1)]


def ranks(demands: Sequence[Whole], had: Sequence[Sequence[int]]) -> int:
    return sum(demand.candidates.index(host) for demand, hosts in zip(demands, had, strict=True) for host in hosts)


def extras(demands: Sequence[Whole], had: Sequence[Sequence[int]]) -> list[int]:
    """What each has beyond its least number, the smallest share first."""
    return sorted(len(hosts) - demand.least for demand, hosts in zip(demands, had, strict=True))


def world(random: Random) -> list[Whole]:
    hosts = list(range(1, random.randint(2, 6) + 1))
    result = []
    for _ in range(random.randint(1, 3)):
        candidates = random.sample(hosts, random.randint(1, len(hosts)))
        least = random.randint(0, 2)
        levels = {host: random.randint(0, 2) for host in candidates}
        result.append(Whole(candidates, least, least + random.randint(0, 2), drawbacks=levels))
    return result


@pytest.mark.parametrize("seed", range(4))
def test_the_chosen_hosts_are_the_best_and_the_shares_fair(seed: int) -> None:
    random, granted = Random(seed), 0
    for _ in range(WORLDS):
        demands = world(random)
        known = ways(demands)
        flow = Flow(demands)
        lacking = flow.fill_least()
        assert bool(lacking) != bool(known), demands
        if lacking:
            reach = {host for place in lacking for host in demands[place].candidates}
            assert len(reach) < sum(demands[place].least for place in lacking), demands
            continue
        granted += 1
        flow.fill_most()
        had = flow.chosen()
        fairest = max(extras(demands, one) for one in known)
        assert extras(demands, had) == fairest, demands
        alike = [one for one in known if [len(hosts) for hosts in one] == [len(hosts) for hosts in had]]
        best = min((drawbacks(demands, one), ranks(demands, one)) for one in alike)
        assert (drawbacks(demands, had), ranks(demands, had)) == best, demands
    assert granted


def test_a_demand_takes_other_hosts_where_those_it_prefers_are_all_that_another_can_have() -> None:
    anything, only = Whole([1, 2, 3], 2, 2), Whole([2, 1], 1, 1)
    flow = Flow([anything, only])
    assert not flow.fill_least()
    assert flow.chosen() == [[1, 3], [2]]


def test_hosts_that_a_demand_must_keep_go_to_nobody_else() -> None:
    flow = Flow([Whole([1, 2], 1, 2), Whole([1, 2], 1, 1, must=frozenset([1]))])
    assert not flow.fill_least()
    flow.fill_most()
    assert flow.chosen() == [[2], [1]]


def test_a_host_that_must_be_kept_and_is_no_candidate_is_a_refusal() -> None:
    assert Flow([Whole([2], 1, 1, must=frozenset([1]))]).fill_least() == {0}


def test_excluded_hosts_are_nobodys() -> None:
    assert Flow([Whole([1], 1, 1), Whole([2], 1, 1)], without=[2]).fill_least() == {1}


def test_ten_thousand_hosts_take_no_recursion() -> None:
    hosts = list(range(1, 3_001))
    flow = Flow([Whole(hosts, 1_000, 2_000), Whole(hosts[:1_000], 1_000, 1_000), Whole(hosts, 900, 3_000)])
    assert not flow.fill_least()
    flow.fill_most()
    assert [len(one) for one in flow.chosen()] == [1_050, 1_000, 950]
