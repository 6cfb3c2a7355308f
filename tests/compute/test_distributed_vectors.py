"""Vectors of the distributed scheduler that one zone answers alone: quotas, and schedulers that look at zones only."""

from dataclasses import replace

import pytest
from sqlalchemy import text

from climate.compute.errors import NoValidHost, QuotaExceeded
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import Spec
from climate.compute.projects import quota_check
from climate.compute.scheduler.chance import availability_zone, chance
from climate.compute.scheduler.hosts.table import Hosts
from climate.compute.scheduler.placement_plan import Plan
from climate.compute.scheduler.scheduler_parts import Rules
from climate.compute.servers import actions, create, resize, unshelve
from climate.compute.store.projects import quotas
from tests.compute.cloud_factory import HALF, SERVICE, Place, request

FLAVOR = Flavor("f", "f", 1, 2048, 1)
LIMITS = {"instances": 2, "cores": 4, "ram_mb": 51200}
NONE = {"instances": -1, "cores": -1, "ram_mb": -1}


@pytest.mark.parametrize(
    ("limits", "asked", "allowed"),
    [
        (LIMITS, 100, 2),
        (LIMITS | {"instances": 10}, 100, 4),
        (LIMITS | {"instances": 10, "cores": 100}, 100, 10),
        (LIMITS | {"instances": 10, "cores": 100, "ram_mb": 6144}, 100, 3),
        (NONE, 100, 100),
        (NONE, 101, 101),
    ],
)
def test_ds_16_the_number_of_servers_that_a_quota_allows(
    here: Place, limits: dict[str, int], asked: int, allowed: int
) -> None:
    with here.compute.engine.begin() as conn:
        quotas.lock_limits(conn, "demo")
        quotas.set_limits(conn, "demo", limits)
        assert quota_check.allowed(conn, "demo", FLAVOR, asked, 1) == allowed
        if limits["instances"] >= 0:
            with pytest.raises(QuotaExceeded):
                quota_check.allowed(conn, "demo", FLAVOR, asked, asked)


def test_ds_17_a_server_goes_to_the_only_node_of_its_zone(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET zone = CASE WHEN name = 'n1' THEN 'zone1' ELSE 'zone2' END"))
    compute = replace(here.compute, schedule=availability_zone)
    there = replace(here, compute=compute)
    assert {there.boot(zone="zone1")[0].node for _ in range(4)} == {"n1"}


def test_ds_19_nodes_of_a_disabled_service_are_not_there(here: Place) -> None:
    there = replace(here, compute=replace(here.compute, schedule=chance))
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_services SET enabled = false"))
    with pytest.raises(NoValidHost):
        create.boot(there.compute, request(), strict=True)
    assert here.count("compute_servers") == 0
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_services SET enabled = true"))
    assert there.boot()[0].node in {"n1", "n2", "n3", "n4"}


def test_ds_20_operations_that_need_a_node_ask_one_scheduler_and_ring_for_its_choice(here: Place) -> None:
    """There is no `schedule_<operation>` that a scheduler might lack."""
    asked: list[int] = []

    def schedule(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
        asked.append(count)
        return chance(hosts, spec, count, rules)

    there = replace(here, compute=replace(here.compute, schedule=schedule))
    server = there.boot()[0]
    assert (asked, there.rings.rung) == ([1], [(SERVICE, server.id)])
    there.settle()
    resize.resize(there.compute, server.id, HALF)
    assert (len(asked), there.rings.rung) == (2, [(SERVICE, server.id)])
    there.settle()
    resize.confirm(there.compute, server.id)
    actions.shelve(there.compute, server.id)
    there.settle()
    assert len(asked) == 2
    unshelve.unshelve(there.compute, server.id)
    assert (len(asked), there.rings.rung) == (3, [(SERVICE, server.id)])
