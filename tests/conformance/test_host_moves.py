"""HostPools in every cloud: moving hosts one by one and with their servers."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.cloud import (
    CLEANING,
    DRAINING,
    FAILED,
    FREEPOOL,
    KEPT,
    MAINTENANCE,
    RECYCLING,
    Cloud,
    CloudFlavor,
    Fenced,
    NotYet,
    Refused,
)
from climate.compute.nodes import maintenance, services
from climate.compute.store.projects import flavors
from tests.campaign import cases
from tests.compute.cloud_factory import DOWN_SECONDS, HALF, TINY, node
from tests.conformance.conftest import HOSTS, SDK_WARNS, BundledScene, FakeScene, Scene

OUT_OF_USE = sorted(KEPT - {FREEPOOL})


def lent(scene: Scene, *hosts: str, token: int = 10) -> str:
    """A server of the owner on one of the hosts."""
    for name in hosts:
        scene.cloud.enrol(name, 1)
    scene.cloud.lend("r1", "demo", hosts, token)
    server_id = scene.server("r1")
    assert server_id is not None
    return server_id


def used(scene: Scene) -> tuple[str, str]:
    """An ordinary server, and its host."""
    server_id = scene.server()
    assert server_id is not None
    found = scene.cloud.server(server_id)
    assert found is not None
    return server_id, str(found.host)


@pytest.mark.parametrize("to", cases(OUT_OF_USE, {RECYCLING, MAINTENANCE}))
def test_servers_go_along_with_a_pool_that_is_taken_back(scene: Scene, to: str) -> None:
    cloud, server_id = scene.cloud, lent(scene, "h1", "h2")
    cloud.enrol("h3", 1)
    for _ in range(2):
        cloud.take_back("r1", ["h1", "h2", "h3"], 11, to)
        assert cloud.pools() == {FREEPOOL: {"h3"}, to: {"h1", "h2"}}
    server = cloud.server(server_id)
    assert server is not None
    assert [each.id for each in cloud.servers_on(str(server.host))] == [server_id]
    for hint in (None, "r1", to):
        assert scene.server(hint) is None
    with pytest.raises(Fenced):
        cloud.lend("r2", "demo", ["h3"], 10)


def test_released_hosts_are_ordinary_ones_again_with_their_servers(scene: Scene) -> None:
    cloud, server_id = scene.cloud, lent(scene, *HOSTS)
    assert scene.server() is None
    for _ in range(2):
        cloud.take_back("r1", HOSTS, 11, None)
        assert cloud.pools() == {FREEPOOL: frozenset()}
    assert cloud.server(server_id) is not None
    assert scene.server(project_id="other") is not None


@pytest.mark.parametrize("to", cases([FREEPOOL, *OUT_OF_USE], {FREEPOOL, MAINTENANCE}))
def test_nobody_boots_on_a_host_that_was_placed_in_a_kept_pool(scene: Scene, to: str) -> None:
    for name in HOSTS:
        for _ in range(2):
            scene.cloud.place(name, to, 11)
    assert {pool: names for pool, names in scene.cloud.pools().items() if names} == {to: frozenset(HOSTS)}
    assert scene.server() is None
    assert scene.server(to) is None
    scene.cloud.place("h2", None, 12)
    server_id, host = used(scene)
    assert host == "h2"
    assert [each.id for each in scene.cloud.servers_on("h2")] == [server_id]


def test_a_host_with_servers_goes_anywhere_but_into_the_reservation_pool(scene: Scene) -> None:
    cloud, (server_id, host) = scene.cloud, used(scene)
    for to in OUT_OF_USE:
        cloud.place(host, to, 11)
        assert cloud.pools() == {FREEPOOL: frozenset(), to: {host}}
        with pytest.raises(NotYet):
            cloud.place(host, FREEPOOL, 11)
    cloud.place(host, None, 11)
    with pytest.raises(NotYet):
        cloud.place(host, FREEPOOL, 11)
    assert cloud.pools() == {FREEPOOL: frozenset()}
    cloud.delete_server(server_id, 11)
    scene.settle()
    cloud.place(host, FREEPOOL, 11)
    assert cloud.pools() == {FREEPOOL: {host}}


def test_a_host_comes_back_to_its_lease_pool_which_stays_without_it(scene: Scene) -> None:
    cloud, server_id = scene.cloud, lent(scene, "h1")
    cloud.place("h1", FAILED, 11)
    assert cloud.pools() == {FREEPOOL: frozenset(), FAILED: {"h1"}, "r1": frozenset()}
    assert scene.server("r1") is None
    cloud.place("h1", "r1", 12)
    assert cloud.pools() == {FREEPOOL: frozenset(), "r1": {"h1"}}
    assert [each.id for each in cloud.servers_in("r1")] == [server_id]
    assert scene.server("r1") is not None


def test_what_is_out_of_use_is_neither_enrolled_nor_withdrawn_nor_allocated(scene: Scene) -> None:
    cloud = scene.cloud
    cloud.place("h1", MAINTENANCE, 11)
    for verb in (cloud.enrol, cloud.withdraw):
        with pytest.raises(Refused, match=MAINTENANCE if verb == cloud.enrol else "h1"):
            verb("h1", 12)
    with pytest.raises(NotYet):
        cloud.lend("r1", "demo", ["h1"], 12)
    assert cloud.pools()[MAINTENANCE] == {"h1"}


def test_there_is_no_placing_of_what_is_not_there(scene: Scene) -> None:
    scene.cloud.enrol("h1", 1)
    for host, to in (("h9", RECYCLING), ("h9", None), ("h1", "r9"), ("h1", "climate:fences")):
        with pytest.raises(Refused):
            scene.cloud.place(host, to, 11)
    assert scene.cloud.pools() == {FREEPOOL: {"h1"}}


def test_ordinary_hosts_are_those_in_no_pool_with_their_servers(scene: Scene) -> None:
    cloud = scene.cloud
    _, host = used(scene)
    assert [(one.name, one.servers) for one in cloud.ordinary_hosts()] == [(name, int(name == host)) for name in HOSTS]
    assert cloud.ordinary_hosts() == [cloud.find_hosts(name)[0] for name in HOSTS]
    rest = [name for name in HOSTS if name != host]
    cloud.enrol(rest[0], 1)
    cloud.place(rest[1], FAILED, 11)
    assert [one.name for one in cloud.ordinary_hosts()] == [host]
    cloud.lend("r1", "demo", [rest[0]], 12)
    cloud.place(host, DRAINING, 12)
    assert cloud.ordinary_hosts() == []
    assert [one.status for one in cloud.servers_on(host)] == ["ACTIVE"]
    cloud.place(rest[1], None, 13)
    assert [one.name for one in cloud.ordinary_hosts()] == [rest[1]]


Verb = Callable[[Cloud, int], None]


@pytest.mark.parametrize(
    "verb",
    [
        lambda cloud, token: cloud.place("h1", RECYCLING, token),
        lambda cloud, token: cloud.place("h1", None, token),
        lambda cloud, token: cloud.place("h1", FREEPOOL, token),
        lambda cloud, token: cloud.take_back("r1", ["h1"], token, CLEANING),
        lambda cloud, token: cloud.take_back("r1", ["h1"], token, None),
        lambda cloud, token: cloud.lend("r1", "demo", ["h1"], token),
        lambda cloud, token: cloud.close("r1", token),
    ],
    ids=["recycle", "release", "free", "clean", "give up", "lend", "close"],
)
def test_a_host_that_was_placed_is_closed_to_lower_tokens(scene: Scene, verb: Verb) -> None:
    cloud = scene.cloud
    lent(scene, "h1")
    cloud.place("h1", MAINTENANCE, 19)
    cloud.place("h1", "r1", 20)
    before = cloud.pools()
    with pytest.raises(Fenced):
        verb(cloud, 15)
    assert cloud.pools() == before


def test_a_placing_is_remembered_wherever_the_host_goes(scene: Scene) -> None:
    cloud = scene.cloud
    for token, to in enumerate((FREEPOOL, RECYCLING, None, FAILED), start=10):
        cloud.place("h1", to, token)
        with pytest.raises(Fenced):
            cloud.place("h1", CLEANING, token - 1)
    assert cloud.pools() == {FREEPOOL: frozenset(), FAILED: {"h1"}}


def test_a_pool_that_was_closed_is_open_when_it_is_allocated_again(scene: Scene) -> None:
    cloud = scene.cloud
    lent(scene, "h1", "h2")
    cloud.close("r1", 11)
    assert scene.server("r1") is None
    cloud.lend("r1", "demo", ["h2"], 12)
    assert cloud.pools() == {FREEPOOL: frozenset(), "r1": {"h1", "h2"}}
    for _ in range(3):
        assert scene.server("r1") is not None


def test_every_host_is_well_until_something_is_the_matter(scene: Scene) -> None:
    assert scene.cloud.health() == dict.fromkeys(HOSTS)


def test_a_host_that_is_unwell_says_why(fake: FakeScene) -> None:
    fake.cloud.unwell["h2"] = "on fire"
    assert fake.cloud.health() == {"h1": None, "h2": "on fire", "h3": None}


def disable(scene: BundledScene) -> None:
    maintenance.change(scene.here.compute, services.listed(scene.here.compute)[0], enabled=False, reason="it smells")


def call_down(scene: BundledScene) -> None:
    maintenance.change(scene.here.compute, services.listed(scene.here.compute)[0], forced_down=True)


def silence(scene: BundledScene) -> None:
    with scene.here.compute.engine.begin() as conn:
        ago = timedelta(seconds=DOWN_SECONDS + 1)
        conn.execute(text("UPDATE compute_services SET beat_at = beat_at - CAST(:ago AS interval)"), {"ago": ago})


def forget(scene: BundledScene) -> None:
    scene.here.driver.specs = [node("h2")]
    services.refresh(scene.here.compute)


def maintain(scene: BundledScene) -> None:
    maintenance.maintain(scene.here.compute, "h1", "new disks")


TROUBLES = {
    disable: ("is disabled: it smells", "is disabled: it smells"),
    call_down: ("was said to be down", "is down"),
    silence: ("was last heard of at 20", "is down"),
    forget: ("does not report it any more", "is down"),
    maintain: ("it is in maintenance: new disks", "it is in maintenance: new disks"),
}


@SDK_WARNS
@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.__name__)
@pytest.mark.parametrize("name", ["bundled", "openstack"])
def test_a_node_is_as_well_as_its_service(
    request: pytest.FixtureRequest, name: str, trouble: Callable[[BundledScene], None]
) -> None:
    scene: BundledScene = request.getfixturevalue(name)
    scene.cloud.place("h1", MAINTENANCE, 1)
    trouble(scene)
    why = scene.cloud.health()["h1"]
    assert why is not None
    assert TROUBLES[trouble][name == "openstack"] in why


@pytest.mark.parametrize("name", ["bundled", pytest.param("openstack", marks=SDK_WARNS)])
def test_a_flavor_is_found_by_its_id_and_by_its_name_by_those_who_may_use_it(
    request: pytest.FixtureRequest, name: str
) -> None:
    scene: BundledScene = request.getfixturevalue(name)
    mine = replace(
        HALF, id="m", name="mine", ephemeral_gb=5, is_public=False, projects=("demo",), extra_specs={"a": "b"}
    )
    with scene.here.compute.engine.begin() as conn:
        flavors.insert(conn, mine)
        flavors.insert(conn, replace(TINY, id="mine", name="other"))
    wanted = CloudFlavor("m", "mine", 4, 4096, 15, {"a": "b"})
    find = scene.cloud.find_flavor
    assert find("m", "demo") == wanted
    assert find("m", "other") is None
    assert find("half", "other") == CloudFlavor("h", "half", 4, 4096, 10, {})
    found = find("mine", "demo")
    assert found is not None
    assert found.id == "mine", "an id goes before a name"
    assert find("nothing", "demo") is None


@pytest.mark.parametrize("name", ["fake", "bundled"])
def test_a_server_leaves_its_host_for_an_ordinary_one(name: str, request: pytest.FixtureRequest) -> None:
    """OpenStack moves running servers only, which the driver of these nodes cannot: see tests/cloud/test_nova.py."""
    scene: Scene = request.getfixturevalue(name)
    cloud, (server_id, host) = scene.cloud, used(scene)
    cloud.place(host, RECYCLING, 11)
    for _ in range(2):
        cloud.move_server(server_id, host, 12)
    scene.settle()
    moved = cloud.server(server_id)
    assert moved is not None
    assert moved.host not in (None, host)
    assert list(cloud.servers_on(host)) == []
    cloud.move_server(server_id, host, 12)
    cloud.move_server(str(uuid4()), host, 12)
    assert scene.effects("move_server") <= 1
    with pytest.raises(Fenced):
        cloud.move_server(server_id, str(moved.host), 11)


def test_a_server_without_another_host_stays(scene: Scene) -> None:
    cloud, (server_id, host) = scene.cloud, used(scene)
    for name in HOSTS:
        cloud.place(name, RECYCLING, 11)
    with pytest.raises(Refused):
        cloud.move_server(server_id, host, 12)
    assert [each.id for each in cloud.servers_on(host)] == [server_id]
