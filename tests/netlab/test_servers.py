"""Servers of each driver on real networks: their addresses by real DHCP, silent until they are woken, gone for good."""

from collections.abc import Callable
from pathlib import Path

import pytest

from climate.compute.linux import netns, processes
from climate.compute.virt import State
from climate.sandbox.topology import Lab
from tests.netlab import leftovers
from tests.netlab.bridge_bench import until
from tests.netlab.guests import packets_from, run, said, silent
from tests.netlab.servers import LINK, MAKERS, SERVING, Placed, Site, answering

pytestmark = pytest.mark.netlab("dnsmasq", "udhcpc", "ping", "nft")

LIGHT = ("process", "container")


@pytest.fixture(params=LIGHT)
def site(request: pytest.FixtureRequest, make_site: Callable[..., Site]) -> Site:
    return make_site(request.param)


def client(site: Site, one: Placed) -> processes.Pid:
    """The DHCP client of a guest."""
    home = site.driver.homes.of(one.guest.id)  # type: ignore[attr-defined]
    found = processes.read(home / "dhcp-eth0.pid")
    assert found is not None
    assert processes.state(found) is not None
    return found


def test_servers_on_two_hosts_reach_each_other_by_the_addresses_that_dhcp_gave_them(site: Site) -> None:
    one, two = site.place("c1"), site.place("c2")
    for each in (one, two):
        site.run(each)
    for each in (one, two):
        answering(each)
    assert one.reaches(two)
    assert two.reaches(one)
    held = said(one.plug.netns, "ip", "-4", "-oneline", "address", "show", "dev", "eth0")
    assert f"inet {one.address}/24" in held
    assert "default via 10.0.0.1" in said(one.plug.netns, "ip", "route", "show")


def test_a_guest_and_its_client_are_in_its_own_network(site: Site) -> None:
    one = site.place("c1")
    site.run(one)
    place = (netns.FOLDER / one.plug.netns).stat().st_ino
    first = site.driver.homes.pid(one.guest.id)  # type: ignore[attr-defined]
    assert Path(f"/proc/{first.number}/ns/net").stat().st_ino == place
    assert Path(f"/proc/{client(site, one).number}/ns/net").stat().st_ino == place
    site.driver.stop(one.guest)
    site.run(one)
    again = site.driver.homes.pid(one.guest.id)  # type: ignore[attr-defined]
    assert Path(f"/proc/{again.number}/ns/net").stat().st_ino == place


def test_a_reserved_server_is_silent_until_it_is_woken(site: Site) -> None:
    one = site.place("c1")
    site.connect(one, up=False)
    site.driver.prepare(one.guest)
    assert site.driver.states()[one.guest.id] is State.PREPARED
    assert one.plug.name in site.hosts["c1"].standing().plugs
    assert run("c1", "ip", "netns", "pids", one.plug.netns).stdout == ""
    assert silent(SERVING, one.address)
    assert packets_from("c1", one.plug.name) == 0
    site.run(one)
    answering(one)
    assert packets_from("c1", one.plug.name) > 0


def test_a_server_that_is_shut_off_is_silent_and_answers_when_it_is_started(site: Site) -> None:
    one = site.place("c1")
    site.run(one)
    answering(one)
    first = client(site, one)
    site.driver.stop(one.guest)
    site.connect(one, up=False)
    assert processes.state(first) is None
    assert silent(SERVING, one.address)
    site.run(one)
    answering(one)


def test_the_client_goes_on_through_a_pause_and_a_restart_of_the_service(site: Site, tmp_path: Path) -> None:
    one = site.place("c1")
    site.run(one)
    answering(one)
    first = client(site, one)
    site.driver.pause(one.guest)
    assert client(site, one) == first
    site.driver.unpause(one.guest)
    site.driver.suspend(one.guest)
    site.driver.resume(one.guest)
    kind = "process" if "servers" in str(site.driver.homes.folder) else "container"  # type: ignore[attr-defined]
    site.driver = MAKERS[kind](tmp_path)
    site.driver.run(one.guest)
    site.driver.clean_up()
    assert client(site, one) == first
    assert one.answers()


def test_a_client_that_was_killed_is_replaced_and_a_stray_one_is_not_doubled(site: Site) -> None:
    one = site.place("c1")
    site.run(one)
    answering(one)
    first = client(site, one)
    processes.send(first, processes.signal.SIGKILL)
    assert processes.wait_gone(first, 10)
    site.driver.run(one.guest)
    second = client(site, one)
    # The kernel puts a new process's environment in place a moment after it is there.
    until(lambda: second in processes.carrying({"CLIMATE_DHCP_OF": one.guest.id}), "an environment")
    home = site.driver.homes.of(one.guest.id)  # type: ignore[attr-defined]
    (home / "dhcp-eth0.pid").unlink()
    site.driver.run(one.guest)
    assert client(site, one) != second
    assert processes.state(second) is None


def test_the_client_of_a_server_that_died_ends_when_it_is_set_down(site: Site) -> None:
    one = site.place("c1")
    site.run(one)
    answering(one)
    first = client(site, one)
    pid = site.driver.homes.pid(one.guest.id)  # type: ignore[attr-defined]
    processes.send(pid, processes.signal.SIGKILL)
    assert processes.wait_gone(pid, 10)
    site.connect(one, up=False)
    site.driver.rewire(one.guest)
    assert processes.state(first) is None


def test_an_interface_that_was_removed_by_hand_works_again_once_it_is_plugged_in(site: Site) -> None:
    one = site.place("c1")
    site.run(one)
    answering(one)
    said("c1", "ip", "link", "delete", one.plug.name)
    assert not one.answers()
    site.connect(one)
    site.driver.rewire(one.guest)
    answering(one)


def test_a_server_that_is_given_its_address_needs_no_client(make_site: Callable[..., Site]) -> None:
    site = make_site("container", dhcp=False)
    one, two = site.place("c1"), site.place("c2")
    for each in (one, two):
        site.run(each)
    assert one.reaches(two)
    home = site.driver.homes.of(one.guest.id)  # type: ignore[attr-defined]
    assert not list(home.glob("dhcp*"))


def test_a_container_asks_the_server_that_dhcp_named(make_site: Callable[..., Site]) -> None:
    site = make_site("container")
    one = site.place("c1")
    site.run(one)
    pid = site.driver.homes.pid(one.guest.id)  # type: ignore[attr-defined]
    seen = Path(f"/proc/{pid.number}/root/etc/resolv.conf")
    until(lambda: seen.read_text() == "search novalocal\nnameserver 10.0.0.1\n", "the name server's address")
    assert run(one.plug.netns, "cat", "/etc/resolv.conf").stdout != seen.read_text(), "the host's is not touched"


@pytest.mark.parametrize("state", ["prepared", "running", "paused", "shut off", "dead"])
def test_nothing_is_left_of_a_deleted_server(site: Site, lab: Lab, state: str) -> None:
    other = site.place("c1")
    site.run(other)
    answering(other)
    before = leftovers.seen()
    one = site.place("c1")
    site.connect(one, up=state != "prepared")
    site.driver.prepare(one.guest) if state == "prepared" else site.driver.run(one.guest)
    if state == "paused":
        site.driver.pause(one.guest)
    elif state == "shut off":
        site.driver.stop(one.guest)
    elif state == "dead":
        processes.send(site.driver.homes.pid(one.guest.id), processes.signal.SIGKILL)  # type: ignore[attr-defined]
    site.delete(one)
    assert leftovers.left_since(before) == frozenset()
    answering(other)
    assert LINK.network_id in site.hosts["c1"].standing().networks
