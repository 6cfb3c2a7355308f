"""A scheduler of another package gets only nodes that may be used, and a wrong answer refuses the request alone."""

from dataclasses import replace
from typing import Any

import pytest

from climate.compute.errors import BadRequest, NoValidHost
from climate.compute.models.request import Spec
from climate.compute.scheduler.decisions import notifications
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.filters.mandatory import MANDATORY_FILTERS
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Pick, Plan
from climate.compute.scheduler.scheduler_parts import Rules
from climate.compute.scheduler.third_party import ThirdPartyScheduler
from tests.compute.node_tables import hosts

SPEC = Spec("demo", 1, 512, 1024)
RULES = Rules(MANDATORY_FILTERS, ())


def all_there_is(table: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    """The nodes as the scheduler gets them, under wrong names."""
    return Plan(tuple(Pick(node, "wrong", "wrong") for node in table.ids.tolist()), {"mine": 1})


def chosen(table: Hosts, spec: Spec = SPEC, count: int = 1) -> list[str]:
    return [pick.node for pick in ThirdPartyScheduler("own", all_there_is)(table, spec, count, RULES).picks]


@pytest.mark.parametrize(
    ("row", "spec"),
    [
        ({"pool": "freepool"}, SPEC),
        ({"pool": "r1", "owner": "other"}, replace(SPEC, pools=("r1",))),
        ({"up": False}, SPEC),
        ({"disabled": True}, SPEC),
        ({}, replace(SPEC, tried=(1,))),
        ({}, replace(SPEC, force_nodes=("n2",))),
        ({}, replace(SPEC, destination=":n2")),
        ({"service_host": "g"}, replace(SPEC, ignore_hosts=("g",))),
    ],
)
def test_a_node_that_may_not_be_used_is_not_in_its_table(row: dict[str, Any], spec: Spec) -> None:
    pool = {"pool": "r1", "owner": "demo"} if spec.pools else {}
    assert chosen(hosts(row, pool), spec) == ["n2"]


def test_its_trail_has_what_holds_for_everybody_and_what_it_says_itself() -> None:
    plan = ThirdPartyScheduler("own", all_there_is)(hosts({"up": False}, {}), SPEC, 1, RULES)
    assert (plan.trail["scheduler"], plan.trail["mine"]) == ("own", 1)
    assert plan.trail["filters"][2]["removed"][0]["node"] == "n1"
    assert [pick["node"] for pick in plan.trail["picks"]] == ["n2"]
    assert plan.picks[0].service_host == "h"


def test_it_may_ask_the_filter_scheduler() -> None:
    plan = ThirdPartyScheduler("own", select)(hosts({"up": False}, {}), SPEC, 2, RULES)
    assert [pick.node for pick in plan.picks] == ["n2", "n2"]
    assert [stage["name"] for stage in plan.trail["filters"]] == [
        rule.name for rule in (*MANDATORY_FILTERS, *MANDATORY_FILTERS)
    ]


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (Plan(()), "'own' chose 0 nodes for 1"),
        (Plan((Pick(2, "n2", "h"),)), "'own' chose a node that it may not use"),
        (Plan((Pick(9, "n9", "h"),)), "'own' chose a node that it may not use"),
        (Plan((Pick(1, "n1", "h", weight=float("nan")),)), "'own' chose a node that it may not use"),
        (None, "'own' failed: AttributeError"),
    ],
)
def test_a_wrong_answer_is_no_valid_host(plan: Any, says: str) -> None:
    with pytest.raises(NoValidHost, match=says) as refused:
        notifications.run(
            ThirdPartyScheduler("own", lambda *_: plan), hosts({}, {"pool": "freepool"}), SPEC, (1, RULES)
        )
    assert refused.value.trail["scheduler"] == "own"


def failing(reason: Exception) -> ThirdPartyScheduler:
    def schedule(table: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
        raise reason

    return ThirdPartyScheduler("own", schedule)


def test_its_own_refusals_are_passed_on_and_its_faults_are_no_valid_host() -> None:
    with pytest.raises(BadRequest, match="the hint"):
        failing(BadRequest("the hint"))(hosts({}), SPEC, 1, RULES)
    with pytest.raises(NoValidHost, match="too hot") as refused:
        failing(NoValidHost("too hot", found=1))(hosts({}), SPEC, 2, RULES)
    assert refused.value.found == 1
    with pytest.raises(NoValidHost, match="'own' failed: ZeroDivisionError"):
        failing(ZeroDivisionError("x"))(hosts({}), SPEC, 1, RULES)
    with pytest.raises(NoValidHost, match="The filter 'ComputeFilter' left no host"):
        failing(ZeroDivisionError("x"))(hosts({"up": False}), SPEC, 1, RULES)


def test_a_trail_that_is_not_json_is_dropped() -> None:
    plan = ThirdPartyScheduler("own", lambda *_: Plan((Pick(1, "", ""),), {"mine": object()}))(
        hosts({}), SPEC, 1, RULES
    )
    assert "mine" not in plan.trail
    assert plan.trail["picks"][0]["node"] == "n1"


def test_a_filter_that_fails_refuses_the_request() -> None:
    broken = replace(MANDATORY_FILTERS[1], keep=lambda *_: [True, False, True])
    with pytest.raises(NoValidHost, match="A part of the scheduler failed"):
        notifications.run(select, hosts({}, {}), SPEC, (1, Rules((broken,), ())))
