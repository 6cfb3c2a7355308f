"""A service that is killed in the middle of its work: the next one goes on from what it finds."""

import subprocess
import sys
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import pytest

from climate.compute.network.driver import Kind, Link, Plug
from climate.compute.network.linux.driver import LinuxNetwork
from climate.sandbox.topology import Lab
from tests.netlab import leftovers
from tests.netlab.guests import reaches, said

pytestmark = pytest.mark.netlab("nft", "ping")

OUTWARD = Link("outward", "br-ex", interface="eth0", gateway=IPv4Interface("10.5.0.1/24"))
BLUE = Link("blue", "br100", interface="eth1", vlan=100)
GUEST = Plug(
    vif_id="01234567-0000-4000-8000-000000000000",
    mac="02:16:3e:00:00:01",
    kind=Kind.VETH,
    link=BLUE,
    addresses=(IPv4Address("10.0.0.2"),),
    netns="guest-1",
    static=(IPv4Interface("10.0.0.2/24"),),
)
STEPS = (
    lambda host: host.ensure(OUTWARD),
    lambda host: host.ensure(BLUE),
    lambda host: host.plug(GUEST),
    lambda host: host.unplug(GUEST.name),
    lambda host: host.drop_netns(GUEST.netns),
    lambda host: host.remove("blue"),
    lambda host: host.remove("outward"),
)
SERVICE = """
import sys
from pathlib import Path
from climate.compute.network.linux.driver import LinuxNetwork
from tests.netlab.test_killed import STEPS
host = LinuxNetwork("n1", Path(sys.argv[1]))
while True:
    for step in STEPS:
        step(host)
        print("done", flush=True)
"""


@pytest.mark.parametrize("steps", [2, 5, 6, 7])
def test_the_next_service_goes_on_from_there(lab: Lab, tmp_path: Path, steps: int) -> None:
    """It is killed as soon as it has told of so many steps: somewhere in the next one."""
    before, routes = leftovers.seen(), said("n1", "ip", "route")
    words = [sys.executable, "-c", SERVICE, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as service:
        assert service.stdout is not None
        assert [service.stdout.readline() for _ in range(steps)] == ["done\n"] * steps
        service.kill()
    host = LinuxNetwork("n1", tmp_path)
    for step in STEPS[:3]:
        step(host)
    assert reaches("n1", "203.0.113.254")
    assert host.standing().plugs == {GUEST.name}
    for step in STEPS[3:]:
        step(host)
    assert leftovers.left_since(before) == frozenset()
    assert leftovers.seen() == before
    assert said("n1", "ip", "route") == routes
