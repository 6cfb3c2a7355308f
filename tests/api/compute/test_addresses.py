"""Addresses of servers: shown, given, taken away, and floating ones that stand for them."""

from typing import Any
from uuid import uuid4

import pytest

from climate.compute.network.network_options import NetworkOptions
from tests.api.compute.api_clients import Person, World, done, hours_away, message, written
from tests.compute import network_factory

C = "/compute/v2.1"

SLEEPS = {"reserved": "True", "lease_params": {"name": "nap", "start_date": hours_away(24), "end_date": hours_away(25)}}


@pytest.fixture
def dhcp(there: World) -> str:
    """The id of a network whose addresses can have floating ones; 13 servers fit into it."""
    with there.here.compute.engine.begin() as conn:
        return network_factory.network(conn, "dhcp", "10.20.0.0/28", "flat_dhcp", NetworkOptions(flat_bridge="br200"))


@pytest.fixture
def pool(admin: Person) -> None:
    """A pool of four addresses, of which the first is 203.0.113.10."""
    wanted = {"ip_range": "203.0.113.10-203.0.113.13", "pool": "public", "cidr": "203.0.113.0/24"}
    done(admin("POST", f"{C}/os-floating-ips-bulk", {"floating_ips_bulk_create": wanted}))


def booted(there: World, person: Person, *networks: str) -> str:
    server_id = person.booted(networks=[{"uuid": network_id} for network_id in networks])
    there.settle()
    assert person.status(server_id) == "ACTIVE"
    return server_id


@pytest.fixture
def running(there: World, member: Person, dhcp: str, pool: None) -> str:
    """The id of a server at 10.20.0.2, whose project has 203.0.113.10."""
    done(member("POST", f"{C}/os-floating-ips", {}))
    return booted(there, member, dhcp)


def addresses(person: Person, server_id: str) -> list[str]:
    found = person.get(f"{C}/servers/{server_id}/ips")["addresses"]
    return sorted(one["addr"] for entries in found.values() for one in entries)


def interfaces(person: Person, server_id: str) -> list[dict[str, Any]]:
    return list(person.get(f"{C}/servers/{server_id}/os-interface")["interfaceAttachments"])


def test_addresses_are_added_and_removed(there: World, member: Person, dhcp: str) -> None:
    server_id = booted(there, member, dhcp)
    assert addresses(member, server_id) == ["10.20.0.2"]
    for _ in range(2):
        assert member.act(server_id, "addFixedIp", {"networkId": dhcp}).status_code == 202
        there.settle()
    assert addresses(member, server_id) == ["10.20.0.2", "10.20.0.3", "10.20.0.4"]
    assert member.act(server_id, "removeFixedIp", {"address": "10.20.0.3"}).status_code == 202
    there.settle()
    assert addresses(member, server_id) == ["10.20.0.2", "10.20.0.4"]
    told = message(member.act(server_id, "removeFixedIp", {"address": "bad input"}), 400, "badRequest")
    assert told == f"Instance {server_id} doesn't have fixed ip 'bad input'."
    assert addresses(member, server_id) == ["10.20.0.2", "10.20.0.4"]
    assert list(member.get(f"{C}/servers/{server_id}/ips/dhcp")) == ["dhcp"]
    assert member("GET", f"{C}/servers/{server_id}/ips/private").status_code == 404
    actions = member.get(f"{C}/servers/{server_id}/os-instance-actions")["instanceActions"]
    assert [one["action"] for one in actions].count("changeAddresses") == 3


def test_the_compute_service_is_asked_to_connect_it_anew(there: World, member: Person, dhcp: str) -> None:
    server_id = booted(there, member, dhcp)
    there.here.rings.rung.clear()
    member.act(server_id, "addFixedIp", {"networkId": dhcp})
    assert [rung for _, rung in there.here.rings.rung] == [server_id]
    assert member.get(f"{C}/servers/{server_id}")["server"]["OS-EXT-STS:task_state"] == "rewiring"
    assert member.act(server_id, "addFixedIp", {"networkId": dhcp}).status_code == 409
    there.settle()
    assert member.get(f"{C}/servers/{server_id}")["server"]["OS-EXT-STS:task_state"] is None


def test_a_shelved_server_gets_its_address_when_it_is_unshelved(there: World, member: Person, dhcp: str) -> None:
    server_id = booted(there, member, dhcp)
    member.act(server_id, "shelve")
    there.settle()
    assert member.act(server_id, "addFixedIp", {"networkId": dhcp}).status_code == 202
    assert member.status(server_id) == "SHELVED_OFFLOADED"
    assert len(addresses(member, server_id)) == 2


@pytest.mark.parametrize(
    ("action", "details", "status"),
    [
        ("addFixedIp", {}, 422),
        ("addFixedIp", None, 422),
        ("addFixedIp", {"networkId": "nobody"}, 400),
        ("addFixedIp", {"networkId": str(uuid4())}, 400),
        ("removeFixedIp", {}, 422),
        ("removeFixedIp", {"address": ""}, 400),
        ("removeFixedIp", {"address": ["10.20.0.2"]}, 400),
        ("addFloatingIp", {}, 400),
        ("addFloatingIp", {"address": "nobody"}, 400),
        ("addFloatingIp", {"address": "203.0.113.12"}, 404),
        ("addFloatingIp", {"address": "203.0.113.10", "fixed_address": "10.20.0.9"}, 404),
        ("removeFloatingIp", {"address": "203.0.113.12"}, 404),
        ("removeFloatingIp", {"address": "203.0.113.10"}, 409),
    ],
)
def test_what_cannot_be_done_changes_nothing(
    there: World, member: Person, running: str, action: str, details: Any, status: int
) -> None:
    server_id = running
    assert member.act(server_id, action, details).status_code == status
    assert addresses(member, server_id) == ["10.20.0.2"]
    assert member.status(server_id) == "ACTIVE"


def test_a_network_has_an_end_and_so_has_a_quota(there: World, member: Person, admin: Person, dhcp: str) -> None:
    server_id = booted(there, member, dhcp)
    for _ in range(12):
        assert member.act(server_id, "addFixedIp", {"networkId": dhcp}).status_code == 202
        there.settle()
    told = message(member.act(server_id, "addFixedIp", {"networkId": dhcp}), 400, "badRequest")
    assert "Zero fixed ips available" in told
    assert len(addresses(member, server_id)) == 13
    done(admin("PUT", f"{C}/os-quota-sets/project", {"quota_set": {"fixed_ips": 13}}))
    flat = member.get(f"{C}/os-networks")["networks"][0]["id"]
    assert "fixed ips" in message(member.act(server_id, "addFixedIp", {"networkId": flat}), 403, "forbidden")


def test_a_network_that_is_named_twice_gives_two_interfaces(there: World, member: Person, dhcp: str) -> None:
    """As in Nova, which allows it for a server with two addresses of one network."""
    server_id = booted(there, member, dhcp, dhcp)
    found = interfaces(member, server_id)
    assert [one["net_id"] for one in found] == [dhcp, dhcp]
    assert len({one["mac_addr"] for one in found}) == 2
    assert addresses(member, server_id) == ["10.20.0.2", "10.20.0.3"]


def test_a_server_is_booted_with_the_very_address_that_was_asked_for(
    there: World, member: Person, dhcp: str, pool: None
) -> None:
    flat = member.get(f"{C}/os-networks")["networks"][0]["id"]
    server_id = member.booted(networks=[{"uuid": dhcp, "fixed_ip": "10.20.0.9"}, {"uuid": flat, "fixed_ip": None}])
    there.settle()
    assert [one["net_id"] for one in interfaces(member, server_id)] == [dhcp, flat]
    assert "10.20.0.9" in addresses(member, server_id)
    done(member("POST", f"{C}/os-floating-ips"))
    wanted = {"address": "203.0.113.10", "fixed_address": "10.20.0.9"}
    assert member.act(server_id, "addFloatingIp", wanted).status_code == 202
    asleep = member.booted(hints=SLEEPS, networks=[{"uuid": dhcp, "fixed_ip": "10.20.0.7"}])
    assert (member.status(asleep), addresses(member, asleep)) == ("RESERVED", ["10.20.0.7"])


def test_addresses_that_no_server_can_be_booted_with(there: World, member: Person, dhcp: str) -> None:
    member.booted(networks=[{"uuid": dhcp, "fixed_ip": "10.20.0.9"}])
    before = written(there)
    for address, word in (
        ("10.20.0.9", "10.20.0.9 is not free"),
        ("10.20.0.1", "10.20.0.1 is not free"),
        ("10.20.0.15", "10.20.0.15 is not free"),
        ("10.20.0.16", "10.20.0.16 is not one of network"),
        ("fd00::9", "must be an IPv4 address"),
        ("", "must be an IPv4 address"),
        (9, "must be an IPv4 address"),
    ):
        answer = member.boot(networks=[{"uuid": dhcp, "fixed_ip": address}])
        assert word in message(answer, 400, "badRequest")
    free = {"uuid": dhcp, "fixed_ip": "10.20.0.10"}
    assert "max_count" in message(member.boot(networks=[free], max_count=2), 400, "badRequest")
    assert "twice" in message(member.boot(networks=[{"uuid": dhcp}, free]), 400, "badRequest")
    assert written(there) == before


def test_interfaces_come_and_go(there: World, member: Person, dhcp: str, pool: None) -> None:
    flat = member.get(f"{C}/os-networks")["networks"][0]["id"]
    server_id = booted(there, member, flat)
    wanted = {"net_id": dhcp, "fixed_ips": [{"ip_address": "10.20.0.9"}]}
    made = done(member("POST", f"{C}/servers/{server_id}/os-interface", {"interfaceAttachment": wanted}))
    there.settle()
    made = made["interfaceAttachment"]
    assert (made["net_id"], made["fixed_ips"][0]["ip_address"]) == (dhcp, "10.20.0.9")
    assert [one["net_id"] for one in interfaces(member, server_id)] == [flat, dhcp]
    done(member("POST", f"{C}/os-floating-ips"))
    floating = {"address": "203.0.113.10", "fixed_address": "10.20.0.9"}
    assert member.act(server_id, "addFloatingIp", floating).status_code == 202
    path = f"{C}/servers/{server_id}/os-interface/{made['port_id']}"
    assert member.get(path)["interfaceAttachment"] == made
    assert member("DELETE", path).status_code == 202
    there.settle()
    assert [one["net_id"] for one in interfaces(member, server_id)] == [flat]
    assert member.get(f"{C}/os-floating-ips")["floating_ips"][0]["fixed_ip"] is None
    assert member("GET", path).status_code == 404
    assert member("DELETE", path).status_code == 404


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({}, 400),
        ({"port_id": str(uuid4())}, 404),
        ({"port_id": str(uuid4()), "net_id": str(uuid4())}, 400),
        ({"net_id": str(uuid4())}, 400),
        ({"fixed_ips": [{"ip_address": "10.20.0.1"}]}, 409),
        ({"fixed_ips": [{"ip_address": "10.20.0.2"}]}, 409),
        ({"fixed_ips": [{"ip_address": "10.99.0.2"}]}, 409),
        ({"fixed_ips": [{"ip_address": "nobody"}]}, 400),
        ({"fixed_ips": []}, 400),
        ({"fixed_ips": "10.20.0.9"}, 400),
    ],
)
def test_interfaces_that_there_cannot_be(
    there: World, member: Person, dhcp: str, wanted: dict[str, Any], status: int
) -> None:
    server_id = booted(there, member, dhcp)
    body = {"interfaceAttachment": ({"net_id": dhcp} if "fixed_ips" in wanted else {}) | wanted}
    assert member("POST", f"{C}/servers/{server_id}/os-interface", body).status_code == status
    assert addresses(member, server_id) == ["10.20.0.2"]


def test_a_floating_address_stands_for_a_server(there: World, member: Person, dhcp: str, pool: None) -> None:
    first, second = (booted(there, member, dhcp) for _ in range(2))
    done(member("POST", f"{C}/os-floating-ips", {"pool": "public"}))
    address = {"address": "203.0.113.10"}
    assert member.act(first, "addFloatingIp", address).status_code == 202
    assert addresses(member, first) == ["10.20.0.2", "203.0.113.10"]
    assert member.act(second, "addFloatingIp", address).status_code == 202
    assert (addresses(member, first), addresses(member, second)) == (["10.20.0.2"], ["10.20.0.3", "203.0.113.10"])
    assert member.act(first, "addFloatingIp", address).status_code == 202
    other = done(member("POST", f"{C}/os-floating-ips", {"pool": "public"}))["floating_ip"]["ip"]
    told = message(member.act(first, "addFloatingIp", {"address": other}), 400, "badRequest")
    assert told == "Floating address 203.0.113.10 is already associated with 10.20.0.2"
    assert "associated" in message(
        member.act(first, "removeFixedIp", {"address": "10.20.0.2"}), 409, "conflictingRequest"
    )
    assert message(member.act(second, "removeFloatingIp", address), 409, "conflictingRequest")
    assert member.act(first, "removeFloatingIp", address).status_code == 202
    assert member.act(second, "addFloatingIp", {**address, "fixed_address": "10.20.0.3"}).status_code == 202
    assert addresses(member, second) == ["10.20.0.3", "203.0.113.10"]


def test_nobody_touches_what_is_anothers(
    there: World, member: Person, stranger: Person, reader: Person, dhcp: str, pool: None
) -> None:
    mine, theirs = booted(there, member, dhcp), booted(there, stranger, dhcp)
    floating = done(member("POST", f"{C}/os-floating-ips", {"pool": "public"}))["floating_ip"]
    address = {"address": "203.0.113.10"}
    for action, details in (
        ("addFixedIp", {"networkId": dhcp}), ("removeFixedIp", {"address": "10.20.0.2"}),
        ("addFloatingIp", address), ("removeFloatingIp", address),
    ):  # fmt: skip
        assert stranger.act(mine, action, details).status_code == 404
        assert reader.act(mine, action, details).status_code == 403
    for path in ("ips", "os-interface"):
        assert stranger("GET", f"{C}/servers/{mine}/{path}").status_code == 404
    told = message(stranger.act(theirs, "addFloatingIp", address), 403, "forbidden")
    assert told == "Address (203.0.113.10) is not allocated to your project(other-project)"
    assert member.act(mine, "addFloatingIp", address).status_code == 202
    assert message(stranger.act(theirs, "removeFloatingIp", address), 403, "forbidden") == told
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/disassociate")):
        assert stranger(method, f"{C}/os-floating-ips/{floating['id']}{path}").status_code == 404
