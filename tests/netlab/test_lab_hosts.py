"""The lab: hosts that reach each other, made and taken away as often as one likes."""

import subprocess

import pytest

from climate.compute.linux import netns
from climate.sandbox import topology
from climate.sandbox.topology import Lab
from tests.netlab import leftovers

pytestmark = pytest.mark.netlab("ping", "nft")


def works(host: str | None, *command: str) -> bool:
    return netns.inside(host, lambda: subprocess.run(command, capture_output=True, check=False).returncode) == 0


def test_all_hosts_reach_each_other_and_the_outside_only_what_is_public(lab: Lab) -> None:
    inner = [str(cable.address.ip) for cable in lab.cables if cable.peer is None and cable.address is not None]
    for host in (None, *lab.computes, lab.network):
        assert all(works(host, "ping", "-c", "1", "-W", "5", address) for address in inner)
    assert works(lab.network, "ping", "-c", "1", "-W", "5", "203.0.113.254")
    assert works(lab.outside, "ping", "-c", "1", "-W", "5", str(lab.public.ip))
    assert not works(lab.outside, "ip", "route", "get", inner[0])


def test_the_switch_takes_what_a_packet_is_wrapped_in(lab: Lab) -> None:
    assert works("c1", "ping", "-c", "1", "-W", "5", "-M", "do", "-s", str(1550 - 28), "192.0.2.3")


def test_making_it_again_changes_nothing(lab: Lab) -> None:
    before = leftovers.seen()
    topology.up(lab)
    assert leftovers.seen() == before


def test_what_was_taken_away_comes_back_and_a_moved_address_stays_where_it_is(lab: Lab) -> None:
    before = leftovers.seen()
    for line in (
        "link add br100 type bridge",
        "address del 192.0.2.2/24 dev eth1",
        "address add 192.0.2.2/24 dev br100",
    ):
        assert works("c1", "ip", *line.split())
    assert works("c2", "ip", "link", "delete", "eth1")
    topology.up(lab)
    assert not works("c1", "sh", "-c", "ip -4 address show dev eth1 | grep 192.0.2.2")
    assert works("c2", "sh", "-c", "ip -4 address show dev eth1 | grep 192.0.2.3")
    assert works("c1", "ip", "link", "delete", "br100")
    topology.up(lab)
    assert works("c1", "sh", "-c", "ip -4 address show dev eth1 | grep 192.0.2.2")
    assert leftovers.seen() == before


def test_traces_tell_of_everything_that_a_module_may_leave(lab: Lab) -> None:
    before = leftovers.seen()
    assert works("c1", "ip", "link", "add", "left", "type", "bridge")
    assert works("n1", "nft", "add table ip left")
    assert works(None, "ip", "netns", "add", "left")
    with netns.inside("c2", lambda: subprocess.Popen(["sleep", "600"])):
        left = leftovers.seen() - before
        assert sorted((what, place if what != "process" else "c2") for what, place, _ in left) == [
            ("interface", "c1"),
            ("interface", "left"),
            ("namespace", leftovers.MACHINE),
            ("process", "c2"),
            ("rule", "n1"),
        ]
        leftovers.end_processes(left)
    assert works("c1", "ip", "link", "delete", "left")
    assert works("n1", "nft", "delete table ip left")
    assert works(None, "ip", "netns", "delete", "left")
    assert leftovers.seen() == before
