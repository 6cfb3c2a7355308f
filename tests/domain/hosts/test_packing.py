"""Slots of several sizes on the same hosts: found without trying all, and given up after a limit of steps."""

import pytest

from climate.domain.errors import TooComplex
from climate.domain.hosts.matching import Unmatched, match
from climate.domain.hosts.min_cost_flow import Whole
from climate.domain.hosts.packing import MOST_STEPS, Slots, Work, pack


def rooms(*vcpus: int) -> dict[int, dict[str, int]]:
    return {host: {"vcpus": free} for host, free in enumerate(vcpus, 1)}


def slots(amount: int, vcpus: int, hosts: int, affinity: bool | None = None, **more: object) -> Slots:
    return Slots(range(1, hosts + 1), amount, {"vcpus": vcpus}, affinity, **more)  # type: ignore[arg-type]


def test_the_fullest_hosts_are_not_always_the_right_ones() -> None:
    # In turn, the first takes two of four on each host, and nothing is left for three at once.
    assert match([slots(2, 2, 2), slots(1, 3, 2), slots(1, 1, 2)], rooms(4, 4)) == ({2: 2}, {1: 1}, {1: 1})


def test_slots_leave_whole_hosts_to_those_who_need_them() -> None:
    assert match([slots(2, 1, 3), Whole([1, 2], 2, 3)], rooms(4, 4, 4)) == ({3: 2}, {1: 1, 2: 1})


def test_kept_slots_stay_and_are_counted() -> None:
    growing = slots(3, 1, 2, kept={1: 2})
    assert match([growing, slots(1, 2, 2)], rooms(4, 1)) == ({1: 2, 2: 1}, {1: 1})
    assert match([slots(3, 1, 2, affinity=True, kept={1: 2})], rooms(2, 4)) == Unmatched((0,), 1)


def test_kept_slots_beyond_the_room_are_refused() -> None:
    assert isinstance(match([slots(2, 1, 1, kept={1: 2})], rooms(1)), Unmatched)


def test_no_more_slots_than_a_host_may_give() -> None:
    assert match([slots(3, 1, 2, caps={1: 1})], rooms(4, 4)) == ({1: 1, 2: 2},)
    assert match([slots(3, 1, 2, caps={1: 1, 2: 1})], rooms(4, 4)) == Unmatched((0,), 1)


def test_resources_that_a_size_does_not_need_do_not_count() -> None:
    nothing = Slots([1], 2, {"vcpus": 1, "disk_gb": 0})
    assert match([nothing], {1: {"vcpus": 2, "disk_gb": -5}}) == ({1: 2},)


def test_a_size_of_nothing_fits_everywhere() -> None:
    assert match([Slots([1], 2**31 - 1, {"vcpus": 0}), slots(1, 1, 1)], rooms(1)) == ({1: 2**31 - 1}, {1: 1})


def test_a_thousand_equal_hosts_cost_few_steps() -> None:
    hosts = 1_000
    demands = [slots(700, 3, hosts), slots(900, 2, hosts), slots(3, 8, hosts, affinity=False)]
    work = Work(10_000)
    ways = pack(demands, [Whole(range(1, hosts + 1), 200, 200)], rooms(*[8] * hosts), work)
    assert next(ways)
    assert work.left > 0


def test_too_little_room_is_known_at_once() -> None:
    hosts, work = 1_000, Work(10)
    assert not list(pack([slots(2_000, 3, hosts), slots(1_001, 2, hosts)], [], rooms(*[8] * hosts), work))


def test_a_search_without_an_end_is_given_up_rather_than_refused() -> None:
    """Twelve sizes of two resources, which together take almost all of twenty hosts."""
    sizes = [
        (5, 17),
        (7, 13),
        (9, 29),
        (11, 23),
        (13, 37),
        (3, 41),
        (15, 7),
        (17, 31),
        (19, 11),
        (21, 43),
        (6, 5),
        (8, 47),
    ]
    hosts = range(1, 21)
    free = {host: {"vcpus": 64, "memory_mb": 130 + 3 * (host % 7)} for host in hosts}
    demands = [Slots(hosts, 9, {"vcpus": vcpus, "memory_mb": memory}) for vcpus, memory in sizes]
    with pytest.raises(TooComplex):
        match(demands, free)


def test_the_limit_of_steps_is_kept() -> None:
    work = Work()
    for _ in range(MOST_STEPS):
        work.step()
    with pytest.raises(TooComplex):
        work.step()


@pytest.mark.parametrize("count", [6, 8])
def test_many_whole_demands_beside_slots(count: int) -> None:
    """Beyond a few demands their subsets are not compared in advance; the result is the same."""
    wholes = [Whole([place, place + 1], 1, 1) for place in range(1, count + 1)]
    shared = Slots(range(1, count + 2), 1, {"vcpus": 1})
    free = rooms(*[1] * (count + 1))
    found = match([*wholes, shared], free)
    assert not isinstance(found, Unmatched)
    assert len({host for had in found for host in had}) == count + 1
    assert match([*wholes, Slots(range(1, count + 2), 2, {"vcpus": 1})], free) == Unmatched(tuple(range(count + 1)), 1)
