"""Address translation, by both ways to do it, on a host with two projects' networks and a world outside."""

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest

from climate.compute.errors import NetworkError
from climate.compute.linux import netns
from climate.compute.network.driver import Forward, Link, Nat, Vpn
from climate.compute.network.linux.nat import IptablesNat, NftNat
from climate.sandbox.topology import Lab
from tests.netlab.bridge_bench import HOST, PATIENCE, SHORT, Bench, connected, listen, refused, seen_as, until
from tests.netlab.guests import reaches, run, said

pytestmark = pytest.mark.netlab("nft", "iptables", "conntrack", "ping")

OUTSIDE, WORLD, PUBLIC = "outside", "203.0.113.254", "203.0.113.1"
F1, F2 = IPv4Address("203.0.113.65"), IPv4Address("203.0.113.66")
X1, X2, X3 = IPv4Address("10.0.0.3"), IPv4Address("10.0.0.4"), IPv4Address("10.1.0.3")
NAT = Nat(IPv4Network("10.0.0.0/8"), interface="eth0", bridges=("br100", "br200"))

Way = NftNat | IptablesNat


@pytest.fixture(params=[NftNat, IptablesNat], ids=["nft", "iptables"])
def nat(request: pytest.FixtureRequest, lab: Lab) -> Iterator[Way]:
    assert lab.network == HOST
    made: Way = request.param(HOST)
    yield made
    made.clear()
    left = said(HOST, "ip", "address", "show") + said(HOST, "nft", "list", "ruleset")
    said(HOST, "nft", "flush", "ruleset")
    assert "climate" not in left
    assert "nova-" not in left
    assert "203.0.113.6" not in left
    assert "169.254.169.254" not in left


@pytest.fixture
def bench(lab: Lab) -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


@pytest.fixture
def red(bench: Bench) -> Link:
    return bench.bridge("br100", "10.0.0.1/24")


@pytest.fixture
def blue(bench: Bench) -> Link:
    return bench.bridge("br200", "10.1.0.1/24")


@pytest.fixture
def one(bench: Bench, red: Link) -> str:
    return bench.guest(red, f"{X1}/24")


@pytest.fixture
def two(bench: Bench, red: Link) -> str:
    return bench.guest(red, f"{X2}/24")


@pytest.fixture
def other(bench: Bench, blue: Link) -> str:
    """A guest of another project."""
    return bench.guest(blue, f"{X3}/24")


def forward(floating: IPv4Address, fixed: IPv4Address) -> Forward:
    return Forward(floating, fixed, "eth0")


def test_a_floating_address_is_the_servers_in_both_directions(nat: Way, one: str) -> None:
    nat.apply(replace(NAT, forwards=(forward(F1, X1),)))
    assert seen_as(OUTSIDE, str(F1), one, 8080) == WORLD
    assert seen_as(one, WORLD, OUTSIDE, 8081) == str(F1)
    assert seen_as(HOST, str(F1), one, 8080), "the network host reaches it too"


def test_a_floating_address_that_is_taken_away_is_gone_at_once(nat: Way, one: str) -> None:
    nat.apply(replace(NAT, forwards=(forward(F1, X1),)))
    with listen(one, 8080) as server, listen(OUTSIDE, 8081) as beyond:
        inwards = connected(OUTSIDE, str(F1), server, 8080)
        outwards = connected(one, WORLD, beyond, 8081)
        nat.apply(NAT)
        assert refused(OUTSIDE, str(F1), 8080)
        for here, there, _ in (inwards, outwards):
            with here, there:
                assert not _hears(here, there, SHORT)
    assert str(F1) not in said(HOST, "ip", "address", "show", "eth0")
    assert not [line for line in said(HOST, "conntrack", "-L").splitlines() if str(F1) in line and str(X1) in line]


def _hears(here: socket.socket, there: socket.socket, patience: float = PATIENCE) -> bool:
    there.settimeout(patience)
    try:
        here.sendall(b"still there?")
        return there.recv(64) == b"still there?"
    except OSError:
        return False


def test_what_goes_on_survives_that_all_is_applied_again(nat: Way, one: str) -> None:
    wanted = replace(NAT, forwards=(forward(F1, X1),))
    nat.apply(wanted)
    with listen(one, 8080) as server:
        here, there, _ = connected(OUTSIDE, str(F1), server, 8080)
        with here, there:
            type(nat)(HOST).apply(replace(wanted, forwards=(*wanted.forwards, forward(F2, X2))))
            assert _hears(here, there)


def test_a_floating_address_that_leads_elsewhere_takes_no_connection_with_it(nat: Way, one: str, two: str) -> None:
    nat.apply(replace(NAT, forwards=(forward(F1, X1),)))
    with listen(one, 8080) as server:
        here, there, _ = connected(OUTSIDE, str(F1), server, 8080)
        nat.apply(replace(NAT, forwards=(forward(F1, X2),)))
        with here, there:
            assert not _hears(here, there, SHORT)
    assert seen_as(OUTSIDE, str(F1), two, 8080) == WORLD


def test_servers_without_a_floating_address_share_one(nat: Way, one: str) -> None:
    nat.apply(NAT)
    assert seen_as(one, WORLD, OUTSIDE, 8081) == PUBLIC
    said(HOST, "ip", "address", "add", "203.0.113.9/24", "dev", "eth0")
    nat.apply(replace(NAT, source=IPv4Address("203.0.113.9")))
    assert seen_as(one, WORLD, OUTSIDE, 8081) == "203.0.113.9"
    said(HOST, "ip", "address", "delete", "203.0.113.9/24", "dev", "eth0")


def test_nothing_comes_in_from_outside_but_from_where_servers_are_known(nat: Way, one: str) -> None:
    said(OUTSIDE, "ip", "route", "add", "10.0.0.0/8", "via", PUBLIC)
    try:
        nat.apply(NAT)
        with listen(one, 8080):
            assert refused(OUTSIDE, str(X1), 8080)
        nat.apply(replace(NAT, kept=IPv4Network("203.0.113.0/24")))
        assert seen_as(OUTSIDE, str(X1), one, 8080) == WORLD
        assert seen_as(one, WORLD, OUTSIDE, 8081) == str(X1), "and there they have their own addresses"
    finally:
        said(OUTSIDE, "ip", "route", "delete", "10.0.0.0/8")


def test_projects_reach_each_other_only_where_that_is_wanted(nat: Way, one: str, other: str) -> None:
    nat.apply(NAT)
    with listen(other, 8080), listen(HOST, 5353, "10.1.0.1"):
        assert refused(one, str(X3), 8080)
        assert refused(one, "10.1.0.1", 5353), "nor what the host serves to the other project"
    assert reaches(one, "10.0.0.1")
    nat.apply(replace(NAT, between=(frozenset({"br100", "br200"}),)))
    assert seen_as(one, str(X3), other, 8080) == str(X1)
    assert seen_as(other, str(X1), one, 8080) == str(X3)


def test_a_floating_address_is_for_everybody(nat: Way, one: str, two: str, other: str) -> None:
    nat.apply(replace(NAT, forwards=(forward(F1, X1),)))
    assert seen_as(other, str(F1), one, 8080)
    assert seen_as(two, str(F1), one, 8080), "by way of the host, to the same network"


def test_metadata_is_asked_for_with_the_fixed_address(nat: Way, one: str) -> None:
    nat.apply(replace(NAT, metadata=("192.0.2.1", 8773)))
    with listen(HOST, 8773) as server:
        here, there, seen = connected(one, "169.254.169.254", server, 80)
        here.close()
        there.close()
    assert seen == str(X1)


def test_cloudpipe_is_reached_by_its_port(nat: Way, one: str) -> None:
    nat.apply(replace(NAT, vpns=(Vpn(X1, IPv4Address(PUBLIC), 1000),)))

    def opened() -> socket.socket:
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    with netns.inside(one, opened) as server, netns.inside(OUTSIDE, opened) as client:
        server.bind((str(X1), 1194))
        server.settimeout(PATIENCE)
        client.sendto(b"hello", (PUBLIC, 1000))
        assert server.recvfrom(64)[0] == b"hello"


def test_what_others_have_created_stays(nat: Way, one: str) -> None:
    said(HOST, "ip", "address", "add", f"{F2}/32", "dev", "eth0")
    said(HOST, "nft", "add table ip foreign; add chain ip foreign one; add rule ip foreign one counter")
    said(HOST, "iptables", "-A", "FORWARD", "-s", "198.51.100.0/24", "-j", "DROP")
    nat.apply(replace(NAT, forwards=(forward(F1, X1), forward(F2, X1))))
    with listen(one, 8080) as server:
        here, there, _ = connected(OUTSIDE, str(F2), server, 8080)
        nat.apply(replace(NAT, forwards=(forward(F1, X1), forward(F2, X1))))
        with here, there:
            assert _hears(here, there), "somebody else's address is used where it is"
    nat.apply(NAT)
    nat.clear()
    assert f"{F2}/32" in said(HOST, "ip", "address", "show", "eth0")
    assert "table ip foreign" in said(HOST, "nft", "list", "ruleset")
    assert "-A FORWARD -s 198.51.100.0/24 -j DROP" in said(HOST, "iptables-save")
    said(HOST, "ip", "address", "delete", f"{F2}/32", "dev", "eth0")


def test_what_was_half_done_and_what_is_too_much_is_put_right(nat: Way, one: str) -> None:
    nat.apply(replace(NAT, forwards=(forward(F1, X1), forward(F2, X1))))
    said(HOST, "ip", "address", "delete", f"{F1}/32", "dev", "eth0")
    said(HOST, "nft", "flush", "ruleset")
    nat.apply(replace(NAT, forwards=(forward(F1, X1),)))
    assert seen_as(OUTSIDE, str(F1), one, 8080) == WORLD
    assert str(F2) not in said(HOST, "ip", "address", "show", "eth0")


def test_the_same_again_changes_nothing(nat: Way, one: str) -> None:
    wanted = replace(NAT, forwards=(forward(F1, X1),), metadata=("192.0.2.1", 8773))
    nat.apply(wanted)
    before = _state()
    nat.apply(wanted)
    assert _state() == before


def _state() -> list[str]:
    """Rules, interfaces and addresses: what was set, not what the kernel comes to by itself (carrier, link-local)."""
    rules = said(HOST, "iptables-save").splitlines() + said(HOST, "ip6tables-save").splitlines()
    table = run(HOST, "nft", "-s", "list", "table", "inet", "climate").stdout
    links = json.loads(said(HOST, "ip", "-json", "address", "show"))
    return [*(line for line in rules if line.startswith("-A")), table, *(_as_set(link) for link in links)]


def _as_set(link: dict[str, Any]) -> str:
    """An interface with its master and its addresses, as somebody set them."""
    held = [
        f"{address['local']}/{address['prefixlen']} {address.get('label')}"
        for address in link["addr_info"]
        if (address["family"], address["scope"]) != ("inet6", "link")
    ]
    return f"{link['ifname']} {link['address']} mtu {link['mtu']} in {link.get('master')}: {', '.join(held)}"


def test_an_interface_that_is_not_there_is_named_and_the_rest_is_done(nat: Way, one: str) -> None:
    wrong = replace(forward(F2, X2), interface="eth7")
    with pytest.raises(NetworkError, match=rf"{F2} cannot be added to eth7: ip: Cannot find device"):
        nat.apply(replace(NAT, forwards=(wrong, forward(F1, X1))))
    assert seen_as(OUTSIDE, str(F1), one, 8080) == WORLD
    assert run(HOST, "ip", "address", "show", "eth7").returncode != 0


@pytest.mark.parametrize("name", ["eth0 dev lo", "enx00112233445"])
def test_a_name_that_no_address_can_be_put_on_is_refused(nat: Way, lab: Lab, name: str) -> None:
    with pytest.raises(NetworkError, match=f"{F1} cannot be added to|is not a valid interface name"):
        nat.apply(replace(NAT, forwards=(replace(forward(F1, X1), interface=name),)))


def test_neighbours_hear_who_has_an_address_now(nat: Way, lab: Lab) -> None:
    said(OUTSIDE, "ip", "neighbour", "replace", str(F1), "lladdr", "02:00:00:00:00:99", "dev", "eth0", "nud", "stale")
    nat.apply(replace(NAT, forwards=(forward(F1, X1),)))
    mac = _mac()
    until(lambda: mac in said(OUTSIDE, "ip", "neighbour", "show", str(F1)), "word of the new neighbour")


def _mac() -> str:
    words = said(HOST, "ip", "-oneline", "link", "show", "eth0").split()
    return words[words.index("link/ether") + 1]
