"""The distributed scheduler's plan: the cheapest node for each server, each counted before the next one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from climate.compute.errors import BadRequest, ComputeHostMetricNotFound, NoValidHost
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import Spec
from climate.compute.scheduler.distributed.costs import NOOP, compute_fill_first_cost_fn, normalised, total
from climate.compute.scheduler.distributed.least_cost import host_filter, least_cost, select
from climate.compute.scheduler.filters.mandatory import MANDATORY_FILTERS
from climate.compute.scheduler.hosts.table import Hosts, Numbers
from climate.compute.scheduler.placement_plan import Pick, Plan
from climate.compute.scheduler.scheduler_parts import Cost, Options, Rules
from tests.compute.node_tables import hosts

SPEC = Spec("demo", 1, 512, 1024)
FILL_FIRST = Cost("compute_fill_first_cost_fn", compute_fill_first_cost_fn)
BASE, FILL = (Rules(MANDATORY_FILTERS, (), Options(), (cost,)) for cost in (NOOP, FILL_FIRST))


def gibibytes(*free: int) -> Hosts:
    return hosts(*[{"memory_mb": 1024 * amount} for amount in free])


def taken(plan: Plan) -> list[tuple[str, float]]:
    return [(pick.node, pytest.approx(pick.weight)) for pick in plan.picks]


def test_what_is_chosen_is_counted_so_that_a_full_node_falls_out() -> None:
    assert taken(select(gibibytes(1, 2, 3), SPEC, 4, BASE)) == [("n1", 1), ("n1", 1), ("n2", 1), ("n2", 1)]


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_a_cost_that_is_no_number_refuses_the_request(odd: float) -> None:
    def strange(table: Hosts, spec: Spec) -> Numbers:
        return np.where(table.ram_mb > 2048, odd, 1.0)

    rules = Rules(MANDATORY_FILTERS, (), Options(), (Cost("strange", strange),))
    with pytest.raises(ComputeHostMetricNotFound, match="The cost 'strange' is not a number for a host"):
        least_cost(gibibytes(1, 2, 3), SPEC, 1, rules)
    (pick,) = least_cost(gibibytes(1, 2), SPEC, 1, rules).picks
    assert pick.node == "n1"


def test_the_plan_is_sorted_by_cost() -> None:
    plan = select(gibibytes(1, 2, 3), SPEC, 4, FILL)
    assert taken(plan) == [("n1", 1 / 6), ("n1", 1 / 3), ("n2", 1 / 2), ("n2", 2 / 3)]


def test_the_host_filter_scheduler_takes_the_first_node_that_stays() -> None:
    assert [pick.node for pick in host_filter(gibibytes(1, 2), SPEC, 3, FILL).picks] == ["n1", "n1", "n2"]
    sized = replace(SPEC, host_filter="InstanceTypeFilter", flavor=Flavor("f", "f", 1, 512, 1, extra_specs={"k": "v"}))
    table = hosts({}, {"stats": {"k": "v"}})
    assert [pick.node for pick in host_filter(table, sized, 2, BASE).picks] == ["n2", "n2"]


def test_the_host_filter_of_the_request_comes_before_the_configured_one() -> None:
    rules = replace(BASE, options=Options(host_filter="InstanceTypeFilter"))
    large = replace(SPEC, disk_mb=1024 * 101)
    with pytest.raises(NoValidHost):
        least_cost(hosts({}), large, 1, rules)
    assert least_cost(hosts({}), replace(large, host_filter="AllHostsFilter"), 1, rules).picks[0].node == "n1"
    with pytest.raises(BadRequest, match="Host Filter Mine could not be found"):
        least_cost(hosts({}), replace(SPEC, host_filter="Mine"), 1, rules)


def test_a_claim_must_keep_what_was_looked_at() -> None:
    def limits(spec: Spec) -> dict[str, float]:
        return dict(least_cost(hosts({"reserved_ram_mb": 512}), spec, 1, BASE).picks[0].limits)

    assert limits(SPEC) == {"memory_mb": 8192}
    for name in ("InstanceTypeFilter", "JsonFilter"):
        assert limits(replace(SPEC, host_filter=name)) == {"memory_mb": 8192, "disk_gb": 100}
    assert limits(replace(SPEC, force_hosts=("h",))) == {}


def test_fewer_than_asked_is_a_plan_but_no_placement() -> None:
    assert len(select(gibibytes(1), SPEC, 3, BASE).picks) == 2
    with pytest.raises(NoValidHost, match="No hosts were available") as refused:
        least_cost(gibibytes(1), SPEC, 3, BASE)
    assert refused.value.found == 2
    assert select(hosts(), SPEC, 3, BASE).picks == ()
    with pytest.raises(NoValidHost, match="There are no hosts"):
        least_cost(hosts(), SPEC, 1, BASE)


def obvious(table: Hosts, spec: Spec, count: int, rules: Rules) -> list[tuple[str, float]]:
    """Everything anew for each server: filter the survivors, weigh them all, sort, take the first."""
    survivors, plan = list(range(len(table))), []
    for _ in range(count):
        survivors = [row for row in survivors if table.free_ram_mb[row] >= spec.ram_mb]
        if not survivors:
            break
        costs = total(rules.costs, [normalised(cost.of(table, spec)[survivors]) for cost in rules.costs])
        cost, row = sorted(zip(costs.tolist(), survivors, strict=True))[0]
        plan.append((str(table.names[row]), cost))
        table.consume(row, spec)
    return sorted(plan, key=lambda item: item[1])


def by_servers(table: Hosts, spec: Spec) -> Numbers:
    return np.asarray(table.servers - 2, dtype=np.float64)


@given(
    st.lists(st.tuples(st.sampled_from([512, 1024, 4096]), st.integers(0, 4)), max_size=6),
    st.integers(1, 12),
    st.tuples(st.floats(-3, 3), st.floats(-3, 3)),
)
def test_the_plan_is_that_of_the_obvious_rule(
    nodes: list[tuple[int, int]], count: int, weights: tuple[float, float]
) -> None:
    rows = [{"memory_mb": memory, "used_servers": servers} for memory, servers in nodes]
    rules = replace(FILL, costs=(replace(FILL_FIRST, weight=weights[0]), Cost("servers", by_servers, weights[1])))
    found = [(pick.node, pick.weight) for pick in select(hosts(*rows), SPEC, count, rules).picks]
    assert found == obvious(hosts(*rows), SPEC, count, rules)


def test_the_trail_tells_costs_as_it_tells_weights() -> None:
    plan = select(gibibytes(1, 2, 3), SPEC, 4, replace(FILL, costs=(replace(FILL_FIRST, weight=2.0),)))
    assert plan.trail["scheduler"] == "least_cost"
    assert [stage["name"] for stage in plan.trail["filters"]] == [
        *("ReservationFilter", "RetryFilter", "ComputeFilter", "FreeMemoryFilter", "AllHostsFilter")
    ]
    assert plan.trail["weighers"] == [{"name": "compute_fill_first_cost_fn", "multiplier": 2.0}]
    costs = [(entry["node"], entry["raw"], entry["normalised"], entry["weight"]) for entry in plan.trail["weighed"]]
    third = pytest.approx(1 / 3)
    assert costs[0] == ("n1", [1024.0], [third], pytest.approx(2 / 3))
    assert [cost[0] for cost in costs] == ["n1", "n2", "n3"]
    assert [pick["node"] for pick in plan.trail["picks"]] == [pick.node for pick in plan.picks]
    fallen = [stage for pick in plan.trail["picks"] for stage in pick.get("filters", ())]
    assert [(stage["name"], stage["start"], stage["end"]) for stage in fallen] == [("FreeMemoryFilter", 3, 2)]
    assert [gone["node"] for gone in fallen[0]["removed"]] == ["n1"]


def test_a_refusal_says_what_was_asked_and_what_left_none_but_no_name(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    sized = replace(SPEC, host_filter="InstanceTypeFilter", disk_mb=1024 * 200)
    with pytest.raises(NoValidHost, match=r"512 MB of memory.*'InstanceTypeFilter'") as refused:
        least_cost(hosts({}, {"memory_mb": 1}), sized, 1, BASE)
    assert refused.value.trail["refused"] == "InstanceTypeFilter"
    stages = {stage["name"]: stage["removed"] for stage in refused.value.trail["filters"]}
    assert "1 MB of memory" in stages["FreeMemoryFilter"][0]["why"]
    assert "100 GB" in stages["InstanceTypeFilter"][0]["why"]
    assert "n1" not in str(refused.value)
    assert "Filter returned no hosts after processing 0 of 1 instances" in caplog.text
    assert "'InstanceTypeFilter: (start: 1, end: 0)'" in caplog.text


def test_picks_are_of_nodes_as_claims_know_them() -> None:
    table = hosts({"up": False}, {"id": 7, "service_host": "x"})
    assert least_cost(table, SPEC, 1, BASE).picks == (Pick(7, "n2", "x", {"memory_mb": 8192}, 1.0),)
