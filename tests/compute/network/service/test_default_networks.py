"""What a fresh cloud is furnished with, for each manager: servers can be booted at once."""

from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest

from climate.compute.errors import BadRequest, Conflict
from climate.compute.network import floating_ips, reserved_floating_ips
from climate.compute.network.floating_pool_ranges import reshape
from climate.compute.nodes import services
from climate.compute.store.networks import floating_pools
from tests.compute.network.conftest import Cloud
from tests.compute.network.recorded_network import Books


@pytest.mark.parametrize(
    ("options", "count", "first"),
    [
        ({"manager": "flat"}, 1, "10.10.0.2"),
        ({"manager": "flat_dhcp"}, 1, "10.10.0.2"),
        ({"manager": "vlan"}, 16, "10.10.0.3"),
        ({"manager": "vlan", "network_size": 100}, 32, "10.10.0.3"),
        ({"manager": "vlan", "network_size": 65536}, 1, "10.10.0.3"),
        ({"manager": "vlan", "network_size": 16, "vlan_start": 4090}, 5, "10.10.0.3"),
        ({"manager": "vlan", "network_size": 16, "vpn_start": 65530}, 6, "10.10.0.3"),
    ],
    ids=str,
)
def test_servers_can_be_booted_at_once(cloud: Cloud, options: dict[str, Any], count: int, first: str) -> None:
    there = cloud(**options)
    services.furnish(there.compute)
    assert len(there.listed()) == count
    assert [network.host for network in there.listed()][:2] == [there.compute.network_host, None][:count]
    assert there.fixed(there.boot()[0].id) == [first]
    assert there.wrong() == []


def test_what_is_there_stays_as_it_is(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", floating_range=IPv4Network("192.0.2.8/29"))
    own = there.make("mine", "192.168.0.0/24")
    there.pool()
    for _ in range(2):
        services.furnish(there.compute)
    assert there.listed() == own
    assert [pool.name for pool in pools(there)] == ["public"]
    assert [pool.cidr for pool in pools(there)] == ["172.24.4.0/28"]


def test_a_pool_of_floating_addresses_if_there_is_a_range(cloud: Cloud) -> None:
    there = cloud(
        manager="flat_dhcp",
        floating_range=IPv4Network("192.0.2.0/29"),
        floating_cidr=IPv4Network("192.0.2.0/24"),
        floating_pool="outside",
        public_interface="eth0",
    )
    for _ in range(2):
        services.furnish(there.compute)
    (pool,) = pools(there)
    assert (pool.name, pool.cidr, pool.interface) == ("outside", "192.0.2.0/24", "eth0")
    assert pool.addresses == 7, "all but the network's own"


def pools(there: Books) -> list[floating_pools.PoolRow]:
    with there.compute.engine.connect() as conn:
        return floating_pools.pools(conn)


def test_floating_addresses_are_none_of_servers(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", floating_range=IPv4Network("10.10.1.0/24"))
    services.furnish(there.compute)
    assert [len(there.listed()), pools(there)] == [1, []], "servers need networks more"
    with pytest.raises(Conflict, match=r"10.0.0.0/8 overlaps 10.10.0.0/20, the range of a network of servers"):
        there.pool("10.0.0.0/8")
    there.pool("172.24.4.0/28")
    for cidr in ("172.24.4.0/29", "172.24.0.0/16"):
        with pytest.raises(Conflict, match=f"{cidr} overlaps 172.24.4.0/28, the range of a pool"):
            there.make("more", cidr, bridge="br7")
    there.make("more", "172.24.4.16/28", bridge="br7")


def test_nobody_is_given_an_address_that_a_host_has_itself(cloud: Cloud) -> None:
    own = {"source": IPv4Address("192.0.2.1"), "vpn_address": IPv4Address("192.0.2.2")}
    there = cloud(manager="flat_dhcp", floating_range=IPv4Network("192.0.2.0/29"), **own)
    services.furnish(there.compute)
    pool, options = pools(there)[0].id, there.compute.network
    with there.compute.engine.begin() as conn:
        reshape(conn, pool, [(IPv4Address("192.0.2.0"), IPv4Address("192.0.2.6"))], options.own)
        assert floating_pools.ranges(conn) == {pool: [("192.0.2.3", "192.0.2.6")]}
        with pytest.raises(Conflict, match=r"192.0.2.1 is a network host's own"):
            floating_ips.check_not_own(options, IPv4Address("192.0.2.1"))
    with pytest.raises(Conflict, match=r"192.0.2.2 is a network host's own"):
        reserved_floating_ips.lend(there.compute, "lent", "demo", (pool, "192.0.2.2"), 1)
    found = reserved_floating_ips.find(there.compute, pool)
    assert found is not None
    assert {("192.0.2.1",) * 2, ("192.0.2.2",) * 2} <= set(found[1])


def test_without_a_range_there_is_no_pool(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    services.furnish(there.compute)
    assert pools(there) == []


def test_a_floating_address_comes_with_each_server_if_that_is_wanted(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", floating_range=IPv4Network("192.0.2.0/29"), auto_assign=True)
    services.furnish(there.compute)
    server = there.boot(2)[0]
    assert there.place.count("compute_floating_addresses", "auto_assigned AND fixed_address IS NOT NULL") == 2
    there.delete(server.id)
    assert there.place.count("compute_floating_addresses", "project_id IS NOT NULL") == 1
    assert there.wrong() == []


def test_a_cloudpipe_gets_its_own_address_and_no_other_server_does(cloud: Cloud) -> None:
    there = cloud(manager="vlan", vpn_image=services.IMAGE_ID, vpn_address=IPv4Address("192.0.2.1"))
    services.furnish(there.compute)
    pipe = there.boot(image_id=services.IMAGE_ID)[0]
    assert there.fixed(pipe.id) == ["10.10.0.2"]
    assert there.fixed(there.boot()[0].id) == ["10.10.0.3"]
    there.delete(pipe.id)
    assert there.row("10.10.0.2")[1] is False
    assert there.wrong() == []


@pytest.mark.parametrize("clients", [12, 13, 16, 70000])
def test_networks_in_which_no_address_would_be_left_are_refused(cloud: Cloud, clients: int) -> None:
    there = cloud(manager="vlan", vpn_clients=clients)
    with pytest.raises(BadRequest, match="none would be left for servers"):
        there.make("net", "10.0.0.0/28")


@pytest.mark.parametrize(
    "cidr",
    ["127.0.0.0/24", "127.5.0.0/16", "224.0.0.0/24", "239.1.0.0/24", "240.0.0.0/24", "0.0.0.0/24", "169.254.169.0/24"],
)
def test_ranges_that_no_interface_can_have_are_refused(cloud: Cloud, cidr: str) -> None:
    there = cloud(manager="flat_dhcp")
    with pytest.raises(BadRequest, match=f"{cidr} cannot be the range of a network"):
        there.make("net", cidr)
    with pytest.raises(BadRequest, match=f"{cidr} cannot be the range of a network"):
        there.pool(cidr)
    assert there.place.count("compute_networks") + there.place.count("compute_floating_pools") == 0


@pytest.mark.parametrize("name", ["eth 0", "x" * 16, "..", "-x", "eth0:1", "eth0/1"])
def test_pools_on_interfaces_that_no_host_can_have_are_refused(cloud: Cloud, name: str) -> None:
    there = cloud(manager="flat_dhcp")
    with pytest.raises(BadRequest, match="is not a valid interface name"), there.compute.engine.begin() as conn:
        floating_ips.create_pool(conn, "public", IPv4Network("172.24.4.0/28"), interface=name)
    assert there.place.count("compute_floating_pools") == 0


@pytest.mark.parametrize("name", ["br 1", "", "x" * 16, "br1\n", "../br", "-x"])
def test_names_that_no_interface_can_have_are_refused(cloud: Cloud, name: str) -> None:
    there = cloud(manager="flat_dhcp")
    for wanted in ({"bridge": name}, {"bridge": "br1", "bridge_interface": name}):
        if all(wanted.values()):
            with pytest.raises(BadRequest, match="is not a valid interface name"):
                there.make("net", "10.0.0.0/28", **wanted)
    assert there.place.count("compute_networks") == 0
