"""Booting: a node, room on it and an address, or nothing; also when many boot at once."""

import contextlib
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from climate.compute.errors import BadRequest, NoMoreAddresses, NotFound, NoValidHost, QuotaExceeded
from climate.compute.models.server import ACTIVE, BUILD, DELETE, ERROR, RESERVED
from climate.compute.network import fixed_ips
from climate.compute.nodes import aggregates, services
from climate.compute.reservations import pools
from climate.compute.servers import actions, create
from climate.compute.store.clock import database_time
from climate.compute.store.networks import networks as network_rows
from climate.compute.virt import Guest
from climate.compute.virt.in_memory import MemoryDriver
from tests.compute import network_factory
from tests.compute.cloud_factory import HALF, HUGE, Place, node, place, request


def test_a_server_gets_a_node_and_an_address_and_becomes_active(here: Place) -> None:
    made = here.boot()[0]
    assert (made.status, made.task) == (BUILD, "spawning")
    assert here.rings.rung == [("compute-1", made.id)]
    here.settle()
    server = here.look(made.id)
    assert (server.status, server.task, server.launched_at is not None) == (ACTIVE, None, True)
    assert [address.address for address in server.addresses] == ["10.10.0.2"]
    assert re.fullmatch("02:16:3e:[0-7][0-9a-f]:[0-9a-f]{2}:[0-9a-f]{2}", server.addresses[0].mac)  # NW-25
    assert here.used(server.node or "") == (1, 512, 1024)


def test_what_no_driver_keeps_of_a_server_is_in_the_database(here: Place) -> None:
    """A driver that has lost all its guests changes none of it."""
    wanted = {"metadata": {"team": "a"}, "description": "of the team", "hints": {"different_host": str(uuid4())}}
    made = here.boot_one(**wanted)
    assert {field.name for field in fields(Guest)}.isdisjoint({*wanted, "project_id", "user_id", "flavor", "addresses"})
    here.driver.guests.clear()
    kept = here.look(made.id)
    assert {name: getattr(kept, name) for name in wanted} == wanted
    assert (kept.project_id, kept.user_id, kept.flavor.name) == ("demo", "dora", "tiny")
    assert kept.addresses == made.addresses != ()


def test_deleting_gives_everything_back(here: Place) -> None:
    server = here.boot_one()
    actions.request_task(here.compute, server.id, DELETE)
    assert here.look(server.id).task == "deleting"
    here.settle()
    with pytest.raises(NotFound):
        here.look(server.id)
    assert here.used(server.node or "") == (0, 0, 0)
    assert here.count("compute_addresses", "server_id IS NOT NULL") == 0
    assert ("delete", server.id) in here.driver.calls


def test_servers_of_one_request_are_spread_and_numbered(here: Place) -> None:
    made = here.boot(HALF, count=4, least=4)
    here.settle()
    servers = [here.look(server.id) for server in made]
    assert sorted(server.name for server in servers) == ["s-1", "s-2", "s-3", "s-4"]
    assert {server.node for server in servers} == {"n1", "n2", "n3", "n4"}
    assert len({server.build_id for server in servers}) == 1
    assert len({server.addresses[0].address for server in servers}) == 4


def test_where_no_node_is_left_the_server_says_why(here: Place) -> None:
    server = here.boot(HUGE)[0]
    assert server.status == ERROR
    assert "RamFilter" in str(server.fault)
    assert here.count("compute_addresses", "server_id IS NOT NULL") == 0
    actions.request_task(here.compute, server.id, DELETE)
    assert here.count("compute_servers") == 0


def test_as_many_as_possible_down_to_the_least(here: Place) -> None:
    assert len(here.boot(HALF, count=40, least=12)) == 12
    assert here.drift() == []


@pytest.mark.parametrize("admin", [False, True])
def test_a_zone_that_is_not_there_is_refused_at_once(here: Place, admin: bool) -> None:
    for ask in (
        lambda: here.boot(zone="nowhere", admin=admin),
        lambda: create.reserve(here.compute, request(zone="nowhere", admin=admin), str(uuid4())),
    ):
        with pytest.raises(BadRequest, match="The requested availability zone is not available"):
            ask()
    assert here.count("compute_servers") == 0
    assert here.count("compute_addresses", "server_id IS NOT NULL") == 0


def test_the_zone_of_a_disabled_service_is_not_available(here: Place) -> None:
    assert here.boot(zone="nova")[0].status == BUILD
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_services SET enabled = false"))
    with pytest.raises(BadRequest, match="availability zone"):
        here.boot(zone="nova")


def test_the_zones_there_are_are_those_that_the_filter_finds_nodes_in(here: Place) -> None:
    """An aggregate's, else a node's own, else the default one: each where a node says it."""
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET zone = 'own' WHERE name IN ('n1', 'n2')"))
    east = aggregates.create(here.compute, "a1", "east")
    aggregates.create(here.compute, "a2", "empty")
    aggregates.set_metadata(here.compute, aggregates.create(here.compute, "a3").id, {"k": "own"})
    aggregates.add_host(here.compute, east.id, "n1")

    def found() -> dict[str, str | None]:
        nodes: dict[str, str | None] = {}
        for zone in ("east", "own", "nova", "empty"):
            with contextlib.suppress(BadRequest):
                nodes[zone] = here.boot(zone=zone, networks=())[0].node
        return nodes

    assert found() == {"east": "n1", "own": "n2", "nova": "n3"}
    aggregates.add_host(here.compute, east.id, "n2")
    assert list(found()) == ["east", "nova"]


def test_a_destination_is_asked_by_the_filters_and_a_forced_node_is_not(here: Place) -> None:
    fills = [here.boot_one(HALF, destination=":n3", admin=True) for _ in range(3)]
    assert {server.node for server in fills} == {"n3"}
    assert here.boot_one(destination="compute-1:n2", admin=True).node == "n2"
    full = here.boot_one(HALF, destination="compute-1:n3", admin=True)
    assert (full.status, full.node) == (ERROR, None)
    assert "RamFilter" in str(full.fault)
    assert here.boot_one(HALF, zone="nova::n3", admin=True).node == "n3"
    assert here.drift() == []


def test_a_destination_is_kept_when_making_the_server_fails_there(scratch: str, tmp_path: Path) -> None:
    driver = MemoryDriver([node("n1"), node("n2")], broken={"n1"})
    with place(scratch, tmp_path, [], driver) as here:
        server = here.boot_one(destination=":n1", admin=True)
        assert (server.status, [verb for verb, _ in driver.calls]) == (ERROR, ["delete"])


def test_only_administrators_name_a_destination_and_it_must_be_there(here: Place) -> None:
    with pytest.raises(BadRequest, match="Only administrators"):
        here.boot(destination=":n3")
    for nobody in ("compute-9", ":n9", "compute-1:n9"):
        with pytest.raises(BadRequest, match=r"could not be found\.$"):
            here.boot(destination=nobody, admin=True)
    assert here.count("compute_servers") == 0


def test_an_impossible_reservation_leaves_nothing(here: Place) -> None:
    with pytest.raises(NoValidHost):
        create.reserve(here.compute, request(HUGE), str(uuid4()))
    assert here.count("compute_servers") == 0
    assert here.count("compute_addresses", "server_id IS NOT NULL") == 0


def test_a_reserved_server_has_its_address_before_it_runs(here: Place) -> None:
    made = create.reserve(here.compute, request(), str(uuid4()))
    assert (made.status, made.task) == (RESERVED, "reserving")
    here.settle()
    server = here.look(made.id)
    assert (server.status, server.task, server.launched_at) == (RESERVED, None, None)
    assert server.addresses
    assert here.driver.calls == [("prepare", made.id)]


def test_an_empty_pool_of_addresses_refuses(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        small = network_factory.network(conn, "small", "192.0.2.0/29")
    here.boot(count=5, least=5, networks=(small,))
    with pytest.raises(NoMoreAddresses):
        here.boot(networks=(small,))
    assert here.count("compute_servers") == 5
    assert here.drift() == []
    with pytest.raises(BadRequest):
        here.boot(networks=(str(uuid4()),))
    with pytest.raises(BadRequest):
        here.boot(networks=("no id",))


def test_no_network_means_no_address(here: Place) -> None:
    assert here.boot_one(networks=()).addresses == ()


def test_a_project_has_its_limits(here: Place) -> None:
    with pytest.raises(QuotaExceeded, match="Requested 51, but already used 0 of 50 instances"):
        here.boot(count=51, least=51)
    with pytest.raises(QuotaExceeded):
        here.boot(count=10**6, least=10**6)
    assert here.count("compute_servers") == 0


def test_only_administrators_force_a_node(here: Place) -> None:
    with pytest.raises(BadRequest):
        here.boot(zone="nova::n3")
    assert here.boot_one(zone="nova::n3", admin=True).node == "n3"
    assert here.boot_one(zone="nova:compute-1:n2", admin=True).node == "n2"
    assert here.boot_one(zone="nova:n4", admin=True).node == "n4"


def test_what_cannot_be_created_on_one_node_is_created_on_another(scratch: str, tmp_path: Path) -> None:
    driver = MemoryDriver([node("n1", memory_mb=9000), node("n2")], broken={"n1"})
    with place(scratch, tmp_path, [], driver) as here:
        server = here.boot_one()
        assert (server.status, server.node, len(server.tried)) == (ACTIVE, "n2", 1)
        assert here.drift() == []
        driver.broken.add("n2")
        failed = here.boot_one()
        assert failed.status == ERROR
        assert "cannot make" in str(failed.fault)
        assert here.drift() == []


def test_after_three_nodes_it_is_an_error(scratch: str, tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(1, 6)]
    driver = MemoryDriver([node(name) for name in names], broken=set(names))
    with place(scratch, tmp_path, [], driver) as here:
        assert here.boot_one().status == ERROR
        assert len({node for verb, node in driver.calls if verb == "delete"}) == 1
        assert len(driver.calls) == 3
        assert here.drift() == []


def test_nodes_come_and_go(scratch: str, tmp_path: Path) -> None:
    driver = MemoryDriver([node("n1"), node("n2")])
    with place(scratch, tmp_path, [], driver) as here:
        busy = here.boot_one().node
        driver.specs = [node("n3")]
        services.refresh(here.compute)
        assert [found.name for found in pools.nodes(here.compute)] == ["n3"]
        assert here.count("compute_nodes", "NOT present") == 1
        assert here.boot_one().node == "n3"
        driver.specs = [node(busy or "", vcpus=16)]
        services.refresh(here.compute)
        assert [(found.name, found.vcpus) for found in pools.nodes(here.compute)] == [(busy, 16)]


def test_sixteen_at_once_never_overcommit_a_node(scratch: str, tmp_path: Path) -> None:
    # 8192 MB promised 1.5 times are three of 4096.
    with place(scratch, tmp_path, [node("only")]) as here:

        def one(number: int) -> str:
            return here.boot(HALF, project_id=f"p{number % 4}")[0].status

        with ThreadPoolExecutor(16) as pool:
            statuses = list(pool.map(one, range(32)))
        assert statuses.count(BUILD) == 3
        assert statuses.count(ERROR) == 29
        assert here.used("only") == (12, 12288, 30720)
        assert here.drift() == []


def test_sixteen_at_once_never_exceed_a_quota(here: Place) -> None:
    def one(number: int) -> bool:
        try:
            return bool(here.boot(count=5, least=5))
        except QuotaExceeded:
            return False

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(one, range(16))) == 10
    assert here.count("compute_servers") == 50
    assert here.count("(SELECT address FROM compute_addresses WHERE server_id IS NOT NULL) AS a") == 50


def test_no_two_at_once_get_one_address(here: Place) -> None:
    with here.compute.engine.connect() as conn:
        network = network_rows.listed(conn)[0]
    made = [
        server.id for number in range(3) for server in here.boot(count=16, least=16, networks=(), name=f"s{number}")
    ]

    def one(server_id: str) -> None:
        with here.compute.engine.begin() as conn:
            fixed_ips.allocate(conn, fixed_ips.InterfaceRequest("demo", (server_id,), (network,)), database_time(conn))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, made))
    assert [len(here.look(server_id).addresses) for server_id in made] == [1] * 48


def test_a_request_has_a_short_id_or_a_uuid_by_the_settings(here: Place) -> None:
    assert re.fullmatch("r-[a-z0-9]{8}", here.boot(networks=())[0].build_id)
    compute = replace(here.compute, uuid_builds=True)
    made = create.boot(compute, request(count=2, least=2, networks=()))
    assert len({server.build_id for server in made}) == 1
    assert str(UUID(made[0].build_id)) == made[0].build_id
