"""The filter scheduler as a whole: weights, builds, groups, forced and ignored hosts, and its refusals."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from climate.compute.errors import BadRequest, ComputeHostMetricNotFound, NoValidHost
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import Group, Spec
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.filtering.weight_cache import best
from climate.compute.scheduler.filters import FILTERS, WITH_CORES
from climate.compute.scheduler.filters.capabilities import JSON
from climate.compute.scheduler.filters.capacity import AGGREGATE_CORE
from climate.compute.scheduler.filters.location import ALL_HOSTS, CIDR
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Plan
from climate.compute.scheduler.scheduler_parts import Again, Filter, Options, Rules, Weigher
from climate.compute.scheduler.weighers import IO_OPS, METRICS, RAM, WEIGHERS
from tests.compute.node_tables import hosts
from tests.compute.scheduler.filter_answers import SMALL, labels

RULES = Rules(FILTERS, WEIGHERS)
SOFT = "soft-anti-affinity"


def nodes(plan: Plan) -> list[int]:
    return [pick.node_id for pick in plan.picks]


def weights(weigher: Weigher, *rows: dict[str, Any], **options: Any) -> tuple[int, dict[str, float]]:
    """The node chosen by this weigher alone, and the weight of each by name."""
    plan = select(hosts(*rows), SMALL, 1, Rules((ALL_HOSTS,), (weigher,), Options(**options)))
    return plan.picks[0].node_id, {entry["node"]: entry["weight"] for entry in plan.trail["weighed"]}


FREE = [{"memory_mb": free} for free in (512, 1024, 3072, 8192)]


@pytest.mark.parametrize(
    ("multiplier", "expected"),
    [(1.0, [0.0625, 0.125, 0.375, 1.0]), (2.0, [0.125, 0.25, 0.75, 2.0]), (0.0, [0.0, 0.0, 0.0, 0.0])],
)
def test_more_free_memory_weighs_more_from_zero_on(multiplier: float, expected: list[float]) -> None:
    chosen, found = weights(RAM, *FREE, ram_multiplier=multiplier)
    assert [found[f"n{number}"] for number in range(1, 5)] == expected
    assert chosen == (4 if multiplier else 1)


def test_below_zero_the_multiplier_stacks() -> None:
    assert weights(RAM, *FREE, ram_multiplier=-1.0)[0] == 1


def test_a_node_with_less_than_nothing_free_moves_the_lowest() -> None:
    chosen, found = weights(RAM, *FREE, {"memory_mb": 0, "used_ram_mb": 512})
    assert (chosen, found["n4"], found["n5"]) == (4, 1.0, 0.0)
    assert found["n1"] == pytest.approx(0.11764705)


def test_the_example_of_the_field() -> None:
    assert weights(RAM, {"memory_mb": 7466}, {"memory_mb": 3434})[1] == {"n1": 1.0, "n2": 0.4599517814090544}


def test_nodes_at_work_weigh_less() -> None:
    rows = [{"io_ops": number} for number in (1, 2, 0, 4)]
    assert weights(IO_OPS, *rows) == (3, {"n3": 0.0, "n1": -0.25, "n2": -0.5, "n4": -1.0})
    chosen, found = weights(IO_OPS, *rows, io_ops_multiplier=2.0)
    assert (chosen, found["n4"]) == (4, 2.0)


METERED = [
    {"metrics": {"idle": idle, "kernel": kernel}} for idle, kernel in ((512, 1), (1024, 2), (3072, 1), (8192, 0))
]


@pytest.mark.parametrize(
    ("metrics", "chosen"),
    [((("idle", 1.0),), 4), ((("idle", -1.0),), 1), ((("idle", 0.0001), ("kernel", 1.0)), 2), ((), 1)],
)
def test_metrics_weigh_by_their_ratios(metrics: tuple[tuple[str, float], ...], chosen: int) -> None:
    assert weights(METRICS, *METERED, metrics=metrics)[0] == chosen


def test_a_missing_metric_refuses_or_weighs_little() -> None:
    rows = [{"metrics": {"idle": 5}}, {"metrics": {}}]
    with pytest.raises(ComputeHostMetricNotFound, match="'MetricsWeigher' requires") as refused:
        weights(METRICS, *rows, metrics=(("idle", 1.0),))
    assert "n2" not in str(refused.value)
    assert refused.value.trail["filters"][0]["name"] == "AllHostsFilter"
    assert refused.value.trail["refused"] == "weighers"
    chosen, found = weights(METRICS, *rows, metrics=(("idle", 1.0),), metrics_required=False)
    assert (chosen, found) == (1, {"n1": 1.0, "n2": 0.0})


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf])
def test_a_weight_is_a_finite_number(weight: float) -> None:
    odd = Weigher("Odd", lambda table, spec, options: np.array([1.0, weight]), lambda options: 1.0)
    with pytest.raises(ComputeHostMetricNotFound, match="'Odd'"):
        weights(odd, {}, {})


def test_only_nodes_that_passed_need_a_metric() -> None:
    table = hosts({"metrics": {"idle": 5}}, {"metrics": {}, "up": False}, {"metrics": {"idle": 6}})
    rules = replace(RULES, options=Options(metrics=(("idle", 1.0),)))
    assert nodes(select(table, SMALL, 1, rules)) == [3]


def test_a_single_candidate_is_not_weighed() -> None:
    plan = select(hosts({"metrics": {}}), SMALL, 2, replace(RULES, options=Options(metrics=(("idle", 1.0),))))
    assert [(pick.node_id, pick.weight) for pick in plan.picks] == [(1, 0.0), (1, 0.0)]


def test_servers_spread_because_each_pick_is_counted_before_the_next() -> None:
    plan = select(hosts({}, {"memory_mb": 8000}), replace(SMALL, ram_mb=1024), 3, RULES)
    assert nodes(plan) == [1, 2, 1]


def test_without_weighers_the_first_node_is_the_best() -> None:
    assert nodes(select(hosts({}, {"memory_mb": 9000}), SMALL, 2, Rules(FILTERS, ()))) == [1, 1]


def test_the_claim_must_keep_what_the_filters_promised() -> None:
    pick = select(hosts({"vcpus": 0}), SMALL, 1, RULES).picks[0]
    assert pick.limits == {"memory_mb": 8192 * 1.5, "disk_gb": 100.0}
    row = labels({"cpu_allocation_ratio": "2"})
    pick = select(hosts(row), SMALL, 1, Rules((*WITH_CORES, AGGREGATE_CORE), WEIGHERS)).picks[0]
    assert pick.limits == {"memory_mb": 8192 * 1.5, "disk_gb": 100.0, "vcpu": 16.0}


def test_an_anti_affine_group_takes_as_many_nodes_as_it_has_servers() -> None:
    spec = replace(SMALL, group=Group("g", "anti-affinity"))
    assert sorted(nodes(select(hosts({}, {}, {}), spec, 3, RULES))) == [1, 2, 3]
    with pytest.raises(NoValidHost, match="The filter 'ServerGroupAntiAffinityFilter' left no host") as refused:
        select(hosts({}, {}, {}), spec, 4, RULES)
    assert refused.value.found == 3


def test_an_affine_group_stays_on_its_first_node_until_that_is_full() -> None:
    spec = replace(SMALL, ram_mb=4096, group=Group("g", "affinity"))
    assert nodes(select(hosts({}, {"memory_mb": 9000}, {}), spec, 3, RULES)) == [2, 2, 2]
    with pytest.raises(NoValidHost, match="RamFilter"):
        select(hosts({}, {"memory_mb": 9000}, {}), spec, 4, RULES)


def test_a_soft_policy_is_kept_as_long_as_there_is_room_and_nothing_is_refused_for_it() -> None:
    table = [{"memory_mb": 9000}, {}, {}]
    near, apart = (replace(SMALL, ram_mb=4096, group=Group("g", policy)) for policy in ("soft-affinity", SOFT))
    assert nodes(select(hosts(*table), near, 5, RULES)) == [1, 1, 1, 2, 2]
    assert nodes(select(hosts(*table), apart, 6, RULES)) == [1, 2, 3, 1, 2, 3]
    here = replace(near, ram_mb=512, group=Group("g", "soft-affinity", {3: 2}))
    assert nodes(select(hosts(*table), here, 1, RULES)) == [3]
    weak = replace(RULES, options=Options(soft_anti_affinity_multiplier=0.5))
    most = replace(apart, ram_mb=256, group=Group("g", SOFT, {1: 2, 2: 1}))
    large = [{"memory_mb": 30000}, {}, {}]
    assert [nodes(select(hosts(*large), most, 1, rules)) for rules in (RULES, weak)] == [[3], [1]]


def test_a_weigher_of_soft_policies_is_named_only_where_it_has_a_say() -> None:
    plain = ["RAMWeigher", "IoOpsWeigher", "MetricsWeigher"]
    assert [rule["name"] for rule in select(hosts({}), SMALL, 1, RULES).trail["weighers"]] == plain
    soft = replace(SMALL, group=Group("g", SOFT))
    named = [rule["name"] for rule in select(hosts({}), soft, 1, RULES).trail["weighers"]]
    assert named == [*plain, "ServerGroupSoftAntiAffinityWeigher"]


def test_forced_hosts_and_nodes_skip_all_filters_but_that_of_reservations() -> None:
    rows = [
        {"memory_mb": 1, "up": False, "service_host": "a"},
        {"service_host": "a"},
        {"service_host": "b"},
        {"service_host": "c", "pool": "freepool"},
    ]

    def chosen(**forced: tuple[str, ...]) -> list[int]:
        return nodes(select(hosts(*rows), replace(SMALL, **forced), 1, RULES))

    assert chosen(force_nodes=("n1",)) == [1]
    assert chosen(force_hosts=("b",)) == [3]
    assert chosen(force_hosts=("a",), force_nodes=("n2", "n3")) == [2]
    assert chosen(force_hosts=("a", "b"), ignore_hosts=("a",)) == [3]
    with pytest.raises(NoValidHost, match="ReservationFilter"):
        chosen(force_nodes=("n4",))
    with pytest.raises(NoValidHost, match="No host matches the given names"):
        chosen(force_hosts=("b",), force_nodes=("n1",))
    forced = select(hosts(*rows), replace(SMALL, force_nodes=("n1",)), 2, RULES)
    assert [pick.limits for pick in forced.picks] == [{}, {}]


def test_of_several_limits_the_least_is_to_be_kept() -> None:
    rules = replace(RULES, filters=(*WITH_CORES, AGGREGATE_CORE))
    more, less = labels({"cpu_allocation_ratio": "20"}), labels({"cpu_allocation_ratio": "2"})
    for row, vcpus in ((more, 8 * 16), (less, 8 * 2)):
        limits = select(hosts(row), SMALL, 1, rules).picks[0].limits
        assert limits == {"memory_mb": 8192 * 1.5, "disk_gb": 100, "vcpu": vcpus}


def test_ignored_hosts_are_left_out_with_all_their_nodes() -> None:
    rows = [{"service_host": "a"}, {"service_host": "a"}, {"service_host": "b", "memory_mb": 1024}]
    assert nodes(select(hosts(*rows), replace(SMALL, ignore_hosts=("a",)), 2, RULES)) == [3, 3]


def test_a_server_goes_to_one_of_the_best_few_by_chance() -> None:
    rolled: list[int] = []

    def chance(sides: int) -> int:
        rolled.append(sides)
        return sides - 1

    rules = replace(RULES, weighers=(RAM,), options=Options(host_subset_size=3), chance=chance)
    rows = [{"memory_mb": size} for size in (4000, 5000, 5000, 6000, 5000)]
    assert nodes(select(hosts(*rows), SMALL, 1, rules)) == [3]
    assert nodes(select(hosts(*rows[:2]), SMALL, 1, rules)) == [1]
    assert rolled == [3, 2]


@pytest.mark.parametrize("size", range(1, 8))
def test_the_best_few_are_the_first_of_a_stable_order(size: int) -> None:
    totals = np.array([0.5, 1.0, 0.5, 0.0, 1.0, 0.5, -0.25])
    assert best(totals, size) == sorted(range(7), key=lambda at: -totals[at])[:size]


def test_a_refusal_says_what_was_asked_and_which_filter_left_none() -> None:
    spec = Spec("demo", 2, 512, 1 << 30, pools=(), zone="nova", flavor=Flavor("f", "m1.wide", 2, 512, 1 << 20))
    with pytest.raises(NoValidHost) as refused:
        select(hosts({}, {"up": False}), spec, 2, RULES)
    assert str(refused.value) == (
        "No valid host was found. There are not enough hosts available. Asked for: 2 servers of flavor m1.wide "
        "(2 vCPUs, 512 MB of memory, 1073741824 MB of disk) in availability zone nova. "
        "The filter 'DiskFilter' left no host."
    )
    with pytest.raises(NoValidHost, match="There are no hosts"):
        select(hosts(), SMALL, 1, RULES)


def test_nothing_is_placed_when_less_than_all_can_be() -> None:
    with pytest.raises(NoValidHost, match=r"1 of them could be placed\. The filter 'Ram") as refused:
        select(hosts({}), replace(SMALL, ram_mb=8192), 2, RULES)
    assert (refused.value.found, refused.value.trail["refused"]) == (1, "RamFilter")


def test_a_filter_is_asked_again_only_for_what_can_have_changed() -> None:
    asked: dict[Again, list[int]] = {again: [] for again in Again}

    def spy(again: Again) -> Filter:
        def keep(table: Hosts, spec: Spec, options: Options) -> Any:
            asked[again].append(len(table))
            return np.ones(len(table), dtype=np.bool_)

        return Filter(again.value, keep, again)

    select(hosts({}, {}, {}), SMALL, 3, Rules(tuple(spy(again) for again in Again), WEIGHERS))
    assert asked == {Again.NEVER: [3], Again.ROW: [3, 1, 1], Again.ALL: [3, 3, 3]}


def test_a_weigher_of_others_is_asked_again_as_it_wishes() -> None:
    def crowd(table: Hosts, spec: Spec, options: Options) -> Any:
        return table.servers - table.servers.max()

    stack = Weigher("Crowd", crowd, lambda options: 1.0, again=Again.ALL)
    assert nodes(select(hosts({}, {}, {}), SMALL, 3, Rules(FILTERS, (stack,)))) == [1, 1, 1]
    spread = replace(stack, multiplier=lambda options: -1.0)
    assert nodes(select(hosts({}, {}, {}), SMALL, 3, Rules(FILTERS, (spread,)))) == [1, 2, 3]


@pytest.mark.parametrize(
    "asked",
    [
        {"hints": {"query": '["!=", 1, 2]'}},
        {"hints": {"build_near_host_ip": "here"}},
        {"image": {"architecture": "pdp11"}},
        {"image": {"hypervisor_version_requires": "new"}},
    ],
)
@pytest.mark.parametrize("rows", [[], [{"up": False}], [{}]])
def test_what_cannot_be_understood_is_refused_as_such_whatever_the_hosts(
    asked: dict[str, Any], rows: list[dict[str, Any]]
) -> None:
    with pytest.raises(BadRequest):
        select(hosts(*rows), replace(SMALL, **asked), 1, replace(RULES, filters=(*FILTERS, JSON, CIDR)))


@pytest.mark.parametrize(
    ("floor", "ceiling", "weights"),
    [
        (None, None, [0, 1, 0.5]),
        (None, 800, [0, 0.5, 0.25]),
        (0, 800, [0.5, 0.75, 0.625]),
        (None, 500, [0, 1, 0.5]),
        (None, 600, [0, 1, 0.5]),
    ],
)
def test_a_weigher_may_fix_the_lowest_and_the_highest_value(
    floor: float | None, ceiling: float | None, weights: list[float]
) -> None:
    found = Weigher("Own", lambda table, spec, options: table.vcpus, lambda options: 1.0, floor, ceiling)
    table = hosts({"vcpus": 400}, {"vcpus": 600}, {"vcpus": 500})
    told = select(table, SMALL, 1, Rules((ALL_HOSTS,), (found,))).trail["weighed"]
    found_of = {entry["node"]: entry["normalised"][0] for entry in told}
    assert [found_of[node] for node in ("n1", "n2", "n3")] == weights
