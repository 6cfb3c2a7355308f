"""Network hosts share the networks: one claim at a beat, none in two hands, none left behind by a dead host."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from ipaddress import IPv4Address
from threading import Barrier

import pytest
from sqlalchemy import text

from climate.compute.errors import BadRequest, Conflict, NoMoreNetworks
from climate.compute.network import networks
from climate.compute.network.driver.recording import RecordingNetwork
from climate.compute.network.models import Network
from climate.compute.network.network_options import FEWEST
from climate.compute.network.service import claiming, network_service
from tests.compute.network.conftest import Cloud
from tests.compute.network.recorded_network import ONE, TWO, Books

DOWN = 60


def hosts_of(there: Books) -> list[str | None]:
    return [network.host for network in there.listed()]


def made(there: Books, count: int) -> list[Network]:
    return there.make("net", "10.0.0.0/16", count=count, size=16)


def test_at_most_one_at_a_beat_and_the_first_of_them(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    made(there, 3)
    for claimed in (1, 2, 3, 3):
        there.tend()
        assert hosts_of(there) == [ONE] * claimed + [None] * (3 - claimed)
    assert set(there.wire().serving) == {network.id for network in there.listed()}


def test_without_networks_there_is_nothing_to_claim(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    assert claiming.claim(there.host()) is None
    there.tend()
    assert there.place.count("compute_network_hosts", f"host = '{ONE}'") == 1


def test_hosts_that_beat_in_turn_share_them(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    made(there, 6)
    for _ in range(3):
        there.tend(ONE, TWO)
    assert Counter(hosts_of(there)) == {ONE: 3, TWO: 3}
    for name in (ONE, TWO):
        assert set(there.wire(name).serving) == {one.id for one in there.listed() if one.host == name}


def unclaim_all(there: Books) -> None:
    with there.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_networks SET host = NULL"))


def test_two_hosts_at_once_never_have_the_same(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    made(there, 12)
    start = Barrier(4)
    computes = [there.host(f"net-{number}") for number in range(4)]

    def claim_three(number: int) -> list[str]:
        claiming.beat(computes[number])
        start.wait()
        found = [claiming.claim(computes[number]) for _ in range(3)]
        return [network.id for network in found if network is not None]

    with ThreadPoolExecutor(4) as threads:
        for _ in range(10):
            claimed = [one for ids in threads.map(claim_three, range(4)) for one in ids]
            assert len(claimed) == len(set(claimed))
            assert sorted(claimed) == sorted(network.id for network in there.listed() if network.host is not None)
            unclaim_all(there)


def test_a_late_host_gets_the_next_networks_until_it_has_as_many(cloud: Cloud) -> None:
    there = cloud(manager="vlan", placement=FEWEST)
    made(there, 6)
    for _ in range(3):
        there.tend(ONE)
    for _ in range(4):
        there.tend(TWO, ONE)
    assert Counter(hosts_of(there)) == {ONE: 3, TWO: 3}
    assert hosts_of(there)[:4] == [ONE, ONE, ONE, TWO]


def test_the_first_that_asks_gets_more_where_placement_says_so(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    made(there, 6)
    for _ in range(3):
        there.tend(ONE)
    there.tend(TWO, ONE)
    assert Counter(hosts_of(there)) == {ONE: 4, TWO: 1, None: 1}


def test_hosts_at_once_have_as_many_networks_as_each_other(cloud: Cloud) -> None:
    there = cloud(manager="vlan", placement=FEWEST)
    made(there, 12)
    start = Barrier(4)
    computes = [there.host(f"net-{number}") for number in range(4)]
    for compute in computes:
        claiming.beat(compute)

    def claim_all(number: int) -> None:
        start.wait()
        while None in hosts_of(there):
            claiming.claim(computes[number])

    with ThreadPoolExecutor(4) as threads:
        for _ in range(3):
            list(threads.map(claim_all, range(4)))
            assert sorted(Counter(hosts_of(there)).values()) == [3, 3, 3, 3]
            unclaim_all(there)


def test_a_full_host_claims_nothing_and_a_dead_one_is_no_reason_to_wait(cloud: Cloud) -> None:
    there = cloud(manager="vlan", placement=FEWEST, max_networks=2, down_seconds=DOWN)
    made(there, 5)
    claiming.beat(there.host(TWO))
    for _ in range(4):
        there.tend(ONE)
    assert Counter(hosts_of(there)) == {ONE: 1, None: 4}, "the other host has none"
    there.forward(DOWN + 1)
    for _ in range(4):
        there.tend(ONE)
    assert Counter(hosts_of(there)) == {ONE: 2, None: 3}


def test_a_dead_hosts_networks_are_claimed_in_time_and_not_before(cloud: Cloud) -> None:
    there = cloud(manager="vlan", down_seconds=DOWN)
    made(there, 2)
    there.settle(ONE)
    there.forward(DOWN)
    there.tend(TWO)
    assert hosts_of(there) == [ONE, ONE], "it was heard of just in time"
    there.forward(1)
    there.tend(TWO)
    assert hosts_of(there) == [TWO, ONE]
    there.tend(TWO)
    assert hosts_of(there) == [TWO, TWO]
    assert len(there.wire(TWO).serving) == 2


def test_a_host_that_comes_back_leaves_what_it_lost_at_its_first_beat(cloud: Cloud) -> None:
    there = cloud(manager="vlan", down_seconds=DOWN, metadata=("127.0.0.1", 8775))
    first, second = made(there, 2)
    there.settle(ONE)
    there.forward(DOWN + 1)
    there.tend(TWO)
    assert set(there.wire(ONE).serving) == {first.id, second.id}, "it is dead, and its kernel serves on"
    there.tend(ONE)
    assert set(there.wire(ONE).serving) == {second.id}
    assert there.wire(ONE).nat is not None
    assert there.wire(ONE).nat.bridges == (second.bridge,)
    assert there.wire(ONE).links[first.id].gateway is None
    there.settle(TWO, ONE)
    assert hosts_of(there) == [TWO, ONE]


def test_a_host_of_which_nothing_was_ever_heard_is_dead(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    made(there, 1)
    with there.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_networks SET host = 'gone'"))
    there.tend()
    assert hosts_of(there) == [ONE]


def test_networks_without_a_host_are_not_there_for_servers(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    network = made(there, 1)[0]
    with pytest.raises(NoMoreNetworks):
        there.boot()
    with there.compute.engine.begin() as conn:
        networks.associate(conn, network.id, "demo")
    with pytest.raises(BadRequest, match=f"{network.id} is not served by any network host yet"):
        there.boot(networks=(network.id,))
    there.tend()
    assert there.fixed(there.boot(networks=(network.id,))[0].id) == ["10.0.0.3"]


def test_shared_networks_without_a_host_give_no_interface(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    there.make("private", "10.0.0.0/28")
    assert there.vifs(there.boot()[0].id) == []
    there.tend()
    assert there.fixed(there.boot()[0].id) == ["10.0.0.2"]


class Dies(BaseException):
    """The end of a process, which nothing in it catches."""


@pytest.mark.parametrize("verb", ["happened", "serve", "standing", "translate"])
def test_whoever_dies_between_a_claim_and_its_serving_serves_at_the_next_beat(cloud: Cloud, verb: str) -> None:
    there = cloud(manager="flat_dhcp")
    network = there.make("private", "10.0.0.0/28")[0]
    there.wire().fails = dying(verb)
    with pytest.raises(Dies):
        there.tend()
    assert hosts_of(there) == [ONE]
    there.wire().fails = lambda _: None
    there.tend()
    assert set(there.wire().serving) == {network.id}
    assert there.place.count("compute_network_calls") == 0


def dying(verb: str) -> Callable[[str], None]:
    def fails(asked: str) -> None:
        if asked == verb:
            raise Dies

    return fails


def test_a_host_that_has_long_to_see_to_its_networks_keeps_them(cloud: Cloud) -> None:
    there = cloud(manager="vlan", down_seconds=60)
    there.served("net", "10.0.0.0/22", count=20, size=16)
    found: list[object] = []

    def slow(verb: str) -> None:
        if verb == "serve":
            there.clock.forward(seconds=4)
            found.append(claiming.claim(there.host(TWO)))

    there.wire().fails = slow
    there.tend(thorough=True)
    assert found == [None] * 20


def test_what_changes_when_a_host_takes_a_network_over(cloud: Cloud) -> None:
    there = cloud(manager="vlan", vpn_address=IPv4Address("192.0.2.1"))
    there.make("private", "10.8.0.0/28", "flat")
    there.make("shared", "10.9.0.0/28", "flat_dhcp", bridge="br101")
    made(there, 1)
    there.settle()
    flat, shared, vlan = there.listed()
    assert (flat.injected, shared.injected, vlan.injected) == (True, False, False)
    assert [str(one.vpn_public_address) for one in (flat, shared, vlan)] == ["None", "None", "192.0.2.1"]
    assert (vlan.vlan, vlan.bridge) == (102, "br102"), "the bridges of 100 and 101 are others'"


def test_a_cloudpipe_keeps_the_address_that_it_has(cloud: Cloud) -> None:
    there = cloud(manager="vlan", down_seconds=DOWN, vpn_address=IPv4Address("192.0.2.1"))
    network = made(there, 1)[0]
    there.settle(ONE)
    there.forward(DOWN + 1)
    other = there.host(TWO)
    there.hosts[TWO] = replace(other, network=replace(other.network, vpn_address=IPv4Address("192.0.2.2")))
    there.settle(TWO)
    assert (there.network(network.id).host, str(there.network(network.id).vpn_public_address)) == (TWO, "192.0.2.1")
    assert there.wire(TWO).nat is not None
    assert there.wire(TWO).nat.vpns == (), "it is reached on another host"


def test_a_project_whose_network_waits_to_be_claimed_is_given_no_other(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    there.served("anyones", "10.0.0.0/28")
    own = there.make("own", "10.1.0.0/28", project_id="p1")[0]
    with pytest.raises(BadRequest, match="not served by any network host yet"):
        there.boot(project_id="p1")
    assert [one.project_id for one in there.listed()] == [None, "p1"]
    there.tend()
    assert [vif.network.id for vif in there.vifs(there.boot(project_id="p1")[0].id)] == [own.id]


def test_many_networks_can_be_created_one_after_the_other_and_all_be_claimed(cloud: Cloud) -> None:
    there = cloud(manager="vlan", vpn_address=IPv4Address("192.0.2.1"))
    for number in range(3):
        there.make(f"net-{number}", f"10.{number}.0.0/24")
    there.settle()
    assert [(n.vlan, n.vpn_public_port, n.host) for n in there.listed()] == [
        (100 + place, 1000 + place, ONE) for place in range(3)
    ]


def test_ports_and_bridges_of_other_networks_are_refused(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    there.make("one", "10.0.0.0/24")
    with pytest.raises(Conflict, match="Port 1000 belongs to another network's cloudpipe"):
        there.make("two", "10.1.0.0/24", vlan_start=300, vpn_start=1000)
    with pytest.raises(Conflict, match="VLAN 100 belongs to another network"):
        there.make("two", "10.1.0.0/24", vlan_start=100)
    there.make("flat", "10.2.0.0/24", "flat_dhcp", bridge="br200")
    with pytest.raises(Conflict, match="Bridge br200 belongs to network flat"):
        there.make("two", "10.1.0.0/24", vlan_start=200)
    with pytest.raises(Conflict, match="Bridge br100 belongs to network one"):
        there.make("two", "10.1.0.0/24", "flat_dhcp")
    assert [network.label for network in there.listed()] == ["one", "flat"]


def test_a_network_given_up_is_claimed_anew_and_left_by_its_host(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    network = there.served("net", "10.0.0.0/28")[0]
    with there.compute.engine.begin() as conn:
        networks.associate(conn, network.id, "demo")
        networks.disassociate(conn, network.id)
    assert (there.network(network.id).host, there.network(network.id).project_id) == (None, None)
    with there.compute.engine.begin() as conn:
        networks.delete(conn, network.id)
    there.tend()
    assert there.wire().serving == {}
    assert there.place.count("compute_addresses") == 0


def test_a_host_without_a_driver_of_its_own_is_not_asked(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    there.served("private", "10.0.0.0/28")
    wire = there.wire()
    assert isinstance(wire, RecordingNetwork)
    assert (wire.serving, wire.links) == ({}, {}), "flat: somebody else does it"
    network_service.run_round(there.host(), thorough=True)
    assert wire.nat is not None
    assert wire.nat.bridges == ()
