"""Many at once: no address twice, nothing of a refused request left, one network for a project."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import pytest

from climate.compute.errors import (
    BadRequest,
    ComputeError,
    Conflict,
    FloatingAddressInUse,
    NoMoreAddresses,
    NoMoreNetworks,
    NotFound,
    QuotaExceeded,
)
from climate.compute.network import fixed_ips, floating_ips, networks
from climate.compute.store.projects import quotas
from tests.compute.network.conftest import Cloud
from tests.compute.network.recorded_network import Books

T = TypeVar("T")
MANAGERS = ("flat", "flat_dhcp", "vlan")


def at_once(*works: Callable[[], T]) -> list[T | ComputeError]:
    """What each of these answers, or is refused with."""
    start = Barrier(len(works))

    def run(work: Callable[[], T]) -> T | ComputeError:
        start.wait()
        try:
            return work()
        except ComputeError as refusal:
            return refusal

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(run, works))


def refusals(answers: Sequence[object]) -> list[type]:
    return [type(answer) for answer in answers if isinstance(answer, ComputeError)]


@pytest.mark.parametrize("manager", MANAGERS)
def test_sixteen_boots_on_a_small_pool(cloud: Cloud, manager: str) -> None:
    there = cloud(manager=manager)
    there.served("private", "10.0.0.0/28")
    room = 12 if manager == "vlan" else 13
    # Of one project they would come one after the other, for its quota.
    owners = ["demo" if manager == "vlan" else f"p{number}" for number in range(16)]
    answers = at_once(*[lambda owner=owner: there.place.boot(project_id=owner) for owner in owners])  # type: ignore[misc]
    assert refusals(answers) == [NoMoreAddresses] * (16 - room)
    there.place.settle()
    made = [answer[0].id for answer in answers if isinstance(answer, list)]
    addresses = [address for server_id in made for address in there.fixed(server_id)]
    assert len(set(addresses)) == len(addresses) == len(made) == room
    leaks(there, room)
    for server_id in made:
        there.delete(server_id)
    there.settle()
    leaks(there, 0)
    assert there.place.count("compute_addresses", "server_id IS NOT NULL") == 0


def test_one_of_many_gets_the_address_that_all_of_them_ask_for(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    ids = [there.served(f"net{place}", f"10.0.{place}.0/28", bridge=f"br{place}")[0].id for place in (0, 1)]
    wanted = {network_id: f"10.0.{place}.9" for place, network_id in enumerate(ids)}

    def boot(project: str, order: Sequence[str]) -> Sequence[object]:
        return there.place.boot(project_id=project, networks=tuple(order), addresses=wanted)

    # Half of them name the networks the other way round: none of them waits for one that waits for it.
    answers = at_once(*[lambda n=n: boot(f"p{n}", ids[:: 1 if n % 2 else -1]) for n in range(6)])  # type: ignore[misc]
    assert refusals(answers) == [BadRequest] * 5
    there.place.settle()
    made = next(answer[0].id for answer in answers if isinstance(answer, list))
    assert sorted(there.fixed(made)) == sorted(wanted.values())
    assert there.wrong() == []
    assert there.place.drift() == []
    assert there.place.count("compute_servers") == 1
    assert there.place.count("compute_addresses", "server_id IS NOT NULL") == there.place.count("compute_vifs") == 2


def test_an_address_that_another_is_about_to_get_is_passed_over(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    network = there.served("private", "10.0.0.0/28")[0]
    bare = [there.boot(networks=(), project_id=project)[0] for project in ("p1", "p2")]
    with there.compute.engine.begin() as first, there.compute.engine.begin() as second:
        for conn, server in zip((first, second), bare, strict=True):
            conn.exec_driver_sql("SET LOCAL lock_timeout = '2s'")
            asked = fixed_ips.InterfaceRequest(server.project_id, (server.id,), (network,))
            fixed_ips.allocate(conn, asked, there.clock.time)
    assert [there.fixed(server.id) for server in bare] == [["10.0.0.2"], ["10.0.0.3"]]
    assert there.wrong() == []


def leaks(there: Books, servers: int) -> None:
    """So many servers have an interface each, and nothing is left of any other."""
    assert there.wrong() == []
    assert there.place.drift() == []
    assert there.place.count("compute_servers") == there.place.count("compute_vifs") == servers
    assert there.place.count("compute_addresses", "vif_id IS NOT NULL") == servers


def test_boots_and_deletions_at_once(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    there.served("private", "10.0.0.0/28")
    for _ in range(3):
        old = there.boot(6)
        deletions = [lambda one=one: there.delete(one.id) for one in old]
        at_once(*deletions, *[lambda: there.place.boot()] * 6)
        there.place.settle()
        assert there.wrong() == []
        with there.compute.engine.connect() as conn:
            left = [str(row[0]) for row in conn.exec_driver_sql("SELECT id FROM compute_servers")]
        assert len(left) == 6
        for server_id in left:
            there.delete(server_id)
    leaks(there, 0)


def test_several_servers_get_as_many_as_there_are(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    there.served("private", "10.0.0.0/28")
    there.boot(10)
    assert len(there.boot(5, least=2)) == 3
    with pytest.raises(NoMoreAddresses):
        there.boot(2, least=1)
    leaks(there, 13)


def test_one_pool_of_two_that_is_exhausted_refuses_all(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    there.served("wide", "10.0.0.0/24")
    there.served("narrow", "10.1.0.0/29")
    there.boot(5)
    with pytest.raises(NoMoreAddresses):
        there.boot()
    assert there.wrong() == []
    assert there.place.count("compute_vifs") == 10


def test_projects_race_for_networks_and_each_gets_one(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    there.served("net", "10.0.0.0/24", count=7, size=16)
    answers = at_once(*[lambda p=p: there.place.boot(project_id=f"p{p}") for p in range(8)])
    assert refusals(answers) == [NoMoreNetworks]
    owners = [network.project_id for network in there.listed()]
    assert len({*owners}) == 7
    assert None not in owners
    leaks(there, 7)


def test_the_first_boots_of_a_project_share_its_network(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    there.served("net", "10.0.0.0/24", count=3, size=16)
    answers = at_once(*[lambda: there.place.boot()] * 6)
    assert refusals(answers) == []
    assert [network.project_id for network in there.listed()] == ["demo", None, None]
    leaks(there, 6)


def test_a_network_does_not_change_hands_while_a_server_gets_an_address_of_it(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    network = there.served("net", "10.0.0.0/28")[0]
    for _ in range(6):
        with there.compute.engine.begin() as conn:
            networks.associate(conn, network.id, "demo")

        def give_to_others() -> None:
            with there.compute.engine.begin() as conn:
                networks.disassociate(conn, network.id)
            with there.compute.engine.begin() as conn:
                networks.associate(conn, network.id, "others")

        booted, given = at_once(there.place.boot, give_to_others)
        assert there.wrong() == []
        assert isinstance(booted, NoMoreNetworks) != isinstance(given, Conflict), "one of them came first"
        for server in booted if isinstance(booted, list) else []:
            there.delete(server.id)
        there.settle()
        if there.network(network.id).project_id is not None:
            with there.compute.engine.begin() as conn:
                networks.disassociate(conn, network.id)
        there.settle()


def test_a_network_is_not_dropped_under_a_boot(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    for number in range(6):
        network = there.served(f"net{number}", "10.0.0.0/28")[0]

        def drop(network_id: str = network.id) -> None:
            with there.compute.engine.begin() as conn:
                networks.delete(conn, network_id)

        booted, _ = at_once(there.place.boot, drop)
        assert isinstance(booted, list), booted
        assert there.wrong() == []
        there.delete(booted[0].id)
        if there.listed():
            drop()


def test_a_floating_address_never_outlives_the_fixed_one(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    there.served("private", "10.0.0.0/28")
    there.pool()
    got = there.floating()
    for _ in range(8):
        server = there.boot()[0]
        address = there.fixed(server.id)[0]

        def associate(address: str = address) -> None:
            with there.compute.engine.begin() as conn:
                held = floating_ips.get(conn, got.id)
                floating_ips.associate(conn, held, floating_ips.fixed(conn, "demo", address=address), there.clock.time)

        answers = at_once(associate, lambda server_id=server.id: there.delete(server_id))  # type: ignore[misc]
        assert refusals(answers) in ([], [NotFound])
        assert there.wrong() == []
        assert there.place.count("compute_floating_addresses", "fixed_address IS NOT NULL") == 0
        there.settle()


def test_two_floating_addresses_for_one_fixed(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    there.served("private", "10.0.0.0/28")
    there.pool()
    address = there.fixed(there.boot()[0].id)[0]
    held = [there.floating() for _ in range(4)]

    def associate(floating_id: str) -> None:
        with there.compute.engine.begin() as conn:
            one = floating_ips.get(conn, floating_id)
            floating_ips.associate(conn, one, floating_ips.fixed(conn, "demo", address=address), there.clock.time)

    answers = at_once(*[lambda one=one: associate(one.id) for one in held])  # type: ignore[misc]
    assert refusals(answers) == [Conflict] * 3
    again = at_once(*[lambda one=one: associate(one.id) for one in held])  # type: ignore[misc]
    assert sorted(kind.__name__ for kind in refusals(again)) == ["Conflict"] * 3 + [FloatingAddressInUse.__name__]
    assert there.wrong() == []


def test_the_quota_of_fixed_addresses_holds_against_several_at_once(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    network = there.served("private", "10.0.0.0/24")[0]
    server = there.boot()[0]
    with there.compute.engine.begin() as conn:
        quotas.lock_limits(conn, "demo")
        quotas.set_limits(conn, "demo", {"fixed_ips": 5})

    def add() -> None:
        with there.compute.engine.begin() as conn:
            fixed_ips.add(conn, server.id, "demo", network.id, there.clock.time)

    answers = at_once(*[add] * 4, *[lambda: there.place.boot()] * 4)
    assert refusals(answers) == [QuotaExceeded] * 4
    assert there.place.count("compute_addresses", "vif_id IS NOT NULL") == 5
    assert there.wrong() == []
    assert there.place.drift() == []


def test_two_additions_to_one_server_at_once(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    server = there.boot()[0]
    made = [there.served(f"net{n}", f"10.{n}.0.0/28")[0] for n in range(4)]

    def add(network_id: str) -> None:
        with there.compute.engine.begin() as conn:
            fixed_ips.add(conn, server.id, "demo", network_id, there.clock.time)

    answers = at_once(*[lambda one=one: add(one.id) for one in (*made, made[0], made[0])])  # type: ignore[misc]
    assert refusals(answers) == []
    assert sorted(vif.place for vif in there.vifs(server.id)) == [0, 1, 2, 3]
    assert (len(there.fixed(server.id)), there.wrong()) == (6, [])


def test_additions_to_nobody_and_to_what_is_not_ones_own(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    first, second = there.served("net", "10.0.0.0/24", count=2, size=16)
    server = there.boot(project_id="p1")[0]
    there.boot(project_id="p2")
    with there.compute.engine.begin() as conn:
        for server_id, project_id, network_id in (
            ("00000000-0000-4000-8000-000000000000", "p1", first.id),
            (server.id, "p1", second.id),
            (server.id, "p1", "no such network"),
        ):
            with pytest.raises(ComputeError, match="could not be found"):
                fixed_ips.add(conn, server_id, project_id, network_id, there.clock.time)
    assert there.wrong() == []


def test_one_request_makes_no_more_addresses_than_can_be_kept(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    with (
        there.counted() as sent,
        pytest.raises(BadRequest, match="17 networks of 65536 addresses are more than 1048576"),
    ):
        there.make("all", "10.0.0.0/8", count=17, size=65536)
    assert sent == []
