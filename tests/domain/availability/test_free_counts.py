"""The free count with a bounded number of points."""

from random import Random

from climate.domain.availability.demands import HOSTS, Profile, SharedDemand, WholeDemand
from climate.domain.availability.free_counts import points
from climate.domain.availability.gaps import ListedGaps


def test_few_steps_are_exact() -> None:
    demand = WholeDemand(HOSTS, 1, 1, 0, ListedGaps({1: [(2, 5)], 2: [(4, 8)], 3: []}))
    assert points(demand.level(), (0, 10), 10) == [(0, 3), (2, 2), (4, 1), (5, 2), (8, 3)]
    assert points(demand.level(), (3, 5), 10) == [(3, 2), (4, 1)]


def test_many_steps_become_the_least_of_each_part() -> None:
    random = Random(1)
    busy = {host: [(at, at + random.randint(1, 9)) for at in range(0, 1000, 10)] for host in range(9)}
    demand = WholeDemand(HOSTS, 1, 1, 0, ListedGaps(busy))
    found = points(demand.level(), (0, 1000), 20)
    assert len(found) <= 20
    for place, (begin, level) in enumerate(found):
        end = found[place + 1][0] if place + 1 < len(found) else 1000
        free = [sum(not any(b <= now < e for b, e in one) for one in busy.values()) for now in range(begin, end)]
        assert level <= min(free)
        if end - begin == 50:
            assert level == min(free)


def test_slots_are_counted_where_hosts_are_shared() -> None:
    profile = Profile.of({"vcpus": 8}, [(2, 4, {"vcpus": 3}), (3, 6, None)])
    demand = SharedDemand(HOSTS, 1, {"vcpus": 2}, 0, {1: profile, 2: Profile.of({"vcpus": 2}, [])})
    assert points(demand.level(), (0, 9), 9) == [(0, 5), (2, 3), (3, 1), (6, 5)]
