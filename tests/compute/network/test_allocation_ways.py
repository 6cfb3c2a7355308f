"""Addresses are the same whoever allocates them: the API itself, or network hosts by a queue in memory or in Valkey."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from climate.compute.errors import BadRequest, Conflict, NoMoreAddresses, QuotaExceeded
from climate.compute.models.server import ERROR
from climate.compute.nodes import services
from climate.compute.servers.interfaces import interfaces
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.store.projects import quotas
from tests.compute.cloud_factory import HUGE
from tests.compute.network import allocation_queues
from tests.compute.network.conftest import Cloud
from tests.compute.network.recorded_network import Books
from tests.workers.cell_stacks import OwnBroker

WAYS = ("direct", "memory", "valkey")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnBroker]:
    with allocation_queues.own_broker(tmp_path_factory.mktemp("broker")) as made:
        yield made


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, cloud: Cloud) -> Iterator[Callable[..., Books]]:
    """Makes a cloud whose addresses are allocated in this way; at the end no grant is left, and the books are right."""
    with ExitStack() as stack:
        made: list[Books] = []

        def there(**options: Any) -> Books:
            made.append(cloud(**options))
            if request.param == "memory":
                allocation_queues.in_memory(made[0])
            if request.param == "valkey":
                broker: OwnBroker = request.getfixturevalue("broker")
                stack.enter_context(allocation_queues.by_valkey(made[0], broker.store.url))
            return made[0]

        yield there
        allocation_queues.deliver(made[0])
        assert made[0].place.count("compute_addresses", "grant_id IS NOT NULL") == 0
        assert made[0].place.count("compute_network_messages") == 0
        assert made[0].wrong() == []


def who(server_id: str) -> Requester:
    return Requester(server_id, "demo", {"project_id": "demo", "user_id": "dora", "request_id": "req-1"})


def test_each_server_gets_the_first_free_address_of_each_network(way: Callable[..., Books]) -> None:
    there = way(manager="flat")
    there.served("one", "10.0.0.0/28")
    there.served("two", "10.1.0.0/28")
    servers = there.boot(2)
    assert [there.fixed(server.id) for server in servers] == [["10.0.0.2", "10.1.0.2"], ["10.0.0.3", "10.1.0.3"]]
    macs = [vif.mac for server in servers for vif in there.vifs(server.id)]
    assert len(set(macs)) == 4
    there.delete(servers[0].id)
    allocation_queues.deliver(there)
    assert there.fixed(there.boot()[0].id) == ["10.0.0.2", "10.1.0.2"]


def test_a_network_that_is_used_up_refuses_servers_or_gives_as_many_as_it_can(way: Callable[..., Books]) -> None:
    there = way(manager="flat")
    there.served("one", "10.0.0.0/28")
    there.served("two", "10.1.0.0/29")
    assert len(there.boot(7, least=2)) == 5, "the smaller network has five"
    with pytest.raises(NoMoreAddresses, match="Zero fixed ips available"):
        there.boot(1)
    assert there.place.count("compute_servers") == 5
    assert there.place.count("compute_addresses", "server_id IS NOT NULL AND grant_id IS NULL") == 10


def test_the_very_address_that_is_asked_for(way: Callable[..., Books]) -> None:
    there = way(manager="flat_dhcp")
    network = there.served("one", "10.0.0.0/28")[0]
    server = there.boot(networks=(network.id,), addresses={network.id: "10.0.0.9"})[0]
    assert there.fixed(server.id) == ["10.0.0.9"]
    for address, says in (("10.0.0.9", "is not free"), ("10.0.0.1", "is not free"), ("10.1.0.9", "is not one of")):
        with pytest.raises(BadRequest, match=f"{address} {says}"):
            there.boot(networks=(network.id,), addresses={network.id: address})
    assert there.place.count("compute_servers") == 1


def test_a_cloudpipe_has_its_own_address(way: Callable[..., Books]) -> None:
    there = way(manager="vlan", vpn_image=services.IMAGE_ID, network_size=16)
    services.furnish(there.host())
    assert there.fixed(there.boot(image_id=services.IMAGE_ID)[0].id) == ["10.10.0.2"]
    assert there.fixed(there.boot()[0].id) == ["10.10.0.3"]
    with pytest.raises(NoMoreAddresses):
        there.boot(image_id=services.IMAGE_ID)


def test_addresses_are_added_and_removed(way: Callable[..., Books]) -> None:
    there = way(manager="flat")
    one = there.served("one", "10.0.0.0/29")[0]
    two = there.served("two", "10.1.0.0/28")[0]
    server = there.boot(networks=(one.id,))[0]
    assert [str(a) for a in interfaces.add(there.compute, who(server.id), two.id, "10.1.0.7").addresses] == ["10.1.0.7"]
    there.place.settle()
    with pytest.raises(Conflict, match=r"10\.1\.0\.7 is not free"):
        interfaces.add(there.compute, who(server.id), two.id, "10.1.0.7")
    there.boot(3, networks=(one.id,))
    interfaces.add(there.compute, who(server.id), one.id)
    there.place.settle()
    assert there.fixed(server.id) == ["10.0.0.2", "10.0.0.6", "10.1.0.7"]
    assert len(there.vifs(server.id)) == 2, "a further address is the same interface's"
    with pytest.raises(NoMoreAddresses):
        interfaces.add(there.compute, who(server.id), one.id)
    interfaces.remove(there.compute, who(server.id), "10.0.0.2")
    there.place.settle()
    assert there.fixed(server.id) == ["10.0.0.6", "10.1.0.7"]


def test_a_refused_boot_leaves_no_address(way: Callable[..., Books]) -> None:
    there = way(manager="flat_dhcp")
    there.served("one", "10.0.0.0/28")
    with there.compute.engine.begin() as conn:
        quotas.lock_limits(conn, "demo")
        quotas.set_limits(conn, "demo", {"fixed_ips": 1})
    there.boot()
    with pytest.raises(QuotaExceeded, match="fixed ips"):
        there.boot()
    (failed,) = there.place.boot(replace(HUGE, ram_mb=400_000), project_id="other")
    assert failed.status == ERROR
    allocation_queues.deliver(there)
    assert there.place.count("compute_addresses", "server_id IS NOT NULL") == 1


def test_networks_of_two_hosts_are_asked_at_once(way: Callable[..., Books], tmp_path: Path) -> None:
    there = way(manager="flat")
    there.make("one", "10.0.0.0/28")
    there.make("two", "10.1.0.0/28")
    there.tend("net-1")
    there.tend("net-2")
    assert [network.host for network in there.listed()] == ["net-1", "net-2"]
    assert there.fixed(there.boot()[0].id) == ["10.0.0.2", "10.1.0.2"]
