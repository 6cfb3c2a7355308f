"""Networks over two hosts, by each way that VLANs can be carried."""

from collections.abc import Iterator
from ipaddress import IPv4Interface

import pytest

from climate.compute.errors import NetworkError
from climate.compute.network.driver import Link
from climate.compute.network.linux.layer2 import WAYS
from climate.compute.network.linux.vlan.vlan_transport import Vxlan, why_not
from climate.sandbox.topology import Lab
from tests.netlab import frames
from tests.netlab.guests import Guest, guest, said, silent, wire
from tests.netlab.hosts import On, on

__all__ = ["on"]

pytestmark = pytest.mark.netlab("nft", "ping")

PACKET, AUXDATA = 263, 8
"""SOL_PACKET and PACKET_AUXDATA of <linux/if_packet.h>: tags are told beside the frame."""

FLAT = Link("flat", "br100", interface="eth1")
BLUE = Link("blue", "br100", interface="eth1", vlan=100)
RED = Link("red", "br200", interface="eth1", vlan=200)


@pytest.fixture(params=WAYS, ids=lambda way: way.name)
def way(request: pytest.FixtureRequest) -> str:
    """One that this kernel can go."""
    reason = why_not(request.param)
    if reason is not None:
        pytest.skip(reason)
    return str(request.param.name)


def connected(on: On, host: str, link: Link, address: str, number: int, way: str = "auto") -> Guest:
    made = guest(link, address, number=number)
    on(host, way).ensure(link)
    on(host).plug(made.plug)
    return made


def test_guests_of_a_flat_network_reach_each_other_over_two_hosts(on: On) -> None:
    one = connected(on, "c1", FLAT, "10.0.0.2/24", 1)
    two = connected(on, "c2", FLAT, "10.0.0.3/24", 2)
    assert one.reaches(two.address)


def test_guests_on_a_vlan_reach_each_other_and_nobody_on_another(on: On, way: str) -> None:
    one = connected(on, "c1", BLUE, "10.0.0.2/24", 1, way)
    two = connected(on, "c2", BLUE, "10.0.0.3/24", 2, way)
    foreign = connected(on, "c2", RED, "10.0.0.4/24", 3, way)
    near = connected(on, "c1", RED, "10.0.0.5/24", 4, way)
    assert one.reaches(two.address)
    assert near.reaches(foreign.address)
    assert silent(one.plug.netns, foreign.address)
    assert silent(one.plug.netns, near.address)


@pytest.fixture
def narrow(lab: Lab) -> Iterator[None]:
    """Wires that take no more than the networks do, and have no room for what carries a VLAN."""
    before = {
        host: said(host, "ip", "-o", "link", "show", "eth1").split(" mtu ")[1].split()[0] for host in lab.computes
    }
    for host in before:
        said(host, "ip", "link", "set", "eth1", "mtu", "1500")
    yield
    for host, mtu in before.items():
        said(host, "ip", "link", "set", "eth1", "mtu", mtu)


@pytest.mark.usefixtures("narrow")
def test_the_longest_packet_of_a_network_gets_through_whole(on: On, way: str) -> None:
    one = connected(on, "c1", BLUE, "10.0.0.2/24", 1, way)
    two = connected(on, "c2", BLUE, "10.0.0.3/24", 2, way)
    longest = on("c1").mtu(BLUE)
    assert longest == (1450 if way == "vxlan" else 1500)
    assert f"mtu {longest} " in said(one.plug.netns, "ip", "link", "show", "eth0")
    said(one.plug.netns, "ping", "-c", "1", "-W", "5", "-M", "do", "-s", str(longest - 28), two.address)
    one.runs("ip", "link", "set", "eth0", "mtu", "1600")
    assert one.runs("ping", "-c", "1", "-W", "1", "-M", "do", "-s", "1500", two.address).returncode != 0


def test_guests_are_not_on_the_wire_of_vxlans(on: On) -> None:
    if (reason := why_not(Vxlan())) is not None:
        pytest.skip(reason)
    on("c1", "vxlan").ensure(FLAT)
    with pytest.raises(NetworkError, match="eth1 is in a bridge, so guests could reach the wire"):
        on("c1", "vxlan").ensure(RED)
    on("c1", "vxlan").remove(FLAT.network_id)
    on("c1", "vxlan").ensure(RED)


def test_tags_are_those_of_802_1q_where_the_kernel_has_no_interfaces_for_them(on: On) -> None:
    reason = why_not(WAYS[1])
    if reason is not None:
        pytest.skip(reason)
    one = connected(on, "c1", BLUE, "10.0.0.2/24", 1, "bpf")
    word = "on the wire"
    frame = frames.ether(one.plug.mac, frames.IPV4, frames.ipv4(one.address, frames.udp(9, 9, word)))
    with wire("c1", "eth1") as trunk, one.socket() as sender:
        trunk.setsockopt(PACKET, AUXDATA, 1)
        sender.send(frame)
        heard, told = b"", []
        while not heard.endswith(word.encode()):
            heard, told, _, _ = trunk.recvmsg(65536, 64)
    tag = int.from_bytes(told[0][2][16:18], "little")
    assert tag & 0xFFF == 100


def test_a_guest_does_not_get_into_another_vlan_by_a_tag_of_its_own(on: On, way: str) -> None:
    one = connected(on, "c1", BLUE, "10.0.0.2/24", 1, way)
    foreign = connected(on, "c2", RED, "10.0.0.4/24", 3, way)
    near = connected(on, "c1", BLUE, "10.0.0.6/24", 5, way)
    far = connected(on, "c2", BLUE, "10.0.0.7/24", 6, way)

    def sent(*words: str) -> dict[str, bytes]:
        """The last is not tagged."""
        packets = {word: frames.ipv4(one.address, frames.udp(9, 9, word)) for word in words}
        tagged = {word: frames.tagged(one.plug.mac, 200, frames.IPV4, packets[word]) for word in words}
        return {**tagged, words[-1]: frames.ether(one.plug.mac, frames.IPV4, packets[words[-1]])}

    with one.socket() as sender, near.socket() as neighbour, far.socket() as away, foreign.socket() as stranger:
        assert frames.arrived(sent("tagged", "plain"), sender, neighbour) == {"plain"}
        said("c1", "nft", "delete", "table", "netdev", one.plug.name)
        # Without the guard: tags of guests are dropped where they would be tags on the wire.
        came = frames.arrived(sent("unguarded", "last"), sender, away)
        assert came == ({"last"} if way == "bpf" else {"unguarded", "last"})
        assert frames.waiting(stranger, "tagged") + frames.waiting(stranger, "unguarded") == 0


def test_an_interface_waits_to_be_connected(on: On) -> None:
    one = connected(on, "c1", FLAT, "10.0.0.2/24", 1)
    waiting = guest(FLAT, "10.0.0.3/24", number=2, up=False, router="10.0.0.1")
    on("c1").plug(waiting.plug)
    assert silent(one.plug.netns, waiting.address)
    awake = guest(FLAT, "10.0.0.3/24", number=2, vif_id=waiting.plug.vif_id, router="10.0.0.1")
    on("c1").plug(awake.plug)
    assert one.reaches(awake.address)
    assert "default via 10.0.0.1 dev eth0" in said(awake.plug.netns, "ip", "route")


def test_the_gateway_of_a_network_is_reached_on_its_host_alone(on: On) -> None:
    one = connected(on, "c1", BLUE, "10.0.0.2/24", 1)
    served = Link("blue", "br100", interface="eth1", vlan=100, gateway=IPv4Interface("10.0.0.1/24"))
    on("n1").ensure(served)
    assert one.reaches("10.0.0.1")
    on("n1").unserve("blue")
    assert silent(one.plug.netns, "10.0.0.1")
