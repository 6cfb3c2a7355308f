"""Bridges take over interfaces of their host and give them back; what is not climate's is left as it is."""

import re
import subprocess
from ipaddress import IPv4Interface, IPv6Interface

import pytest

from climate.compute.errors import NetworkError
from climate.compute.linux import netns
from climate.compute.network.driver import Link
from climate.compute.network.linux import netlink
from tests.netlab import leftovers
from tests.netlab.bridge_bench import until
from tests.netlab.guests import guest, reaches, run, said
from tests.netlab.hosts import On, on

__all__ = ["on"]

pytestmark = pytest.mark.netlab("nft", "ping")

OUTWARD = Link("outward", "br-ex", interface="eth0")
ALONE = Link("alone", "br100")
BLUE = Link("blue", "br100", interface="eth1", vlan=100)
GATEWAY = Link("alone", "br100", gateway=IPv4Interface("192.168.1.1/24"))


def addresses(host: str, interface: str) -> list[str]:
    lines = said(host, "ip", "-o", "-4", "address", "show", "dev", interface).splitlines()
    return [line.split()[3] for line in lines]


def mac(host: str, interface: str) -> str:
    return said(host, "ip", "-o", "link", "show", interface).split("link/ether ")[1].split()[0]


def rest(*places: str) -> None:
    for place in places:
        until(lambda place=place: leftovers.at_rest(place), f"rest in {place}")  # type: ignore[misc]


def everything(host: str) -> str:
    """All that there is on a host when it is at rest, but for what changes by itself."""
    rest(host)
    words = ("ip address", "ip route", "ip -6 route", "nft list ruleset", "tc qdisc", "tc filter show dev eth1 ingress")
    text = "\n".join(said(host, *command.split()) for command in words)
    return re.sub(r"(?m)^\d+: |@if\d+|@\w+|valid_lft .*|link-netns\S* \S+| tentative", "", text)


def test_a_bridge_takes_over_addresses_and_routes_while_packets_go_on(on: On) -> None:
    before = everything("n1")
    words = ["ping", "-q", "-i", "0.02", "-c", "60", "203.0.113.254"]
    with netns.inside("n1", lambda: subprocess.Popen(words, stdout=subprocess.PIPE, text=True)) as pinging:
        on("n1").ensure(OUTWARD)
        told, _ = pinging.communicate()
    assert "60 received" in told
    assert mac("n1", "br-ex") == mac("n1", "eth0"), "neighbours know the host by it"
    assert addresses("n1", "br-ex") == ["203.0.113.1/24"]
    assert addresses("n1", "eth0") == []
    assert "default via 203.0.113.254 dev br-ex" in said("n1", "ip", "route")
    assert reaches("n1", "203.0.113.254")
    on("n1").remove("outward")
    assert everything("n1") == before
    assert reaches("n1", "203.0.113.254")


def test_what_was_broken_off_is_finished(on: On) -> None:
    """As after a kill between any two steps: made and not signed, addresses on both, in no bridge yet."""
    said("n1", "ip", "link", "add", "br-ex", "group", str(netlink.GROUP), "type", "bridge")
    said("n1", "ip", "address", "add", "203.0.113.1/24", "dev", "br-ex")
    on("n1").ensure(OUTWARD)
    assert (addresses("n1", "br-ex"), addresses("n1", "eth0")) == (["203.0.113.1/24"], [])
    assert reaches("n1", "203.0.113.254")
    said("n1", "ip", "address", "add", "203.0.113.1/24", "dev", "eth0")
    on("n1").ensure(OUTWARD)
    assert addresses("n1", "eth0") == []


def test_a_bridge_of_somebody_else_is_refused_and_left(on: On) -> None:
    said("c1", "ip", "link", "add", "br100", "type", "bridge")
    said("c1", "ip", "address", "add", "10.9.9.9/24", "dev", "br100")
    before = everything("c1")
    try:
        with pytest.raises(NetworkError, match="br100 exists already and was not created by climate"):
            on("c1").ensure(GATEWAY)
        on("c1").remove("alone")
        assert on("c1").standing().networks == set()
        assert everything("c1") == before
        on("c1").ensure(Link("flat", "br100", ours=False, gateway=IPv4Interface("10.9.9.1/24"), interface="eth1"))
        assert everything("c1") == before
    finally:
        said("c1", "ip", "link", "delete", "br100")
    with pytest.raises(NetworkError, match="no bridge br100"):
        on("c1").ensure(Link("flat", "br100", ours=False))


def test_the_bridge_or_vlan_of_another_network_is_refused(on: On) -> None:
    on("c1").ensure(BLUE)
    with pytest.raises(NetworkError, match="br100 belongs to network blue, not to alone"):
        on("c1").ensure(ALONE)
    with pytest.raises(NetworkError, match="VLAN 100 belongs to network blue"):
        on("c1").ensure(Link("red", "br200", interface="eth1", vlan=100))
    said("c1", "ip", "link", "add", "vlan300", "type", "bridge")
    with pytest.raises(NetworkError, match="vlan300 exists already and was not created by climate"):
        on("c1").ensure(Link("red", "br300", interface="eth1", vlan=300))
    said("c1", "ip", "link", "delete", "vlan300")
    on("c1").remove("red")
    with pytest.raises(NetworkError, match="no interface eth7"):
        on("c1").ensure(Link("green", "br300", interface="eth7"))


def test_what_is_not_climates_stays(on: On) -> None:
    """Beside networks of ours, in their way, and on their interfaces."""
    for words in (
        "ip link add other type veth peer name other-end",
        "ip link add br-other type bridge",
        "ip link set other master br-other",
        "ip address add 10.8.8.8/24 dev eth1",
        "ip route add 10.7.0.0/16 via 10.8.8.1",
        "nft add table netdev other",
        "tc qdisc add dev eth1 clsact",
        "tc filter add dev eth1 ingress prio 7 protocol ip u32 match u32 0 0 classid 1:1",
    ):
        said("c1", *words.split())
    before = everything("c1")
    made = guest(BLUE, "10.0.0.2/24", number=1)
    on("c1").ensure(BLUE)
    on("c1").plug(made.plug)
    on("c1").unplug(made.plug.name)
    on("c1").remove("blue")
    assert everything("c1") == before
    for words in (
        "route delete 10.7.0.0/16",
        "link delete other",
        "link delete br-other",
        "address del 10.8.8.8/24 dev eth1",
    ):
        said("c1", "ip", *words.split())
    said("c1", "nft", "delete", "table", "netdev", "other")
    said("c1", "tc", "qdisc", "del", "dev", "eth1", "clsact")


def test_nothing_is_left_of_a_network_and_its_guests(on: On) -> None:
    before = everything("c1")
    assert "PROMISC" not in before
    made = guest(BLUE, "10.0.0.2/24", number=1)
    on("c1").ensure(BLUE)
    on("c1").plug(made.plug)
    standing = on("c1").standing()
    assert (standing.networks, standing.served, standing.plugs) == ({"blue"}, set(), {made.plug.name})
    for _ in range(2):
        on("c1").unplug(made.plug.name)
        on("c1").drop_netns(made.plug.netns)
        on("c1").remove("blue")
        assert everything("c1") == before
    assert not netns.exists(made.plug.netns)
    assert not on("c1").standing().plugs


def test_a_second_time_changes_nothing(on: On) -> None:
    made = guest(BLUE, "10.0.0.2/24", number=1)
    on("c1").ensure(BLUE)
    on("c1").plug(made.plug)
    words = ("ip", "link")
    rest("c1", made.plug.netns)
    before = said("c1", *words), said(made.plug.netns, *words), everything("c1")
    on("c1").ensure(BLUE)
    on("c1").plug(made.plug)
    assert (said("c1", *words), said(made.plug.netns, *words), everything("c1")) == before


def test_the_gateway_is_the_first_address_of_its_bridge(on: On) -> None:
    """G.5 NW-26."""
    on("c1").ensure(ALONE)
    said("c1", "ip", "address", "add", "192.168.0.1/24", "dev", "br100")
    said("c1", "ip", "route", "add", "10.7.0.0/16", "via", "192.168.0.254")
    on("c1").ensure(GATEWAY)
    assert addresses("c1", "br100") == ["192.168.1.1/24", "192.168.0.1/24"]
    assert "10.7.0.0/16 via 192.168.0.254 dev br100" in said("c1", "ip", "route")
    assert on("c1").standing().served == {"alone"}
    on("c1").ensure(ALONE)
    assert addresses("c1", "br100") == ["192.168.1.1/24", "192.168.0.1/24"], "it is left as it is"
    on("c1").ensure(Link("alone", "br100", gateway=IPv4Interface("192.168.2.1/24")))
    assert addresses("c1", "br100") == ["192.168.2.1/24", "192.168.0.1/24"], "the one before is given up"
    assert "alias climate:alone 192.168.2.1/24\n" in said("c1", "ip", "link", "show", "br100")
    on("c1").unserve("alone")
    assert addresses("c1", "br100") == ["192.168.0.1/24"]
    assert on("c1").standing().served == set()


def test_a_gateway_of_version_6(on: On) -> None:
    served = Link("alone", "br100", gateway_v6=IPv6Interface("fd00::1/64"))
    for _ in range(2):
        on("c1").ensure(served)
        assert "fd00::1/64" in said("c1", "ip", "-6", "address", "show", "dev", "br100")
    on("c1").unserve("alone")
    assert "fd00::1/64" not in said("c1", "ip", "-6", "address", "show", "dev", "br100")


def test_a_host_is_no_neighbour_of_its_guests(on: On) -> None:
    on("c1").ensure(ALONE)
    on("c1").plug(guest(ALONE, "10.0.0.2/24", number=1).plug)
    shown = [said("c1", "ip", "-o", "address", "show", "dev", name) for name in ("br100", *on("c1").standing().plugs)]
    assert shown == ["", ""]


def test_what_a_host_lacks_is_said(on: On) -> None:
    assert on("c1").trouble() is None
    assert "no network namespace nowhere" in str(on("nowhere").trouble())
    with pytest.raises(NetworkError, match="No such file"):
        on("nowhere").ensure(ALONE)
    assert run("c1", "ip", "link", "show", "br100").returncode != 0
