"""HostPools in every cloud: finding hosts, adding them, lending them to reservations and taking them back."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from climate.cloud import ACTIVE, FREEPOOL, Cloud, Fenced, NotYet, Refused
from tests.conformance.conftest import HOSTS, Scene, booted


def lent(scene: Scene, *hosts: str, token: int = 10) -> Cloud:
    for name in hosts:
        scene.cloud.enrol(name, 1)
    scene.cloud.lend("r1", "demo", hosts, token)
    return scene.cloud


def test_hosts_are_found_by_name(scene: Scene) -> None:
    found = scene.cloud.find_hosts("h2")
    assert [(host.name, host.vcpus > 0, host.memory_mb > 0, host.servers) for host in found] == [("h2", True, True, 0)]
    assert list(scene.cloud.find_hosts("h9")) == []


def test_hosts_are_found_by_their_ids(scene: Scene) -> None:
    for name in HOSTS[:2]:
        (host,) = scene.cloud.find_hosts(name)
        assert host.ids
        for hypervisor_id in host.ids:
            assert [each.name for each in scene.cloud.find_hosts(hypervisor_id)] == [name]
    assert list(scene.cloud.find_hosts("99999")) == []
    assert list(scene.cloud.find_hosts(str(uuid4()))) == []


def test_enrolling_and_withdrawing_are_carried_out(scene: Scene) -> None:
    cloud = scene.cloud
    assert cloud.pools() == {FREEPOOL: frozenset()}
    for _ in range(2):
        cloud.enrol("h1", 1)
        assert cloud.pools() == {FREEPOOL: frozenset({"h1"})}
    for _ in range(2):
        cloud.withdraw("h1", 1)
        assert cloud.pools() == {FREEPOOL: frozenset()}
    cloud.withdraw("h9", 1)
    with pytest.raises(Refused):
        cloud.enrol("h9", 1)


def test_a_late_worker_neither_enrols_nor_withdraws(scene: Scene) -> None:
    """Whoever was slow must not undo what a later claim did to the host."""
    cloud = scene.cloud
    cloud.enrol("h1", 5)
    for verb in (cloud.enrol, cloud.withdraw):
        with pytest.raises(Fenced):
            verb("h1", 4)
    assert cloud.pools() == {FREEPOOL: frozenset({"h1"})}
    cloud.withdraw("h1", 6)
    for verb in (cloud.enrol, cloud.withdraw):
        with pytest.raises(Fenced):
            verb("h1", 5)
    assert cloud.pools() == {FREEPOOL: frozenset()}
    cloud.place("h2", FREEPOOL, 8)
    with pytest.raises(Fenced):
        cloud.withdraw("h2", 7)
    assert cloud.pools() == {FREEPOOL: frozenset({"h2"})}


def test_enrolling_and_withdrawing_close_a_host_to_lower_tokens(scene: Scene) -> None:
    cloud = scene.cloud
    for number in (5, 6):  # the second time nothing is left to do but to remember the token
        cloud.enrol("h1", number)
    with pytest.raises(Fenced):
        cloud.lend("r1", "demo", ["h1"], 5)
    cloud.withdraw("h2", 7)
    with pytest.raises(Fenced):
        cloud.place("h2", FREEPOOL, 6)
    assert cloud.pools() == {FREEPOOL: frozenset({"h1"})}


def test_a_host_with_servers_is_not_enrolled(scene: Scene) -> None:
    server_id = booted(scene)
    server = scene.cloud.server(server_id)
    assert server is not None
    assert server.host in HOSTS
    assert scene.cloud.find_hosts(server.host or "")[0].servers == 1
    with pytest.raises(Refused):
        scene.cloud.enrol(server.host or "", 1)


def test_lending_moves_hosts_to_the_pool(scene: Scene) -> None:
    cloud = lent(scene, "h1", "h2")
    scene.cloud.enrol("h3", 1)
    assert cloud.pools() == {FREEPOOL: frozenset({"h3"}), "r1": frozenset({"h1", "h2"})}
    cloud.lend("r1", "demo", ["h1", "h2"], 10)
    cloud.lend("r1", "demo", ["h3"], 11)
    assert cloud.pools() == {FREEPOOL: frozenset(), "r1": frozenset(HOSTS)}
    for verb in (cloud.enrol, cloud.withdraw):
        with pytest.raises(Refused):
            verb("h1", 12)


def test_only_hosts_of_the_reservation_pool_are_allocated(scene: Scene) -> None:
    cloud = lent(scene, "h1")
    cloud.enrol("h3", 1)
    for wrong, error in (("h1", NotYet), ("h2", NotYet), ("h9", Refused)):
        with pytest.raises(error):
            cloud.lend("r2", "other", ["h3", wrong], 11)
    assert cloud.pools() == {FREEPOOL: frozenset({"h3"}), "r1": frozenset({"h1"})}


def test_a_pool_can_be_without_hosts(scene: Scene) -> None:
    cloud = lent(scene)
    assert cloud.pools() == {FREEPOOL: frozenset(), "r1": frozenset()}
    cloud.take_back("r1", ["h1"], 11)
    assert "r1" not in cloud.pools()


def test_allocated_hosts_are_for_their_project_alone(scene: Scene) -> None:
    cloud = lent(scene, *HOSTS)
    assert scene.server() is None
    assert scene.server("r1", "other") is None
    mine = booted(scene, "r1")
    assert [(server.id, server.status, server.project_id) for server in cloud.servers_in("r1")] == [
        (mine, ACTIVE, "demo")
    ]
    for _ in range(2):
        cloud.close("r1", 11)
    assert scene.server("r1") is None


def test_a_pool_is_taken_back_once_its_servers_are_gone(scene: Scene) -> None:
    cloud = lent(scene, "h1", "h2")
    server_id = booted(scene, "r1")
    cloud.close("r1", 11)
    with pytest.raises(NotYet):
        cloud.take_back("r1", ["h1"], 11)
    cloud.delete_server(server_id, 11)
    scene.settle()
    for _ in range(2):
        cloud.take_back("r1", ["h1"], 11)
        assert cloud.pools() == {FREEPOOL: frozenset({"h1", "h2"})}
    cloud.close("r1", 12)
    assert list(cloud.servers_in("r1")) == []


Verb = Callable[[Cloud, int], None]


@pytest.mark.parametrize(
    "verb",
    [
        lambda cloud, token: cloud.lend("r1", "demo", ["h1"], token),
        lambda cloud, token: cloud.close("r1", token),
        lambda cloud, token: cloud.take_back("r1", ["h1"], token),
    ],
)
def test_a_lower_token_is_refused_and_changes_nothing(scene: Scene, verb: Verb) -> None:
    cloud = lent(scene, "h1", token=10)
    before = cloud.pools()
    with pytest.raises(Fenced):
        verb(cloud, 9)
    assert cloud.pools() == before
    assert scene.server("r1") is not None


def test_the_token_outlives_the_pool(scene: Scene) -> None:
    cloud = lent(scene, "h1", token=10)
    cloud.take_back("r1", ["h1"], 11)
    with pytest.raises(Fenced):
        cloud.lend("r1", "demo", ["h1"], 10)
    assert cloud.pools() == {FREEPOOL: frozenset({"h1"})}


def test_hosts_of_a_pool_that_never_was_are_closed_to_lower_tokens(scene: Scene) -> None:
    """Whoever was slow to lend them must not do so after they were given up."""
    cloud = scene.cloud
    cloud.enrol("h1", 1)
    cloud.take_back("r1", ["h1"], 11)
    with pytest.raises(Fenced):
        cloud.lend("r1", "demo", ["h1"], 10)
    assert cloud.pools() == {FREEPOOL: frozenset({"h1"})}
    cloud.lend("r2", "demo", ["h1"], 12)
    cloud.take_back("r1", ["h1"], 11)
    assert cloud.pools() == {FREEPOOL: frozenset(), "r2": frozenset({"h1"})}
