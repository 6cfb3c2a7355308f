"""Servers of two projects, each in a network of its own: they reach their like, and never each other."""

from collections.abc import Iterator

import pytest

from climate.compute.servers.interfaces.vif_plugging import netns_of
from climate.sandbox.topology import Lab
from tests.netlab import guests, leftovers
from tests.netlab.stack import PATIENCE, Region
from tests.netlab.stack_process import region, silent_until_woken
from tests.system.stack import await_so

pytestmark = [pytest.mark.netlab("dnsmasq", "nft", "udhcpc", "ping", "bwrap"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def place(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Region]:
    with region(lab, tmp_path_factory.mktemp("vlan"), "vlan") as one:
        yield one


def test_a_project_reaches_its_own_servers_on_other_hosts_and_no_other_project(place: Region) -> None:
    ours = place.running("ours", count=2)
    theirs = place.running("theirs", place.admin, count=2)
    try:
        assert {place.host_of(one) for one in ours} == {"c1", "c2"}
        other = place.addresses(ours[1])[0]
        assert place.reaches(ours[0], other)
        name = f"{place.server(ours[1])['name']}.novalocal"
        assert place.resolved(ours[0], name, f"{other.rpartition('.')[0]}.1") == other
        assert place.reaches(theirs[0], place.addresses(theirs[1], place.admin)[0])
        for stranger in theirs:
            address = place.addresses(stranger, place.admin)[0]
            assert all(guests.silent(netns_of(one), address) for one in ours)
    finally:
        place.delete(*ours)
        place.delete(*theirs, who=place.admin)


def test_a_reserved_server_has_its_address_and_answers_when_its_lease_has_begun(place: Region) -> None:
    silent_until_woken(place)


def test_each_project_has_one_network_and_keeps_it(place: Region) -> None:
    first = place.running("first")
    again = place.running("again")
    try:
        subnets = {place.addresses(one)[0].rpartition(".")[0] for one in first + again}
        assert len(subnets) == 1
    finally:
        place.delete(*first, *again)


def test_a_lease_on_networks_of_its_project_leaves_nothing(place: Region) -> None:
    lease = place.lease("two hosts", hosts=2)
    place.await_lease(lease["id"], "ACTIVE")
    before = leftovers.seen()
    hints = {"reservation": lease["reservations"][0]["id"]}
    one, two = place.running("leased", hints=hints, count=2)
    assert place.reaches(one, place.addresses(two)[0])
    place.end(lease["id"])
    place.await_nothing_left(before)
    await_so(lambda: place.held_addresses() == 0, PATIENCE, "all addresses back in the pool")


def test_a_floating_address_leads_into_a_projects_network(place: Region) -> None:
    (server_id,) = place.running("reachable")
    try:
        made = place.floating(server_id)
        await_so(lambda: place.reached(made["floating_ip_address"]), 30, "an answer from the floating address")
    finally:
        place.delete(server_id)
    await_so(lambda: not place.reached(made["floating_ip_address"]), 30, "the end of the floating address")
