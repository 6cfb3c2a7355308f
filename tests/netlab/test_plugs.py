"""Interfaces of guests that were begun and not finished, were made otherwise, or are asked for by many at once."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from ipaddress import IPv4Interface

import pytest

from climate.compute.errors import NetworkError
from climate.compute.linux import netns, taps
from climate.compute.network.driver import Kind, Link
from climate.compute.network.linux import netlink
from tests.netlab import frames
from tests.netlab.guests import Guest, guest, said, silent
from tests.netlab.hosts import On, on

__all__ = ["on"]

pytestmark = pytest.mark.netlab("nft", "ping")

NET = Link("net", "br100")


@pytest.fixture
def other(on: On) -> Guest:
    """One that is there all along."""
    on("c1").ensure(NET)
    made = guest(NET, "10.0.0.9/24", number=9)
    on("c1").plug(made.plug)
    return made


def begun(name: str, place: str) -> None:
    netns.create(place)
    words = f"ip link add {name} group {netlink.GROUP} type veth peer name eth0 netns {place}"
    said("c1", *words.split())


def test_an_interface_that_was_begun_is_finished(on: On, other: Guest) -> None:
    made = guest(NET, "10.0.0.2/24", number=1)
    begun(made.plug.name, made.plug.netns)
    on("c1").plug(made.plug)
    assert made.reaches(other.address)


def test_one_without_its_guard_or_out_of_its_bridge_is_put_right(on: On, other: Guest) -> None:
    made = guest(NET, "10.0.0.2/24", number=1)
    on("c1").plug(made.plug)
    said("c1", "nft", "delete", "table", "netdev", made.plug.name)
    said("c1", "ip", "link", "set", made.plug.name, "nomaster", "down")
    on("c1").plug(made.plug)
    assert made.reaches(other.address)
    assert made.plug.name in said("c1", "nft", "list", "tables")


def test_one_whose_guest_lost_its_namespace_is_recreated(on: On, other: Guest) -> None:
    made = guest(NET, "10.0.0.2/24", number=1)
    on("c1").plug(made.plug)
    on("c1").drop_netns(made.plug.netns)
    on("c1").plug(made.plug)
    assert made.reaches(other.address)


def test_one_that_was_created_otherwise_is_recreated(on: On, other: Guest) -> None:
    made = guest(NET, "10.0.0.2/24", number=1)
    on("c1").plug(replace(made.plug, mac="02:16:3e:00:00:77"))
    on("c1").plug(replace(made.plug, mac="02:16:3e:00:00:77", device="eth1"))
    on("c1").plug(made.plug)
    assert made.plug.mac in said(made.plug.netns, "ip", "link", "show", "eth0")
    assert made.reaches(other.address)


def test_static_addresses_are_exactly_those(on: On, other: Guest) -> None:
    made = guest(NET, "10.0.0.2/24", number=1, router="10.0.0.9")
    on("c1").plug(made.plug)
    address = IPv4Interface("10.0.0.4/24")
    on("c1").plug(replace(made.plug, static=(address,), addresses=(address.ip,)))
    assert "inet 10.0.0.4/24" in said(made.plug.netns, "ip", "address")
    assert "inet 10.0.0.2/24" not in said(made.plug.netns, "ip", "address")
    assert "default via 10.0.0.9 dev eth0" in said(made.plug.netns, "ip", "route")
    assert other.reaches("10.0.0.4")


def test_what_is_left_of_an_interface_that_went_is_found(on: On, other: Guest) -> None:
    made = guest(NET, "10.0.0.2/24", number=1)
    on("c1").plug(made.plug)
    said("c1", "ip", "link", "delete", made.plug.name)
    assert on("c1").standing().plugs == {made.plug.name, other.plug.name}
    on("c1").unplug(made.plug.name)
    assert on("c1").standing().plugs == {other.plug.name}
    assert made.plug.name not in said("c1", "nft", "list", "tables")


def test_an_interface_is_not_created_for_a_network_that_is_not_there(on: On) -> None:
    made = guest(NET, "10.0.0.2/24", number=1)
    with pytest.raises(NetworkError, match="no interface br100"):
        on("c1").plug(made.plug)
    assert on("c1").standing().plugs == set()
    assert not netns.exists(made.plug.netns)
    with pytest.raises(NetworkError, match="eth1 is not a guest's interface"):
        on("c1").unplug("eth1")
    with pytest.raises(NetworkError, match="c1 is the network of the host"):
        on("c1").drop_netns("c1")


def test_guests_stay_connected_to_each_other_when_their_network_goes_and_comes(on: On, other: Guest) -> None:
    made = guest(NET, "10.0.0.2/24", number=1)
    on("c1").plug(made.plug)
    on("c1").remove("net")
    assert on("c1").standing().plugs == {made.plug.name, other.plug.name}
    assert silent(made.plug.netns, other.address)
    on("c1").ensure(NET)
    for each in (made, other):
        on("c1").plug(each.plug)
    assert made.reaches(other.address)


@pytest.mark.netlab("tap")
def test_a_machine_speaks_by_the_file_of_its_tap(on: On, other: Guest) -> None:
    machine = guest(NET, "10.0.0.2/24", number=1)
    plug = replace(machine.plug, kind=Kind.TAP, netns="", static=())
    for _ in range(2):
        on("c1").plug(plug)
    held = taps.open_tap("c1", plug.name)
    try:
        on("c1").plug(plug)
        own = frames.ether(plug.mac, frames.IPV4, frames.ipv4(machine.address, frames.udp(9, 9, "own")))
        forged = frames.ether(plug.mac, frames.IPV4, frames.ipv4("10.0.0.3", frames.udp(9, 9, "forged")))
        with other.socket() as receiver:
            heard = b""
            for frame in (forged, own):
                os.write(held, bytes(10) + frame)
            while not heard.endswith(b"own"):
                heard = receiver.recv(65536)
                assert not heard.endswith(b"forged")
    finally:
        os.close(held)
    assert plug.name in on("c1").standing().plugs, "it stays for a machine that starts again"
    on("c1").unplug(plug.name)
    assert plug.name not in said("c1", "ip", "link")


@pytest.mark.netlab("tap")
def test_a_tap_in_the_place_of_a_pair_and_the_other_way_round(on: On, other: Guest) -> None:
    made = guest(NET, "10.0.0.2/24", number=1)
    for kind in (Kind.VETH, Kind.TAP, Kind.VETH):
        on("c1").plug(replace(made.plug, kind=kind))
        assert (kind is Kind.TAP) is ("tun type tap" in said("c1", "ip", "-d", "link", "show", made.plug.name))
    assert made.reaches(other.address)


@pytest.mark.netlab("tap")
def test_a_tap_that_a_machine_still_holds_is_deleted(on: On, other: Guest) -> None:
    plug = replace(guest(NET, "10.0.0.2/24", number=1).plug, kind=Kind.TAP, netns="", static=())
    on("c1").plug(plug)
    held = taps.open_tap("c1", plug.name)
    on("c1").unplug(plug.name)
    assert plug.name not in said("c1", "ip", "link")
    os.close(held)
    assert on("c1").standing().plugs == {other.plug.name}


def test_many_at_once(on: On, other: Guest) -> None:
    made = [guest(NET, f"10.0.0.{number}/24", number=number) for number in range(10, 26)]
    driver = on("c1")

    def connect(one: Guest) -> None:
        driver.ensure(NET)
        driver.plug(one.plug)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(connect, made))
        assert all(threads.map(lambda one: one.reaches(other.address), made))
        list(threads.map(lambda one: driver.unplug(one.plug.name), made))
    assert driver.standing().plugs == {other.plug.name}


def test_what_an_operator_has_called_alike_is_left_alone(on: On, other: Guest) -> None:
    """An interface and a table whose names only begin like ours, and an interface whose name could be ours."""
    made = guest(NET, "10.0.0.2/24", number=1)
    said("c1", "ip", "link", "add", "clp-uplink", "type", "veth", "peer", "name", made.plug.name)
    said("c1", "nft", "add", "table", "netdev", "clp-uplink")
    assert on("c1").standing().plugs == {other.plug.name}
    with pytest.raises(NetworkError, match=f"{made.plug.name} exists already and was not created by climate"):
        on("c1").plug(made.plug)
    on("c1").unplug(made.plug.name)
    assert made.plug.name in said("c1", "ip", "link")
    with pytest.raises(NetworkError, match="clp-uplink is not a guest's interface"):
        on("c1").unplug("clp-uplink")
    said("c1", "ip", "link", "delete", "clp-uplink")
    said("c1", "nft", "delete", "table", "netdev", "clp-uplink")
    on("c1").plug(made.plug)
    assert made.reaches(other.address)
