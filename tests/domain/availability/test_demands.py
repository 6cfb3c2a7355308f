"""Free times of one reservation."""

from climate.domain.availability.demands import HOSTS, Profile, SharedDemand, WholeDemand, latest_ends
from climate.domain.availability.gaps import FAR, ListedGaps


def test_periods_that_touch_a_lease_do_not_overlap_it() -> None:
    demand = WholeDemand(HOSTS, 1, 2, 1, ListedGaps({1: [(0, 4), (9, 12)], 2: [(5, 6)]}))
    assert demand.free(4, 8) == [1]
    assert demand.free(4, 9) == []
    assert demand.free(6, 30) == [2]
    assert [demand.counts(4).at(start) for start in (0, 4, 5, 6, 12)] == [1, 1, 0, 1, 2]


def test_a_level_changes_at_ends_and_begins() -> None:
    steps = WholeDemand(HOSTS, 1, 1, 0, ListedGaps({1: [(2, 5)], 2: [(5, 7)]})).level()
    assert [steps.at(moment) for moment in (0, 2, 4, 5, 6, 7)] == [2, 1, 1, 1, 1, 2]


def test_the_latest_end_is_where_too_few_stay_free() -> None:
    demand = WholeDemand(HOSTS, 2, 2, 1, ListedGaps({1: [(9, 12)], 2: [(0, 2), (6, 8)], 3: []}))
    assert list(latest_ends(demand, 2, [2, 8])) == [8, FAR - 1]
    [none] = latest_ends(demand, 9, [2])
    assert none < 2 + 9


def test_a_room_is_the_least_of_a_window() -> None:
    uses = [(2, 4, {"vcpus": 3}), (3, 6, {"vcpus": 2}), (8, 9, None)]
    profile = Profile.of({"vcpus": 6}, uses)
    assert profile.room(0, 2) == {"vcpus": 6}
    assert profile.room(0, 4) == {"vcpus": 1}
    assert profile.room(4, 8) == {"vcpus": 4}
    assert profile.room(4, 9) is None
    demand = SharedDemand(HOSTS, 2, {"vcpus": 2}, 0, {1: profile}, True)
    assert (demand.number(4, 8), demand.is_possible) == (2, True)
    assert demand.free(0, 4) == {}
