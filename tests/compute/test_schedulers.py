"""The other schedulers place real servers: what they decide is claimed, kept, and never opens a lent node."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.cloud.bundled import BundledCloud
from climate.compute.errors import BadRequest, NoValidHost
from climate.compute.models.server import ACTIVE, ERROR
from climate.compute.placement import decisions, server_groups
from climate.compute.reservations import pools
from climate.compute.servers import create, resize, unshelve
from climate.compute.servers.actions import shelve
from climate.compute.zones.builds.selection import room
from climate.configuration.scheduler import BUNDLED, chosen
from climate.settings import Settings
from tests.compute.cloud_factory import HALF, HUGE, SERVICE, Place, request

OTHERS = sorted({*BUNDLED} - {"filter", "multi"})
NODES = ["n1", "n2", "n3", "n4"]


def under(here: Place, name: str, **settings: Any) -> Place:
    """The same cloud with another scheduler."""
    schedule, rules = chosen(Settings(scheduler=name, **settings))
    return replace(here, compute=replace(here.compute, schedule=schedule, rules=rules))


@pytest.mark.parametrize("name", OTHERS)
def test_each_scheduler_places_and_tells_how(here: Place, name: str) -> None:
    cloud = under(here, name)
    placed = cloud.boot_one()
    assert placed.status == ACTIVE
    (told,) = decisions.of(cloud.compute, placed.id)
    assert told.kind == decisions.PLACED
    assert told.trail["picks"][0]["node"] == placed.node
    assert [stage["name"] for stage in told.trail["filters"]][:3] == [
        *("ReservationFilter", "RetryFilter", "ComputeFilter")
    ]


@pytest.mark.parametrize("name", OTHERS)
def test_under_each_scheduler_an_allocated_node_is_for_its_project_alone(here: Place, name: str) -> None:
    cloud = under(here, name)
    for node in NODES:
        pools.enrol(cloud.compute, node, 1)
    pools.lend(cloud.compute, "r1", "demo", ["n2"], 1)
    for asked in ({}, {"zone": "nova::n2", "admin": True}, {"zone": f"nova:{SERVICE}", "admin": True}):
        refused = cloud.boot(**asked)[0]
        assert (refused.status, refused.node) == (ERROR, None)
        assert not [name for name in (*NODES, SERVICE) if name in str(refused.fault)]
    assert cloud.boot(project_id="other", hints={"reservation": "r1"})[0].status == ERROR
    assert cloud.boot_one(hints={"reservation": "r1"}).node == "n2"


def test_least_cost_promises_memory_once_and_fills_the_fullest_node_first(here: Place) -> None:
    cloud = under(here, "least_cost", least_cost_functions="compute_fill_first_cost_fn=1")
    with cloud.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET reserved_ram_mb = 0"))
    made = cloud.boot(HALF, count=9, least=9)
    assert {server.status for server in made} == {ERROR}
    assert "No hosts were available" in str(made[0].fault)
    with ThreadPoolExecutor(4) as threads:
        alone = [done.result()[0] for done in [threads.submit(cloud.boot, HALF) for _ in range(9)]]
    assert sorted(server.status == ERROR for server in alone) == [False] * 8 + [True]
    assert [cloud.used(node)[1] for node in NODES] == [8192] * 4


def test_a_host_filter_that_is_not_in_the_list_is_refused_and_leaves_nothing(here: Place) -> None:
    cloud = under(here, "host_filter")
    with pytest.raises(BadRequest, match=r"Host Filter nova\.Mine could not be found"):
        cloud.boot(hints={"host_filter": "nova.Mine"})
    with pytest.raises(BadRequest, match="unknown operator"):
        cloud.boot(hints={"host_filter": "JsonFilter", "query": '["is", 1]'})
    assert cloud.count("compute_servers") == 0
    query = {"host_filter": "JsonFilter", "query": '["<", "$compute.host_memory_free", 1]'}
    assert "'JsonFilter'" in str(cloud.boot(hints=query)[0].fault)


def test_simple_refuses_a_named_host_that_is_not_alive_and_takes_a_disabled_one(here: Place) -> None:
    cloud = under(here, "simple")
    forced = {"zone": f"nova:{SERVICE}", "admin": True}
    with cloud.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_services SET enabled = false"))
    assert cloud.boot()[0].status == ERROR
    assert cloud.boot(**forced)[0].node is not None
    with cloud.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_services SET beat_at = beat_at - interval '1 hour'"))
    servers = cloud.count("compute_servers")
    with pytest.raises(BadRequest, match=f"Host {SERVICE} is not alive"):
        cloud.boot(**forced)
    assert cloud.count("compute_servers") == servers


def test_simple_stops_at_its_most_cores(here: Place) -> None:
    cloud = under(here, "simple", simple_max_cores=4)
    made = [cloud.boot(HALF)[0] for _ in range(5)]
    assert sorted(server.node or "" for server in made[:4]) == NODES
    assert "All hosts have too many cores" in str(made[4].fault)


@pytest.mark.parametrize("name", OTHERS)
def test_a_group_whose_policy_nobody_would_keep_is_refused(here: Place, name: str) -> None:
    made = server_groups.create(here.compute, project_id="demo", user_id="dora", name="g", policy="anti-affinity")
    with pytest.raises(BadRequest, match="anti-affinity"):
        under(here, name).boot(hints={"group": made.id})
    assert here.count("compute_servers") == 0


def test_nodes_that_name_no_zone_are_in_the_configured_one(here: Place) -> None:
    cloud = under(here, "filter", default_availability_zone="south")
    assert cloud.boot_one(zone="south").status == ACTIVE
    with pytest.raises(BadRequest, match="availability zone is not available"):
        cloud.boot(zone="nova")
    assert BundledCloud(cloud.compute).find_hosts("n1")[0].availability_zone == "south"


def test_simple_puts_no_more_cores_on_a_node_than_it_may_have(here: Place) -> None:
    """Also where all of them have read in the same moment how many it has."""
    cloud = under(here, "simple", simple_max_cores=3)
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda number: cloud.boot(networks=(), project_id=f"p{number}")[0], range(16)))
    assert Counter(server.node for server in made) == dict.fromkeys(NODES, 3) | {None: 4}


def trail_of(here: Place, server_id: str) -> dict[str, Any]:
    """How the last decision about a server was reached."""
    return dict(decisions.of(here.compute, server_id)[-1].trail)


def rule_names(here: Place, server_id: str) -> tuple[set[str], set[str]]:
    """The filters and the weighers of the last decision about a server."""
    found = trail_of(here, server_id)
    return {stage["name"] for stage in found["filters"]}, {rule["name"] for rule in found["weighers"]}


def test_multi_has_a_scheduler_for_each_kind_of_request(here: Place) -> None:
    kinds = "boot=least_cost, reserve=simple, unshelve=host_filter"
    cloud = under(here, "multi", multi_schedulers=kinds, least_cost_functions="compute_fill_first_cost_fn=1")
    server = cloud.boot_one(networks=())
    assert rule_names(cloud, server.id)[1] == {"compute_fill_first_cost_fn"}
    held = create.reserve(cloud.compute, request(networks=()), str(uuid4()))
    assert "SimpleCoresFilter" in rule_names(cloud, held.id)[0]
    shelve(cloud.compute, server.id)
    cloud.settle()
    unshelve.unshelve(cloud.compute, server.id)
    assert rule_names(cloud, server.id)[1] == {"noop_cost_fn"}
    cloud.settle()
    with pytest.raises(NoValidHost, match="filter 'RamFilter'"):
        resize.resize(cloud.compute, server.id, HUGE)


def test_multi_tries_a_server_again_by_the_scheduler_of_its_kind(here: Place) -> None:
    cloud = under(here, "multi", multi_schedulers="boot=simple,reserve=least_cost")
    cloud.driver.broken.add("n1")
    server = cloud.boot_one(networks=())
    assert (server.status, server.node) == (ACTIVE, "n2")
    assert "SimpleCoresFilter" in rule_names(cloud, server.id)[0]


def test_multi_keeps_the_groups_that_the_scheduler_of_a_kind_keeps(here: Place) -> None:
    made = server_groups.create(here.compute, project_id="demo", user_id="dora", name="g", policy="anti-affinity")
    cloud = under(here, "multi", multi_schedulers="reserve=simple")
    asked = request(networks=(), hints={"group": made.id})
    assert len({server.node for server in create.boot(cloud.compute, replace(asked, count=3, least=3))}) == 3
    with pytest.raises(BadRequest, match="anti-affinity"):
        create.reserve(cloud.compute, asked, str(uuid4()))


def test_a_server_without_a_zone_goes_to_the_one_of_the_settings(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET zone = 'west' WHERE name = 'n3'"))
    cloud = under(here, "filter", default_schedule_zone="west")
    first = cloud.boot_one(networks=())
    assert (first.node, first.zone) == ("n3", "west")
    assert cloud.boot_one(networks=(), zone="nova").node != "n3"
    assert cloud.boot_one(networks=(), zone=":n1", admin=True).node == "n1"
    shelve(cloud.compute, first.id)
    cloud.settle()
    unshelve.unshelve(cloud.compute, first.id)
    assert cloud.look(first.id).node == "n3"
    assert room(cloud.compute, request(HALF, count=9)) == 2, "estimates are of that zone too"


def test_a_reservation_is_in_no_default_zone(here: Place) -> None:
    pools.enrol(here.compute, "n2", 1)
    pools.lend(here.compute, "r1", "demo", ["n2"], 1)
    cloud = under(here, "filter", default_schedule_zone="west")
    assert cloud.boot_one(hints={"reservation": "r1"}).node == "n2"
    with pytest.raises(BadRequest, match="availability zone is not available"):
        cloud.boot()
