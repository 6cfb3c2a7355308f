"""Estimates: what servers would cost under each scheduler, on a copy of the nodes."""

import numpy as np
import pytest

from climate.compute.models.request import Spec
from climate.compute.scheduler.chance import availability_zone, chance
from climate.compute.scheduler.cost_estimates import estimate
from climate.compute.scheduler.distributed.costs import NOOP, compute_fill_first_cost_fn
from climate.compute.scheduler.distributed.least_cost import host_filter, least_cost
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.filters import FILTERS
from climate.compute.scheduler.filters.mandatory import MANDATORY_FILTERS
from climate.compute.scheduler.placement_plan import Plan, Schedule
from climate.compute.scheduler.scheduler_parts import Cost, Options, Rules
from climate.compute.scheduler.simple import simple
from climate.compute.scheduler.weighers import WEIGHERS
from tests.compute.node_tables import hosts

SMALL = Spec("demo", 1, 512, 0)
FREE = [{"memory_mb": size, "ram_ratio": 1.0} for size in (1024, 2048, 3072)]
BASE = Rules(MANDATORY_FILTERS, (), costs=(NOOP,))
FILL = Rules(MANDATORY_FILTERS, (), costs=(Cost("fill", compute_fill_first_cost_fn),))


def told(plan: Plan) -> list[tuple[str, float]]:
    return [(pick.node, round(pick.weight, 4)) for pick in plan.picks]


def test_ds_4_what_is_promised_is_gone_for_the_next_server() -> None:
    assert told(estimate(least_cost, hosts(*FREE), SMALL, 4, BASE)) == [("n1", 1), ("n1", 1), ("n2", 1), ("n2", 1)]


def test_ds_5_the_fullest_node_first() -> None:
    plan = estimate(least_cost, hosts(*FREE), SMALL, 4, FILL)
    assert told(plan) == [("n1", 0.1667), ("n1", 0.3333), ("n2", 0.5), ("n2", 0.6667)]


def test_under_the_filter_scheduler_a_node_costs_the_part_of_its_memory_that_is_promised() -> None:
    plan = estimate(select, hosts(*FREE), SMALL, 4, Rules(FILTERS, WEIGHERS))
    assert told(plan) == [("n3", 0.1667), ("n2", 0.25), ("n3", 0.3333), ("n1", 0.5)]


def test_where_servers_are_stacked_the_fullest_node_is_the_cheapest() -> None:
    rules = Rules(FILTERS, WEIGHERS, Options(ram_multiplier=-1.0))
    (pick,) = estimate(select, hosts({"used_ram_mb": 4096}, {}), SMALL, 1, rules).picks
    (other,) = estimate(select, hosts({}, {}), SMALL, 1, rules).picks
    assert pick.node == "n1"
    assert pick.weight < other.weight


@pytest.mark.parametrize("schedule", [host_filter, chance, availability_zone])
def test_simple_schedulers_give_every_server_the_weight_1(schedule: Schedule) -> None:
    plan = estimate(schedule, hosts(*FREE), SMALL, 3, FILL)
    assert [pick.weight for pick in plan.picks] == [1, 1, 1]


def test_the_simple_scheduler_costs_the_cores_in_use() -> None:
    plan = estimate(simple, hosts({"used_vcpus": 3}, {"used_vcpus": 2}), SMALL, 3, BASE)
    assert told(plan) == [("n2", 2), ("n1", 3), ("n2", 3)]


@pytest.mark.parametrize("schedule", [select, least_cost, host_filter, simple])
def test_as_many_as_there_is_room_for(schedule: Schedule) -> None:
    large = Spec("demo", 8, 8192, 0)
    rules = Rules(FILTERS, WEIGHERS, Options(max_cores=8), costs=(NOOP,))
    plan = estimate(schedule, hosts({"ram_ratio": 1.0}, {"ram_ratio": 1.0}), large, 9, rules)
    assert [pick.node for pick in plan.picks] in (["n1", "n2"], ["n2", "n1"])
    assert estimate(schedule, hosts(), large, 9, rules).picks == ()


@pytest.mark.parametrize("schedule", [select, least_cost, host_filter, simple, chance, availability_zone])
def test_an_estimate_promises_nothing(schedule: Schedule) -> None:
    there = hosts(*FREE)
    before = there.copy()
    first = estimate(schedule, there, SMALL, 3, Rules(FILTERS, WEIGHERS, costs=(NOOP,)))
    for name in ("used_vcpus", "used_ram_mb", "used_disk_mb", "servers", "io_ops"):
        assert np.array_equal(getattr(there, name), getattr(before, name))
    if schedule not in (chance, availability_zone):
        assert estimate(schedule, there, SMALL, 3, Rules(FILTERS, WEIGHERS, costs=(NOOP,))).picks == first.picks
