"""Servers on bridges that the operator has made: they are told their addresses, and nobody serves DHCP."""

from collections.abc import Iterator

import pytest

from climate.compute.servers.interfaces.vif_plugging import netns_of
from climate.sandbox import topology
from climate.sandbox.topology import Lab
from tests.netlab import guests, leftovers
from tests.netlab.stack import PATIENCE, Region
from tests.netlab.stack_process import region, silent_until_woken
from tests.system.stack import await_so

pytestmark = [pytest.mark.netlab("nft", "ping", "bwrap"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def place(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Region]:
    topology.bridge(lab, "br100")
    with region(lab, tmp_path_factory.mktemp("flat"), "flat") as one:
        yield one
    for host in lab.computes:
        guests.said(host, "ip", "link", "delete", "br100")


def test_servers_have_the_addresses_that_the_books_say(place: Region) -> None:
    before = leftovers.seen()
    made = place.running("flat", count=2)
    try:
        assert {place.host_of(one) for one in made} == {"c1", "c2"}
        assert [place.configured(one) for one in made] == [place.addresses(one)[0] for one in made]
        assert place.reaches(made[0], place.addresses(made[1])[0])
    finally:
        place.delete(*made)
    place.await_nothing_left(before)
    assert place.held_addresses() == 0


def test_an_address_that_is_not_its_own_does_not_get_through(place: Region) -> None:
    one, two = place.running("guarded", count=2)
    try:
        guest = place.configured(one)
        assert place.reaches(one, place.addresses(two)[0])
        stolen = "10.10.15.200"
        guests.said(netns_of(one), "ip", "address", "add", f"{stolen}/20", "dev", "eth0")
        words = ("ping", "-c", "1", "-W", "2", "-I", stolen, place.addresses(two)[0])
        assert guests.run(netns_of(one), *words).returncode != 0
        assert place.configured(one) == guest
    finally:
        place.delete(one, two)


def test_a_reserved_server_has_its_address_and_answers_when_its_lease_has_begun(place: Region) -> None:
    silent_until_woken(place)


def test_a_lease_on_the_operators_bridges(place: Region) -> None:
    lease = place.lease("two hosts", hosts=2)
    place.await_lease(lease["id"], "ACTIVE")
    before = leftovers.seen()
    hints = {"reservation": lease["reservations"][0]["id"]}
    one, two = place.running("leased", hints=hints, count=2)
    assert place.reaches(one, place.addresses(two)[0])
    place.end(lease["id"])
    place.await_nothing_left(before)
    await_so(lambda: place.held_addresses() == 0, PATIENCE, "all addresses back in the pool")
