"""The schedulers that ask for little: by chance, within a zone, by cores; and what holds under each of them."""

from dataclasses import replace
from typing import Any

import pytest

from climate.compute.errors import BadRequest, NoValidHost
from climate.compute.models.request import Spec
from climate.compute.scheduler.chance import availability_zone, chance
from climate.compute.scheduler.distributed.costs import NOOP
from climate.compute.scheduler.distributed.least_cost import host_filter, least_cost
from climate.compute.scheduler.filters.mandatory import MANDATORY_FILTERS
from climate.compute.scheduler.placement_plan import Schedule
from climate.compute.scheduler.scheduler_parts import Options, Rules
from climate.compute.scheduler.simple import simple
from tests.compute.node_tables import hosts

SPEC = Spec("demo", 1, 512, 1024)
SCHEDULES = (chance, availability_zone, simple, least_cost, host_filter)


def rules(*rolls: int, **options: Any) -> Rules:
    """Chance as it is handed in: the places that these rolls name, then always the last one."""
    left = list(rolls)
    return Rules(MANDATORY_FILTERS, (), Options(**options), (NOOP,), lambda sides: left.pop(0) if left else sides - 1)


def nodes(
    schedule: Schedule, *rows: dict[str, Any], count: int = 1, by: Rules | None = None, **asked: Any
) -> list[str]:
    return [pick.node for pick in schedule(hosts(*rows), replace(SPEC, **asked), count, by or rules()).picks]


def test_chance_asks_only_who_is_up() -> None:
    rows: list[dict[str, Any]] = [{}, {"up": False}, {"memory_mb": 1}, {"disabled": True}, {"zone": "z"}]
    asked: list[int] = []
    by = replace(rules(), chance=lambda sides: asked.append(sides) or len(asked) - 1)
    assert nodes(chance, *rows, count=3, by=by) == ["n1", "n3", "n5"]
    assert asked == [3, 3, 3]


def test_every_node_that_is_up_is_found_by_chance() -> None:
    assert set(nodes(chance, {}, {}, {}, count=200, by=Rules(MANDATORY_FILTERS, ()))) == {"n1", "n2", "n3"}


def test_a_refusal_by_chance_says_whether_anything_runs() -> None:
    with pytest.raises(NoValidHost, match=r"service running\?.*1 vCPUs.*'ComputeFilter'") as refused:
        nodes(chance, {"up": False})
    assert refused.value.trail["filters"][-1]["removed"][0]["node"] == "n1"
    with pytest.raises(NoValidHost, match="Is the appropriate service running"):
        nodes(chance)
    with pytest.raises(NoValidHost, match="Could not find another compute"):
        nodes(chance, {}, {"up": False}, ignore_hosts=("h",))
    with pytest.raises(NoValidHost, match="Could not find another compute"):
        nodes(chance, {}, tried=(1,))


def test_a_zone_holds_only_under_the_scheduler_of_zones() -> None:
    rows: list[dict[str, Any]] = [{"zone": "one"}, {"zone": "two"}, {"zone": "two"}, {}]
    assert nodes(availability_zone, *rows, zone="one") == ["n1"]
    assert nodes(availability_zone, *rows, by=rules(0), zone="two") == ["n2"]
    assert nodes(availability_zone, *rows, zone="nova") == ["n4"]
    assert nodes(availability_zone, *rows, by=rules(2)) == ["n3"]
    with pytest.raises(NoValidHost):
        nodes(availability_zone, *rows, zone="three")
    assert nodes(chance, *rows, by=rules(3), zone="one") == ["n4"]


def test_simple_takes_the_fewest_cores_up_to_its_most() -> None:
    rows: list[dict[str, Any]] = [{"used_vcpus": 3}, {"used_vcpus": 1}, {"used_vcpus": 0, "up": False}]
    assert nodes(simple, *rows, count=4) == ["n2", "n2", "n1", "n2"]
    assert nodes(simple, *rows, count=2, by=rules(max_cores=3)) == ["n2", "n2"]
    with pytest.raises(NoValidHost, match="All hosts have too many cores") as refused:
        nodes(simple, *rows, count=3, by=rules(max_cores=3))
    assert refused.value.found == 2
    with pytest.raises(NoValidHost, match="Is the appropriate service running"):
        nodes(simple, {"up": False})


def test_simple_takes_a_named_host_that_is_alive_whatever_it_carries() -> None:
    assert nodes(simple, {}, {"service_host": "x", "used_vcpus": 99, "disabled": True}, force_hosts=("x",)) == ["n2"]
    assert nodes(simple, {"service_host": "x", "up": False}, {"service_host": "x"}, force_hosts=("x",)) == ["n2"]
    twins = [{"name": "twin", "up": False}, {"name": "twin", "service_host": "x", "used_vcpus": 99}]
    plan = simple(hosts(*twins), replace(SPEC, force_nodes=("twin",)), 1, rules())
    assert plan.picks[0].service_host == "x"
    assert plan.trail["asked"]["force_nodes"] == ["twin"]
    with pytest.raises(BadRequest, match="Host x is not alive"):
        nodes(simple, {}, {"service_host": "x", "up": False}, force_hosts=("x",))
    with pytest.raises(NoValidHost):
        nodes(simple, {}, force_hosts=("x",))
    with pytest.raises(NoValidHost):
        nodes(simple, {}, force_nodes=("x",))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("forced", [{}, {"force_hosts": ("h",)}, {"force_nodes": ("n1",)}])
@pytest.mark.parametrize(
    "pool", [{"pool": "freepool"}, {"pool": "r", "owner": "other"}, {"pool": "r", "owner": "demo"}]
)
def test_nobody_lands_on_a_kept_or_allocated_node(
    schedule: Schedule, forced: dict[str, Any], pool: dict[str, Any]
) -> None:
    with pytest.raises(NoValidHost):
        nodes(schedule, pool, **forced)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("forced", [{}, {"force_hosts": ("h",)}])
def test_a_reservation_opens_its_own_nodes_and_no_others(schedule: Schedule, forced: dict[str, Any]) -> None:
    rows = [{}, {"pool": "r", "owner": "other"}, {"pool": "q", "owner": "demo"}, {"pool": "r", "owner": "demo"}]
    assert set(nodes(schedule, *rows, count=5, pools=("r",), **forced)) == {"n4"}
    with pytest.raises(NoValidHost):
        nodes(schedule, {"pool": "r", "owner": "demo", "closed": True}, pools=("r",), **forced)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("row", [{"up": False}, {"disabled": True}])
def test_nobody_lands_where_no_service_works(schedule: Schedule, row: dict[str, Any]) -> None:
    assert nodes(schedule, row, {}) == ["n2"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_node_that_failed_is_not_tried_again(schedule: Schedule) -> None:
    assert nodes(schedule, {}, {}, tried=(1,)) == ["n2"]
    assert nodes(schedule, {"service_host": "x"}, {}, ignore_hosts=("x",)) == ["n2"]


@pytest.mark.parametrize(
    ("row", "pools", "why"),
    [
        ({}, ("r",), "is in no reservation."),
        ({"pool": "freepool"}, (), "belongs to the pool freepool, which is for leases."),
        ({"pool": "q", "owner": "demo"}, ("r",), "is lent to the reservation q."),
        ({"pool": "r", "owner": "other"}, ("r",), "is lent to another project, for the reservation r."),
        ({"pool": "r", "owner": "demo", "closed": True}, ("r",), "is lent to the reservation r, which is ending."),
    ],
)
def test_the_refusal_says_why_a_reservation_is_in_the_way(
    row: dict[str, Any], pools: tuple[str, ...], why: str
) -> None:
    with pytest.raises(NoValidHost) as refused:
        nodes(chance, row, pools=pools)
    assert refused.value.trail["filters"][0]["removed"] == [{"host": "h", "node": "n1", "why": why}]
