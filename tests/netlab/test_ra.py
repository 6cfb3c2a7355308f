"""Router advertisements: addresses that guests make themselves, and what becomes of the program."""

import json
import os
import signal
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Address, IPv6Network
from pathlib import Path

import pytest

from climate.compute.errors import NetworkError
from climate.compute.linux import netns, processes
from climate.compute.network.driver import Link, Nat
from climate.compute.network.linux.daemons.daemon import MARK
from climate.compute.network.linux.daemons.radvd import RouterAdverts
from climate.compute.network.linux.nat import IptablesNat, NftNat
from climate.sandbox.topology import Lab
from tests.netlab.bridge_bench import HOST, Bench, until
from tests.netlab.guests import reaches, said, silent

pytestmark = pytest.mark.netlab("radvd", "ping")

PREFIX = IPv6Network("fd00:0:0:1::/64")
OTHER = IPv6Network("fd00:0:0:2::/64")


@pytest.fixture
def bench(lab: Lab) -> Iterator[Bench]:
    assert lab.network == HOST
    made = Bench()
    yield made
    made.close()


@pytest.fixture
def adverts(tmp_path: Path) -> Iterator[RouterAdverts]:
    made = RouterAdverts(HOST, tmp_path / "ra")
    yield made
    for network_id in made.running():
        made.stop(network_id)


@pytest.fixture
def link(bench: Bench) -> Link:
    return bench.bridge("br100", "10.0.0.1/24", "fd00:0:0:1::1/64")


def made_itself(guest: str) -> list[IPv6Address]:
    """The addresses that a guest has by router advertisement."""
    rows = json.loads(said(guest, "ip", "-json", "-6", "address", "show", "dev", "eth0", "scope", "global"))
    found = [one for row in rows for one in row.get("addr_info", ())]
    return [IPv6Address(one["local"]) for one in found if one.get("dynamic") and not one.get("tentative")]


def test_a_guest_makes_its_address_of_its_mac_and_finds_its_way(
    adverts: RouterAdverts, link: Link, bench: Bench
) -> None:
    adverts.start(link, PREFIX)
    guest = bench.guest(link, number=0x45)
    until(lambda: made_itself(guest) == [IPv6Address("fd00:0:0:1:16:3eff:fe00:45")], "an address made of the MAC")
    until(lambda: "default via fe80::" in said(guest, "ip", "-6", "route", "show"), "a way out")
    assert reaches(guest, "fd00:0:0:1::1")


@pytest.mark.netlab("nft", "iptables", "conntrack")
@pytest.mark.parametrize("way", [NftNat, IptablesNat])
def test_projects_do_not_reach_each_other_by_ipv6_either(
    adverts: RouterAdverts, link: Link, bench: Bench, way: type[NftNat] | type[IptablesNat]
) -> None:
    blue = bench.bridge("br200", "10.1.0.1/24", "fd00:0:0:2::1/64")
    one, other = bench.guest(link, number=1), bench.guest(blue, number=2)
    nat = way(HOST)
    nat.apply(Nat(IPv4Network("10.0.0.0/8"), bridges=("br100", "br200")))
    adverts.start(link, PREFIX)
    adverts.start(blue, OTHER)
    until(lambda: bool(made_itself(one) and made_itself(other)), "addresses")
    assert silent(one, "fd00:0:0:2:16:3eff:fe00:2")
    assert silent(one, "fd00:0:0:2::1"), "nor the host's address on the other's bridge"
    assert reaches(one, "fd00:0:0:1::1")
    nat.apply(Nat(IPv4Network("10.0.0.0/8"), bridges=("br100", "br200"), between=(frozenset({"br100", "br200"}),)))
    assert reaches(one, "fd00:0:0:2:16:3eff:fe00:2")
    nat.clear()
    said(HOST, "nft", "flush", "ruleset")


def process(folder: Path) -> int:
    return int((folder / "ra" / "net-br100" / "pid").read_text())


def test_it_is_started_anew_only_for_something_new(adverts: RouterAdverts, link: Link, tmp_path: Path) -> None:
    adverts.start(link, PREFIX)
    first = process(tmp_path)
    again = RouterAdverts(HOST, tmp_path / "ra")
    assert again.running() == {"net-br100"}
    again.start(link, PREFIX)
    assert process(tmp_path) == first
    again.start(link, OTHER)
    assert process(tmp_path) != first
    second = process(tmp_path)
    os.kill(second, signal.SIGKILL)
    until(lambda: again.running() == frozenset(), "the end of the program")
    again.start(link, OTHER)
    assert again.running() == {"net-br100"}


def test_nothing_is_left_of_what_is_stopped(adverts: RouterAdverts, link: Link, tmp_path: Path) -> None:
    adverts.start(link, PREFIX)
    family = list(processes.carrying({MARK: str(tmp_path / "ra" / "net-br100")}))
    assert family
    for _ in range(2):
        adverts.stop("net-br100")
    assert [pid for pid in family if processes.state(pid)] == []
    assert list((tmp_path / "ra").iterdir()) == []


def test_a_host_that_has_its_own_address_by_advertisement_keeps_it(
    adverts: RouterAdverts, link: Link, bench: Bench
) -> None:
    netns.inside(HOST, lambda: Path("/proc/sys/net/ipv6/conf/all/forwarding").write_text("0"))
    adverts.start(link, PREFIX)
    read = "/proc/sys/net/ipv6/conf/eth0/accept_ra"
    assert netns.inside(HOST, lambda: Path(read).read_text().strip()) == "2"


def test_what_cannot_be_announced_is_said(adverts: RouterAdverts, link: Link) -> None:
    with pytest.raises(NetworkError, match="no interface br999"):
        adverts.start(Link("net-br999", "br999"), PREFIX)
    adverts.stop("net-br999")
    assert adverts.running() == frozenset()
