"""Virtual machines on real networks: a kernel of their own that asks DHCP by itself, through a tap."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Interface

import pytest

from climate.compute.errors import VirtError
from climate.compute.linux import processes
from climate.compute.network.render import interfaces
from climate.compute.network.render.interfaces import GuestInterface
from climate.compute.virt import State
from tests.netlab import leftovers
from tests.netlab.guests import packets_from, silent
from tests.netlab.servers import SERVING, Placed, Site, answering, hears

pytestmark = [pytest.mark.netlab("dnsmasq", "ping", "nft"), pytest.mark.timeout(300)]


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    return make_site("qemu")


def said(site: Site, one: Placed) -> str:
    return site.driver.console(one.guest, None)


def test_a_machine_reaches_others_by_the_address_that_dhcp_gave_it(site: Site, make_site: Callable[..., Site]) -> None:
    one = site.place("c1")
    site.run(one)
    light = make_site("process", beside=site)
    other = light.place("c2")
    light.run(other)
    hears(one, f"machine: eth0 has {one.address}/24")
    answering(one)
    assert other.reaches(one)


def test_a_reserved_machine_is_silent_until_it_is_woken(site: Site) -> None:
    one = site.place("c1")
    site.connect(one, up=False)
    site.driver.prepare(one.guest)
    assert site.driver.states()[one.guest.id] is State.PREPARED
    assert silent(SERVING, one.address)
    assert packets_from("c1", one.plug.name) == 0
    assert said(site, one) == ""
    site.run(one)
    answering(one)
    assert packets_from("c1", one.plug.name) > 0


def test_a_machine_sleeps_and_goes_on_where_it_was(site: Site) -> None:
    one = site.place("c1")
    site.run(one)
    answering(one)
    site.driver.pause(one.guest)
    assert silent(SERVING, one.address)
    site.driver.unpause(one.guest)
    answering(one)
    site.driver.suspend(one.guest)
    assert silent(SERVING, one.address)
    site.connect(one)
    site.driver.resume(one.guest)
    answering(one)
    assert said(site, one).count("machine: starts") == 1


def test_a_machine_powers_off_when_it_is_asked_and_starts_again(site: Site) -> None:
    one = site.place("c1")
    site.run(one)
    answering(one)
    site.driver.stop(one.guest)
    assert "reboot: Power down" in said(site, one)
    assert silent(SERVING, one.address)
    site.run(one)
    answering(one)
    assert said(site, one).count("machine: starts") == 2


def test_a_machine_that_was_killed_gets_its_tap_again(site: Site) -> None:
    one = site.place("c1")
    site.run(one)
    pid = site.driver.homes.pid(one.guest.id)  # type: ignore[attr-defined]
    os.kill(pid.number, signal.SIGKILL)
    assert processes.wait_gone(pid, 10)
    site.run(one)
    answering(one)


def test_a_machine_is_imaged_while_it_answers(site: Site) -> None:
    one = site.place("c1")
    site.run(one)
    answering(one)
    image = site.folder / "image"
    site.driver.snapshot(one.guest, image)
    answering(one)
    copy = site.place("c2", image=image)
    site.run(copy)
    answering(copy)


def test_a_machine_is_given_its_address_where_there_is_no_dhcp(make_site: Callable[..., Site]) -> None:
    """And again after it was suspended and started anew."""
    site = make_site("qemu", dhcp=False)
    one = site.place("c1")
    text = interfaces.interfaces([GuestInterface("eth0", IPv4Interface(f"{one.address}/24"))])
    card = replace(one.guest.interfaces[0], interfaces_file=text)
    one.guest = replace(one.guest, interfaces=(card,))
    light = make_site("process", dhcp=False, beside=site)
    other = light.place("c2")
    light.run(other)
    site.run(one)
    hears(one, f"machine: eth0 was given {one.address}/24")
    assert other.reaches(one)
    site.driver.suspend(one.guest)
    site.driver.resume(one.guest)
    assert other.reaches(one)


def test_a_machine_without_its_interface_is_an_error_and_leaves_nothing(site: Site) -> None:
    one = site.place("no-such-host")
    with pytest.raises(VirtError, match="cannot be opened"):
        site.driver.run(one.guest)
    site.driver.delete(one.guest.id)
    site.placed.remove(one)
    assert site.driver.states() == {}


@pytest.mark.parametrize("state", ["prepared", "running", "suspended"])
def test_nothing_is_left_of_a_deleted_machine(site: Site, state: str) -> None:
    other = site.place("c1")
    site.connect(other)
    before = leftovers.seen()
    one = site.place("c1")
    site.connect(one, up=state != "prepared")
    site.driver.prepare(one.guest)
    if state != "prepared":
        site.driver.run(one.guest)
        hears(one, "machine: starts")
    if state == "suspended":
        site.driver.suspend(one.guest)
    site.delete(one)
    assert leftovers.left_since(before) == frozenset()
