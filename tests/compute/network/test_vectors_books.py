"""The vectors of cloud.md G.5 that are about networks and their addresses."""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest

from climate.compute.errors import (
    BadRequest,
    Conflict,
    FloatingAddressInUse,
    Forbidden,
    MacsCollide,
    NoMoreAddresses,
    NoMoreNetworks,
    NotFound,
    QuotaExceeded,
)
from climate.compute.metadata import nw_info
from climate.compute.network import fixed_ips, floating_ips, ipv6, mac_addresses, subnetting
from climate.compute.network.driver import DhcpAction
from climate.compute.network.models import Network, Vif
from climate.compute.store.projects import quotas
from tests.compute.network.conftest import Cloud
from tests.compute.network.recorded_network import Books


def test_nw_1_vlan_networks(cloud: Cloud) -> None:
    made = cloud(manager="vlan", network_size=16).make("net", "10.0.0.0/8", count=3)
    assert [
        (
            str(n.cidr),
            str(n.gateway),
            str(n.vpn_private_address),
            str(n.dhcp_start),
            n.vlan,
            n.bridge,
            n.vpn_public_port,
        )
        for n in made
    ] == [
        ("10.0.0.0/28", "10.0.0.1", "10.0.0.2", "10.0.0.3", 100, "br100", 1000),
        ("10.0.0.16/28", "10.0.0.17", "10.0.0.18", "10.0.0.19", 101, "br101", 1001),
        ("10.0.0.32/28", "10.0.0.33", "10.0.0.34", "10.0.0.35", 102, "br102", 1002),
    ]
    assert str(made[0].cidr.broadcast_address) == "10.0.0.15"
    assert {str(network.cidr.netmask) for network in made} == {"255.255.255.240"}


def test_nw_2_flat_networks_and_their_labels(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    one = there.make("private", "192.168.0.0/24")[0]
    assert (one.label, str(one.gateway), str(one.dhcp_start)) == ("private", "192.168.0.1", "192.168.0.2")
    assert str(one.cidr.broadcast_address) == "192.168.0.255"
    two = there.make("private", "192.168.4.0/23", count=2, size=256)
    assert [network.label for network in two] == ["private_0", "private_1"]


@pytest.mark.parametrize(
    ("cidr", "count", "size", "taken", "found"),
    [
        ("192.168.0.0/24", 2, 128, [], ["192.168.0.0/25", "192.168.0.128/25"]),
        *(
            ("192.168.0.0/16", 4, 256, [taken], [f"192.168.{third}.0/24" for third in (0, 1, 3, 4)])
            for taken in ("192.168.2.0/24", "192.168.2.0/25")
        ),
    ],
)
def test_nw_4_around_what_is_in_use(cidr: str, count: int, size: int, taken: list[str], found: list[str]) -> None:
    assert cut(cidr, count, size, taken) == found


def test_nw_5_around_a_part_of_one() -> None:
    assert cut("192.168.2.0/24", 3, 32, ["192.168.2.9/29"]) == [f"192.168.2.{last}/27" for last in (32, 64, 96)]


@pytest.mark.parametrize(
    ("cidr", "count", "taken", "error", "says"),
    [
        ("192.168.2.0/24", 1, "192.168.2.9/25", Conflict, r"conflicts with existing smaller cidr \(192.168.2.0/25\)"),
        ("192.168.2.0/24", 1, "192.168.0.0/8", Conflict, r"conflicts with existing supernet \(192.0.0.0/8\)"),
        ("192.168.2.0/24", 1, "192.168.2.0/24", Conflict, "Network with cidr 192.168.2.0/24 already exists"),
        ("192.168.2.0/24", 2, None, BadRequest, "do not fit"),
        ("192.168.2.0/24", 200, None, BadRequest, "do not fit"),
    ],
)
def test_nw_5_where_there_is_no_room(cidr: str, count: int, taken: str | None, error: type, says: str) -> None:
    with pytest.raises(error, match=says):
        cut(cidr, count, 256, [] if taken is None else [taken])


def cut(cidr: str, count: int, size: int, taken: list[str]) -> list[str]:
    used = [IPv4Network(one, strict=False) for one in taken]
    return [str(one) for one in subnetting.cut(IPv4Network(cidr), count, size, used)]


def test_nw_7_addresses_from_the_third_on_until_none_is_left(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    there.served("private", "10.0.0.0/28")
    servers = [there.boot()[0] for _ in range(13)]
    assert [there.fixed(server.id) for server in servers] == [[f"10.0.0.{last}"] for last in range(2, 15)]
    with pytest.raises(NoMoreAddresses, match=r"Zero fixed ips available"):
        there.boot()
    assert there.place.count("compute_servers") == 13


def leased(there: Books) -> tuple[str, str, Vif]:
    """A server whose address is leased: its id, the address, its interface."""
    server = there.boot()[0]
    vif, address = there.vifs(server.id)[0], there.fixed(server.id)[0]
    there.tell(DhcpAction.LEASED, vif.network.id, address, vif.mac)
    there.settle()
    assert there.row(address) == (True, True, True)
    return server.id, address, vif


def test_nw_8_an_address_is_its_servers_until_it_is_released(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", force_release=False)
    network = there.served("private", "10.0.0.0/28")[0]
    server_id, address, vif = leased(there)
    there.delete(server_id)
    there.settle()
    assert there.row(address) == (True, False, True)
    assert there.fixed(there.boot()[0].id) == ["10.0.0.3"]
    there.tell(DhcpAction.RELEASED, network.id, address, vif.mac)
    there.settle()
    assert there.row(address) == (False, False, False)
    assert there.fixed(there.boot()[0].id) == [address] == ["10.0.0.2"]
    assert there.wrong() == []


def test_nw_10_more_projects_than_networks(cloud: Cloud) -> None:
    there = cloud(manager="vlan")
    there.served("net", "10.0.0.0/24", count=2, size=16)
    for project in ("p1", "p2"):
        there.boot(project_id=project)
    with pytest.raises(NoMoreNetworks):
        there.boot(project_id="p3")
    assert [network.project_id for network in there.listed()] == ["p1", "p2"]
    assert there.place.count("compute_servers") == 2


def test_nw_11_a_released_address_is_free_after_the_time_out_and_not_before(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp", force_release=False)
    there.served("private", "10.0.0.0/28")
    stays = leased(there)
    goes = leased(there)
    there.delete(goes[0])
    there.forward(600)
    there.tend()
    assert there.row(goes[1]) == (True, False, True)
    there.forward(1)
    there.tend()
    assert there.row(goes[1]) == (False, False, False)
    there.forward(10**6)
    there.tend()
    assert there.row(stays[1]) == (True, True, True)


def test_nw_13_what_a_servers_network_looks_like(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    made = [
        there.served(f"fa{place}", f"192.168.{place}.0/24", cidr_v6=IPv6Network(f"2001:db{8 + place}::/64"))[0]
        for place in (0, 1)
    ]
    vifs = [vif_of(network, place) for place, network in enumerate(made)]
    described = nw_info.described(vifs, there.compute.network)
    for place, (network, found) in enumerate(described):
        assert network == {
            "bridge": "br100",
            "id": made[place].id,
            "cidr": f"192.168.{place}.0/24",
            "cidr_v6": f"2001:db{8 + place}::/64",
            "injected": True,
        }
        assert (found["label"], found["mac"]) == (f"fa{place}", f"de:ad:be:ef:00:0{place}")
        assert (found["gateway"], found["broadcast"]) == (f"192.168.{place}.1", f"192.168.{place}.255")
        assert found["ips"] == [{"ip": f"192.168.{place}.100", "netmask": "255.255.255.0", "enabled": "1"}]
        v6 = f"2001:db{8 + place}::dcad:beff:feef:{place}"
        assert found["ip6s"] == [{"ip": v6, "netmask": 64, "enabled": "1"}]


def vif_of(network: Network, place: int) -> Vif:
    address = IPv4Address(f"192.168.{place}.100")
    return Vif(f"v{place}", f"de:ad:be:ef:00:0{place}", place, "s", "demo", network, (address,))


def test_nw_14_ipv6_addresses_there_and_back() -> None:
    prefix, mac = IPv6Network("2001:db8::/64"), "02:16:3e:33:44:55"
    plain = ipv6.address("rfc2462", prefix, mac, "test")
    assert plain == IPv6Address("2001:db8::16:3eff:fe33:4455")
    assert ipv6.mac_of(plain) == mac
    account = ipv6.address("account_identifier", prefix, mac, "test")
    assert account == IPv6Address("2001:db8::a94a:8fe5:ff33:4455")
    assert ipv6.mac_of_account(account) == mac


def test_nw_22_the_quota_of_floating_addresses(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    there.pool()
    with there.compute.engine.begin() as conn:
        quotas.lock_limits(conn, "demo")
        quotas.set_limits(conn, "demo", {"floating_ips": 1})
    there.floating()
    with pytest.raises(QuotaExceeded, match="You cannot allocate any more addresses"):
        there.floating()


def test_nw_22_an_address_in_use_and_addresses_of_others(cloud: Cloud) -> None:
    there = cloud(manager="flat_dhcp")
    there.served("private", "10.0.0.0/28")
    there.pool()
    address = there.fixed(there.boot()[0].id)[0]
    mine, theirs = there.floating(fixed_address=address), there.floating("others")
    with there.compute.engine.begin() as conn:
        target = floating_ips.fixed(conn, "demo", address=address)
        with pytest.raises(FloatingAddressInUse, match=f"{mine.address} is already in use by fixed ip {address}"):
            floating_ips.associate(conn, mine, target, there.clock.time)
        with pytest.raises(Forbidden, match="is not allocated to the server's project"):
            floating_ips.associate(conn, theirs, target, there.clock.time)
        with pytest.raises(Forbidden, match=r"is not allocated to your project\(demo\)"):
            floating_ips.by_address(conn, theirs.address, "demo")
        with pytest.raises(NotFound):
            floating_ips.get(conn, theirs.id, "demo")
        with pytest.raises(NotFound, match="There is no fixed address"):
            floating_ips.fixed(conn, "others", address=address)


def test_nw_23_one_address_of_several_is_taken_away(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    network = there.served("private", "10.0.0.0/28")[0]
    server = there.boot()[0]
    for _ in range(2):
        add(there, server.id, network.id)
    assert there.fixed(server.id) == ["10.0.0.2", "10.0.0.3", "10.0.0.4"]
    remove(there, server.id, "10.0.0.3")
    assert there.fixed(server.id) == ["10.0.0.2", "10.0.0.4"]
    assert there.row("10.0.0.3") == (False, False, False)
    for bad in ("bad input", "10.0.0.3", "10.0.0.300", ""):
        with pytest.raises(NotFound, match=re.escape(f"doesn't have fixed ip '{bad}'.")):
            remove(there, server.id, bad)
    assert there.fixed(server.id) == ["10.0.0.2", "10.0.0.4"]


def add(there: Books, server_id: str, network_id: str) -> None:
    with there.compute.engine.begin() as conn:
        fixed_ips.add(conn, server_id, "demo", network_id, there.clock.time)


def remove(there: Books, server_id: str, address: str) -> None:
    with there.compute.engine.begin() as conn:
        fixed_ips.remove(conn, server_id, address, there.clock.time)


def test_nw_25_macs_are_of_our_prefix() -> None:
    pattern = re.compile(r"^02:16:3e:[0-7][0-9a-f]:[0-9a-f]{2}:[0-9a-f]{2}$")
    chosen = [mac_addresses.choose() for _ in range(2000)]
    assert all(pattern.match(mac) for mac in chosen)
    assert {mac[9] for mac in chosen} == set("01234567")


def test_nw_25_five_collisions_are_enough(cloud: Cloud) -> None:
    there = cloud(manager="flat")
    network = there.served("private", "10.0.0.0/28")[0]
    taken = there.vifs(there.boot()[0].id)[0].mac
    bare = there.boot(networks=())[0]
    tries: list[str] = []

    def stubborn() -> str:
        tries.append(taken)
        return taken

    asked = fixed_ips.InterfaceRequest("demo", (bare.id,), (network,))
    with pytest.raises(MacsCollide, match="5 MACs"), there.compute.engine.begin() as conn:
        fixed_ips.allocate(conn, asked, there.clock.time, stubborn)
    assert (len(tries), there.vifs(bare.id), there.wrong()) == (5, [], [])
    late = iter([taken] * 4 + [mac_addresses.choose()])
    with there.compute.engine.begin() as conn:
        fixed_ips.allocate(conn, asked, there.clock.time, lambda: next(late))
    assert there.fixed(bare.id) == ["10.0.0.3"]
