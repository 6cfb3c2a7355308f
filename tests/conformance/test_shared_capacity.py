"""SharedCapacity in every cloud: room on shared hosts, granted to a project."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from climate.cloud import FREEPOOL, MAINTENANCE, Capacity, Cloud, Fenced, NotYet, Refused
from climate.compute.errors import NotFound
from climate.compute.models.flavor import RESERVATION
from climate.compute.placement import server_groups
from climate.compute.projects import flavors
from tests.conformance.conftest import HOSTS, SDK_WARNS, BundledScene, Scene

POOL = "0d1e3c52-56c1-4d0e-9a3c-6c6b1f0c0001"
OTHER = "0d1e3c52-56c1-4d0e-9a3c-6c6b1f0c0002"
GROUP = "0d1e3c52-56c1-4d0e-9a3c-6c6b1f0c0003"


def wanted(slots: dict[str, int], **more: Any) -> Capacity:
    return replace(Capacity(POOL, "demo", 1, 512, 1, slots), **more)


@pytest.fixture(params=["fake", "bundled"])
def slotted(request: pytest.FixtureRequest) -> Scene:
    """Clouds that count how many servers are in the slots of a host."""
    found: Scene = request.getfixturevalue(request.param)
    return found


def granted(scene: Scene, slots: dict[str, int], token: int = 10, **more: Any) -> Cloud:
    for name in slots:
        scene.cloud.enrol(name, 1)
    scene.cloud.grant(wanted(slots, **more), token)
    return scene.cloud


def test_servers_of_the_flavor_find_room_on_hosts_that_stay_in_the_reservation_pool(scene: Scene) -> None:
    cloud = granted(scene, dict.fromkeys(HOSTS, 1))
    for _ in range(2):
        cloud.grant(wanted(dict.fromkeys(HOSTS, 1)), 10)
    assert cloud.pools() == {FREEPOOL: frozenset(HOSTS)}
    assert scene.server() is None
    assert scene.granted(POOL, "other") is None
    host = scene.granted(POOL)
    assert host in HOSTS
    assert [server.host for server in cloud.servers_in(POOL)] == [host]
    assert [server.host for server in cloud.servers_on(str(host))] == [host]


def test_slots_are_counted_and_change(slotted: Scene) -> None:
    scene, cloud = slotted, granted(slotted, {"h1": 2, "h2": 1})
    assert sorted(str(scene.granted(POOL)) for _ in range(4)) == ["None", "h1", "h1", "h2"]
    cloud.enrol("h3", 1)
    cloud.grant(wanted({"h1": 2, "h2": 1, "h3": 1}), 11)
    assert [scene.granted(POOL) for _ in range(2)] == ["h3", None]


def test_several_share_a_host_and_are_distinguished(scene: Scene) -> None:
    cloud = granted(scene, {"h1": 2})
    cloud.grant(wanted({"h1": 2}, pool=OTHER, project_id="other"), 5)
    assert (scene.granted(POOL), scene.granted(OTHER, "other")) == ("h1", "h1")
    assert scene.granted(OTHER) is None
    assert [server.project_id for server in cloud.servers_in(POOL)] == ["demo"]
    assert [server.project_id for server in cloud.servers_in(OTHER)] == ["other"]


def test_only_hosts_of_the_reservation_pool_have_slots(scene: Scene) -> None:
    cloud = granted(scene, {"h1": 1})
    cloud.place("h2", MAINTENANCE, 1)
    for name, error in (("h2", NotYet), ("h3", NotYet), ("h9", Refused)):
        with pytest.raises(error):
            cloud.grant(wanted({"h1": 1, name: 1}, pool=OTHER), 11)
    assert scene.granted(OTHER) is None


def test_what_is_closed_is_open_when_it_is_granted_again(scene: Scene) -> None:
    cloud = granted(scene, {"h1": 3})
    for _ in range(2):
        cloud.close(POOL, 11)
    assert scene.granted(POOL) is None
    cloud.grant(wanted({"h1": 3}), 12)
    assert scene.granted(POOL) == "h1"


def test_it_is_revoked_once_its_servers_are_gone(scene: Scene) -> None:
    cloud = granted(scene, {"h1": 1, "h2": 1})
    assert scene.granted(POOL) is not None
    cloud.close(POOL, 11)
    with pytest.raises(NotYet):
        cloud.revoke(POOL, ["h1", "h2"], 11)
    for server in cloud.servers_in(POOL):
        cloud.delete_server(server.id, 11)
    scene.settle()
    for _ in range(2):
        cloud.revoke(POOL, ["h1", "h2"], 11)
        assert list(cloud.servers_in(POOL)) == []
        assert cloud.find_flavor(POOL, "demo") is None
    assert cloud.pools() == {FREEPOOL: frozenset({"h1", "h2"})}
    assert scene.granted(POOL) is None
    cloud.lend("r1", "demo", ["h1"], 1)


Verb = Callable[[Cloud, int], None]


@pytest.mark.parametrize(
    "verb",
    [
        lambda cloud, token: cloud.grant(wanted({"h1": 5}), token),
        lambda cloud, token: cloud.close(POOL, token),
        lambda cloud, token: cloud.revoke(POOL, ["h1"], token),
    ],
    ids=["grant", "close", "revoke"],
)
def test_a_lower_token_is_refused_and_changes_nothing(scene: Scene, verb: Verb) -> None:
    cloud = granted(scene, {"h1": 1}, 10)
    with pytest.raises(Fenced):
        verb(cloud, 9)
    assert scene.granted(POOL) == "h1"


@pytest.mark.parametrize("ever", [True, False], ids=["once granted", "never granted"])
def test_the_token_outlives_what_was_granted(scene: Scene, ever: bool) -> None:
    cloud = scene.cloud
    cloud.enrol("h1", 1)
    if ever:
        cloud.grant(wanted({"h1": 1}), 10)
    cloud.revoke(POOL, ["h1"], 12)
    with pytest.raises(Fenced):
        cloud.grant(wanted({"h1": 1}), 11)
    assert scene.granted(POOL) is None
    cloud.grant(wanted({"h1": 1}, pool=OTHER), 3)
    assert scene.granted(OTHER) == "h1"


def test_a_host_that_was_moved_has_no_slots_under_a_lower_token(scene: Scene) -> None:
    scene.cloud.place("h1", FREEPOOL, 20)
    with pytest.raises(Fenced):
        scene.cloud.grant(wanted({"h1": 1}), 19)
    scene.cloud.grant(wanted({"h1": 1}), 21)


def test_a_host_with_servers_in_slots_is_not_allocated(scene: Scene) -> None:
    cloud = granted(scene, {"h1": 1})
    assert scene.granted(POOL) == "h1"
    with pytest.raises(NotYet):
        cloud.lend("r1", "demo", ["h1"], 11)
    assert cloud.pools()[FREEPOOL] == {"h1"}


def test_a_host_comes_back_to_the_reservation_pool_with_the_servers_in_its_slots(scene: Scene) -> None:
    cloud = granted(scene, {"h1": 2})
    assert scene.granted(POOL) == "h1"
    cloud.place("h1", MAINTENANCE, 11)
    assert scene.granted(POOL) is None
    cloud.place("h1", FREEPOOL, 12)
    assert cloud.pools() == {FREEPOOL: {"h1"}}
    assert scene.granted(POOL) == "h1"


@pytest.mark.parametrize("name", ["bundled", pytest.param("openstack", marks=SDK_WARNS)])
def test_the_flavor_is_what_clients_of_the_peer_look_for(request: pytest.FixtureRequest, name: str) -> None:
    scene: BundledScene = request.getfixturevalue(name)
    cloud = granted(scene, {"h1": 1}, vcpus=3, memory_mb=1024, disk_gb=7, extra_specs={"hw:mem": "x"})
    for named in (POOL, f"reservation:{POOL}"):
        found = cloud.find_flavor(named, "demo")
        assert found is not None
        assert (found.id, found.name, found.vcpus, found.memory_mb) == (POOL, f"reservation:{POOL}", 3, 1024)
        assert found.disk_gb == 7
        assert {RESERVATION: POOL, "hw:mem": "x"}.items() <= found.extra_specs.items()
    assert cloud.find_flavor(POOL, "other") is None


@pytest.mark.parametrize(("affinity", "nodes"), [(True, 1), (False, 2)])
def test_its_group_keeps_servers_together_or_apart(bundled: BundledScene, affinity: bool, nodes: int) -> None:
    granted(bundled, {"h1": 2, "h2": 2}, affinity=affinity, group_id=GROUP)
    here = bundled.here
    found = flavors.find(here.compute, POOL, "demo")
    assert found is not None
    assert len({here.boot_one(found, hints={"group": GROUP}).node for _ in range(2)}) == nodes
    assert server_groups.get(here.compute, GROUP, "demo").name == f"reservation:{POOL}"
    with pytest.raises(NotFound):
        server_groups.get(here.compute, GROUP, "other")


@SDK_WARNS
@pytest.mark.parametrize(("affinity", "slots"), [(True, {"h1": 1, "h2": 1}), (False, {"h1": 2})])
def test_a_cloud_that_keeps_no_group_of_ours_says_so(openstack: Scene, affinity: bool, slots: dict[str, int]) -> None:
    with pytest.raises(Refused, match="affinity over several hosts"):
        granted(openstack, slots, affinity=affinity, group_id=GROUP)
    assert openstack.granted(POOL) is None
    openstack.cloud.grant(wanted({"h1": 1}, affinity=affinity, group_id=GROUP), 10)
    assert openstack.granted(POOL) == "h1"


@SDK_WARNS
def test_over_http_it_is_closed_before_it_is_looked_for_servers(openstack: Scene) -> None:
    cloud = granted(openstack, {"h1": 2})
    assert openstack.granted(POOL) == "h1"
    with pytest.raises(NotYet, match="1 servers"):
        cloud.revoke(POOL, ["h1"], 11)
    assert openstack.granted(POOL) is None
