"""Leases and servers on one network for everybody: DHCP, names, floating addresses, and nothing left in the end."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from climate.compute.linux import netns
from climate.compute.servers.interfaces.vif_plugging import netns_of
from climate.sandbox.topology import Lab
from tests.netlab import guests, leftovers
from tests.netlab.stack import COMPUTE, PATIENCE, Region
from tests.netlab.stack_process import region, silent_until_woken
from tests.system.api_client import Api
from tests.system.stack import await_so

pytestmark = [pytest.mark.netlab("dnsmasq", "nft", "udhcpc", "ping", "bwrap"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def place(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Region]:
    with region(lab, tmp_path_factory.mktemp("flat_dhcp"), "flat_dhcp") as one:
        yield one


def test_a_lease_from_its_start_to_its_end_leaves_nothing(place: Region) -> None:
    lease = place.lease("two hosts", hosts=2)
    place.await_lease(lease["id"], "ACTIVE")
    before = leftovers.seen()
    hints = {"reservation": lease["reservations"][0]["id"]}
    one, two = place.running("leased", hints=hints, count=2)
    assert {place.configured(one), place.configured(two)} == {*place.addresses(one), *place.addresses(two)}
    assert place.reaches(one, place.addresses(two)[0])
    assert place.reaches(two, place.addresses(one)[0])
    place.end(lease["id"])
    place.await_nothing_left(before)
    await_so(lambda: place.held_addresses() == 0, PATIENCE, "all addresses back in the pool")


def test_two_servers_on_two_hosts_reach_each_other_by_name_and_address(place: Region) -> None:
    made = place.running("pair", count=2)
    try:
        assert {place.host_of(one) for one in made} == {"c1", "c2"}
        assert place.reaches(made[0], place.addresses(made[1])[0])
        names = [place.server(one)["name"] for one in made]
        assert place.resolved(made[0], f"{names[1]}.novalocal", "10.10.0.1") == place.addresses(made[1])[0]
    finally:
        place.delete(*made)


def test_a_reserved_server_has_its_address_and_answers_when_its_lease_has_begun(place: Region) -> None:
    silent_until_woken(place)


def test_a_floating_address_is_reached_from_outside_until_it_is_taken_away(place: Region) -> None:
    (server_id,) = place.running("reachable")
    try:
        floating = place.floating(server_id)
        address = floating["floating_ip_address"]
        assert place.addresses(server_id, kind="floating") == [address]
        await_so(lambda: place.reached(address), 30, "an answer from the floating address")
        path = f"/network/v2.0/floatingips/{floating['id']}"
        assert place.member.ask("PUT", path, {"floatingip": {"port_id": None}}).status_code == 200
        await_so(lambda: not place.reached(address), 30, "the end of the floating address")
        assert place.member.ask("DELETE", path).status_code == 204
    finally:
        place.delete(server_id)


@pytest.mark.parametrize(
    ("quiet", "still", "again"), [("pause", "PAUSED", "unpause"), ("suspend", "SUSPENDED", "resume")]
)
def test_a_server_that_stands_still_is_silent_and_keeps_its_addresses(
    place: Region, quiet: str, still: str, again: str
) -> None:
    (server,) = place.running("still")
    try:
        address, floating = place.addresses(server)[0], place.floating(server)["floating_ip_address"]
        await_so(lambda: place.reached(floating), PATIENCE, "an answer from outside")
        for verb, status in ((quiet, still), (again, "ACTIVE")):
            assert place.member.ask("POST", f"{COMPUTE}/servers/{server}/action", {verb: None}).status_code == 202
            await_so(lambda wanted=status: place.server(server)["status"] == wanted, PATIENCE, status)  # type: ignore[misc]
            await_so(lambda up=status == "ACTIVE": place.reached(floating) is up, PATIENCE, f"the answer when {status}")  # type: ignore[misc]
        assert place.configured(server) == address
    finally:
        place.delete(server)


def test_a_server_with_a_port_has_its_address_and_is_filtered_by_its_groups(place: Region) -> None:
    member, network = place.member, "/network/v2.0"
    group = _made(member, "security-groups", "security_group", {"name": "closed"})
    (network_id,) = [one["id"] for one in member.read(f"{network}/networks?router:external=False")["networks"]]
    wanted = {"network_id": network_id, "fixed_ips": [{"ip_address": "10.10.0.77"}], "security_groups": [group["id"]]}
    port = _made(member, "ports", "port", wanted)
    (server_id,) = place.running("with-port", networks=[{"port": port["id"]}])
    (other,) = place.running("without-port")
    try:
        assert place.configured(server_id) == "10.10.0.77"
        assert place.reaches(server_id, place.addresses(other)[0])
        assert not place.reaches(other, "10.10.0.77")
        default = member.read(f"{network}/security-groups?name=default")["security_groups"][0]["id"]
        open_to_all = {"port": {"security_groups": [default]}}
        assert member.ask("PUT", f"{network}/ports/{port['id']}", open_to_all).status_code == 200
        await_so(lambda: place.reaches(other, "10.10.0.77"), 30, "an answer of a port that is open")
        down = {"port": {"admin_state_up": False}}
        assert member.ask("PUT", f"{network}/ports/{port['id']}", down).status_code == 200
        await_so(lambda: not place.reaches(other, "10.10.0.77"), 30, "silence of a port that is down")
        place.delete(server_id)
        assert member.read(f"{network}/ports/{port['id']}")["port"]["device_id"] == ""
        up = {"port": {"admin_state_up": True}}
        assert member.ask("PUT", f"{network}/ports/{port['id']}", up).status_code == 200
        (server_id,) = place.running("again", networks=[{"port": port["id"]}])
        assert place.configured(server_id) == "10.10.0.77"
    finally:
        place.delete(server_id, other)
        assert member.ask("DELETE", f"{network}/ports/{port['id']}").status_code == 204


def _made(member: Api, path: str, key: str, values: dict[str, Any]) -> dict[str, Any]:
    answer = member.ask("POST", f"/network/v2.0/{path}", {key: values})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()[key]
    return made


def test_fifty_servers_are_addressed_and_no_address_is_given_twice(
    place: Region, record_testsuite_property: Callable[[str, object], None]
) -> None:
    lease = place.lease("fifty", hosts=4)
    place.await_lease(lease["id"], "ACTIVE")
    hints = {"reservation": lease["reservations"][0]["id"]}
    await_so(lambda: place.held_addresses() == 0, PATIENCE, "all addresses back in the pool")
    before, began = leftovers.seen(), time.monotonic()
    with ThreadPoolExecutor(16) as pool:
        counts = [4] * 2 + [3] * 14
        made = [
            one
            for each in pool.map(lambda n: place.boot(f"fifty-{n}", hints=hints, count=counts[n]), range(16))
            for one in each
        ]
    given = {one: place.addresses(one)[0] for one in made}
    assert len(set(given.values())) == len(made) == 50
    for server_id, address in given.items():
        await_so(lambda one=server_id: place.configured(one), 120, "an address")  # type: ignore[misc]
        assert place.configured(server_id) == address
    record_testsuite_property("seconds_until_fifty_servers_had_their_addresses", f"{time.monotonic() - began:.1f}")
    print(f"50 servers booted and addressed in {time.monotonic() - began:.1f} s")
    assert place.reaches(made[0], given[made[-1]])
    place.end(lease["id"])
    place.await_nothing_left(before)
    await_so(lambda: place.held_addresses() == 0, PATIENCE, "all addresses back in the pool")


def test_running_servers_stay_connected_while_everything_is_started_anew(place: Region) -> None:
    made = place.running("steady", count=2)
    try:
        other = place.addresses(made[1])[0]
        with subprocess_ping(netns_of(made[0]), other) as ping:
            for role in ("worker", "poller"):
                for process in place.stack.find(role):
                    process.send_signal(signal.SIGKILL)
            again = place.running("after", count=1)
            made += again
            ping.send_signal(signal.SIGINT)
            told = ping.communicate()[0]
        heard = [int(number) for number in re.findall(r"icmp_seq=(\d+) ", told)]
        sent = int(re.findall(r"(\d+) packets transmitted", told)[0])
        assert heard == [*range(1, len(heard) + 1)], "none is lost, but perhaps the one that was on its way in the end"
        assert len(heard) >= sent - 1 > 5, told
        assert place.reaches(made[2], other)
    finally:
        place.delete(*made)


def subprocess_ping(place: str, address: str) -> "subprocess.Popen[str]":
    """A ping that goes on, five times a second."""
    words = ("ping", "-i", "0.2", address)
    return netns.inside(place, lambda: subprocess.Popen(words, stdout=subprocess.PIPE, text=True))


def test_a_dhcp_server_that_dies_is_started_again(place: Region) -> None:
    (before,) = place.running("before")
    try:
        for number in running_dnsmasqs(str(place.stack.home)):
            with suppress(ProcessLookupError):  # its helper goes with it
                os.kill(number, signal.SIGKILL)
        (after,) = place.running("after")
        assert place.reaches(after, place.addresses(before)[0])
        place.delete(after)
    finally:
        place.delete(before)


def running_dnsmasqs(home: str) -> list[int]:
    found = guests.run(None, "pgrep", "-f", f"dnsmasq.*{home}").stdout.split()
    assert found
    return [int(number) for number in found]


def test_what_cannot_be_had_is_refused_and_nothing_is_left(place: Region) -> None:
    await_so(lambda: place.held_addresses() == 0, PATIENCE, "all addresses back in the pool")
    image = place.member.read("/image/v2/images")["images"][0]["id"]
    server = {
        "name": "s",
        "imageRef": image,
        "flavorRef": "42",
        "networks": [{"uuid": "c11a7e00-0000-4000-8000-0000000000ff"}],
    }
    answer = place.member.ask("POST", f"{COMPUTE}/servers", {"server": server})
    assert answer.status_code == 400, answer.text
    assert "could not be found" in answer.text
    own = place.lab.public.ip
    pool = next(one for one in place.member.read("/network/v2.0/networks")["networks"] if one["router:external"])
    wanted = {"floating_network_id": pool["id"], "floating_ip_address": str(own)}
    answer = place.admin.ask("POST", "/network/v2.0/floatingips", {"floatingip": wanted})
    assert (answer.status_code, f"{own} is a network host's own" in answer.text) == (409, True), answer.text
    more = {"floating_ips_bulk_create": {"ip_range": str(own), "pool": pool["name"]}}
    assert place.admin.ask("POST", f"{COMPUTE}/os-floating-ips-bulk", more).status_code == 409
    assert place.held_addresses() == 0
