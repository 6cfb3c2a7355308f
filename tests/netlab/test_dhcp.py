"""DHCP and DNS for guests: real servers, real clients, and what becomes of the servers."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from climate.compute.errors import NetworkError
from climate.compute.linux import processes
from climate.compute.network.driver import Dhcp, DhcpAction, DhcpEvent, Entry, Link
from climate.compute.network.linux.daemons.daemon import MARK
from climate.compute.network.linux.daemons.dhcp import DhcpServers
from climate.compute.network.render import dnsmasq
from climate.sandbox.topology import Lab
from tests.netlab.bridge_bench import HOST, Bench, mac_of, until
from tests.netlab.dhcp_client import NOT_THERE, REFUSED, ask, client, lease, renewals
from tests.netlab.guests import reaches, said

pytestmark = pytest.mark.netlab("dnsmasq", "udhcpc", "ping")


NOW = int(time.time()) + 3600
"""A lease that a server takes for granted when it starts is one that has not run out, however late its test begins."""


def entry(number: int, *, routes: bool = True, subnet: int = 0) -> Entry:
    return Entry(
        mac_of(number), IPv4Address(f"10.{subnet}.0.{number + 2}"), f"vm{number}", f"vif-{number}", routes, NOW
    )


def dhcp(*entries: Entry, subnet: int = 0) -> Dhcp:
    network = IPv4Network(f"10.{subnet}.0.0/24")
    return Dhcp(network, network[2], "novalocal", 120, entries)


@pytest.fixture
def bench(lab: Lab) -> Iterator[Bench]:
    assert lab.network == HOST
    made = Bench()
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "dhcp"


@pytest.fixture
def servers(folder: Path) -> Iterator[DhcpServers]:
    made = DhcpServers(HOST, folder)
    yield made
    for network_id in made.running():
        made.stop(network_id)
    made.forget([event.key for event in made.happened()])
    assert not folder.exists() or not list(folder.iterdir())


@pytest.fixture
def link(bench: Bench) -> Link:
    return bench.bridge("br100", "10.0.0.1/24")


def begin(servers: DhcpServers, link: Link, *entries: Entry) -> None:
    """A server that has heard of these addresses since it began: it takes none of them for one that is leased."""
    servers.start(link, dhcp())
    servers.start(link, dhcp(*entries))


def process(folder: Path, network_id: str = "net-br100") -> int:
    return int((folder / network_id / "pid").read_text())


def told(servers: DhcpServers, what: DhcpAction, address: IPv4Address) -> DhcpEvent:
    """What a server told of an address, waited for."""

    def found() -> list[DhcpEvent]:
        return [event for event in servers.happened() if (event.what, event.address) == (what, address)]

    until(lambda: bool(found()), f"{what} of {address}")
    return found()[-1]


def test_a_guest_gets_the_address_that_is_its_own(
    servers: DhcpServers, link: Link, bench: Bench, tmp_path: Path
) -> None:
    begin(servers, link, entry(1), entry(2))
    guest = bench.guest(link, number=2)
    given = lease(guest, tmp_path)
    assert given["ip"] == "10.0.0.4"
    assert given["router"] == given["dns"] == "10.0.0.1"
    assert (given["domain"], given["hostname"], given["mtu"]) == ("novalocal", "vm2", "")
    assert reaches(guest, "10.0.0.1")
    event = told(servers, DhcpAction.LEASED, IPv4Address("10.0.0.4"))
    assert (event.network_id, event.mac) == (link.network_id, mac_of(2))
    servers.forget([event.key])
    assert event.key not in {each.key for each in servers.happened()}


def test_a_stranger_gets_nothing(servers: DhcpServers, link: Link, bench: Bench, tmp_path: Path) -> None:
    begin(servers, link, entry(1))
    assert lease(bench.guest(link, number=9), tmp_path, tries=2) == {}
    assert servers.happened() == []


def test_an_interface_that_is_not_its_servers_first_is_given_no_router(
    servers: DhcpServers, link: Link, bench: Bench, tmp_path: Path
) -> None:
    servers.start(link, dhcp(entry(1), entry(2, routes=False)))
    assert lease(bench.guest(link, number=1), tmp_path)["router"] == "10.0.0.1"
    given = lease(bench.guest(link, number=2), tmp_path)
    assert (given["ip"], given["router"]) == ("10.0.0.4", "")


def test_the_size_of_packets_is_reported(servers: DhcpServers, bench: Bench, tmp_path: Path) -> None:
    link = bench.bridge("br100", "10.0.0.1/24", mtu=1450)
    servers.start(link, dhcp(entry(1)))
    assert lease(bench.guest(link, number=1), tmp_path)["mtu"] == "1450"


def test_one_that_is_added_is_served_by_the_same_process(
    servers: DhcpServers, link: Link, bench: Bench, folder: Path, tmp_path: Path
) -> None:
    servers.start(link, dhcp(entry(1)))
    before = process(folder)
    servers.start(link, dhcp(entry(1), entry(2)))
    assert lease(bench.guest(link, number=2), tmp_path)["ip"] == "10.0.0.4"
    servers.start(link, dhcp(entry(1), entry(3, routes=False)))
    assert lease(bench.guest(link, number=3), tmp_path)["router"] == ""
    assert process(folder) == before
    assert servers.running() == {link.network_id}


def test_a_server_that_knows_of_tags_survives_what_changes(
    servers: DhcpServers, link: Link, bench: Bench, tmp_path: Path
) -> None:
    begin(servers, link, entry(1, routes=False))
    lease(bench.guest(link, number=1), tmp_path)
    told(servers, DhcpAction.LEASED, IPv4Address("10.0.0.3"))
    servers.start(link, dhcp(entry(2)))
    assert lease(bench.guest(link, number=2), tmp_path)["ip"] == "10.0.0.4"
    assert servers.running() == {link.network_id}
    servers.release(link, entry(1))
    told(servers, DhcpAction.RELEASED, IPv4Address("10.0.0.3"))


def test_names_are_known_to_their_own_network(servers: DhcpServers, link: Link, bench: Bench, tmp_path: Path) -> None:
    blue = bench.bridge("br200", "10.1.0.1/24")
    servers.start(link, dhcp(entry(1), entry(2)))
    servers.start(blue, dhcp(replace(entry(3, subnet=1), hostname="secret"), subnet=1))
    guest = bench.guest(link, number=1)
    lease(guest, tmp_path)
    lease(bench.guest(blue, number=3), tmp_path)
    assert ask(guest, "10.0.0.1", "vm1.novalocal") == (0, ["10.0.0.3"])
    assert ask(guest, "10.0.0.1", "vm2.novalocal") == (0, ["10.0.0.4"]), "also of one that did not ask yet"
    assert ask(guest, "10.0.0.1", "vm1") == (0, ["10.0.0.3"])
    assert ask(guest, "10.0.0.1", "3.0.0.10.in-addr.arpa", kind=12) == (0, ["vm1.novalocal"])
    assert ask(guest, "10.0.0.1", "secret.novalocal") == (NOT_THERE, [])
    assert ask(guest, "10.0.0.1", "climate.example") == (REFUSED, []), "nobody else is asked"


def test_other_names_are_asked_of_the_servers_that_are_given(
    servers: DhcpServers, link: Link, bench: Bench, tmp_path: Path
) -> None:
    """The other server is that of a second network, whose domain is another one."""
    blue = bench.bridge("br200", "10.1.0.1/24")
    far = replace(dhcp(entry(3, subnet=1), subnet=1), domain="far.example")
    servers.start(blue, far)
    servers.start(link, replace(dhcp(entry(1)), servers=(IPv4Address("10.1.0.1"),)))
    guest = bench.guest(link, number=1)
    lease(guest, tmp_path)
    assert ask(guest, "10.0.0.1", "vm3.far.example") == (0, ["10.1.0.5"])
    assert ask(guest, "10.0.0.1", "vm3.novalocal") == (NOT_THERE, []), "of the own domain nobody else knows more"


def test_an_address_that_is_given_back_for_its_client(
    servers: DhcpServers, link: Link, bench: Bench, tmp_path: Path
) -> None:
    begin(servers, link, entry(1), entry(2))
    lease(bench.guest(link, number=1), tmp_path)
    told(servers, DhcpAction.LEASED, IPv4Address("10.0.0.3"))
    servers.start(link, dhcp(entry(2)))
    servers.release(link, entry(1))
    assert told(servers, DhcpAction.RELEASED, IPv4Address("10.0.0.3")).mac == mac_of(1)
    order = [event.what for event in servers.happened() if event.address == IPv4Address("10.0.0.3")]
    assert (order[0], order[-1]) == (DhcpAction.LEASED, DhcpAction.RELEASED)


def test_one_that_is_held_on_to_is_announced_again_when_it_is_renewed(
    servers: DhcpServers, link: Link, bench: Bench, tmp_path: Path
) -> None:
    """With a second server on the host, which hears nothing of what is sent to the first."""
    begin(servers, link, entry(1))
    blue = bench.bridge("br200", "10.1.0.1/24")
    servers.start(blue, dhcp(subnet=1))
    listening = said(HOST, "ss", "-lun")
    assert "%br100:67" in listening
    assert "%br200:67" in listening
    with client(bench.guest(link, number=1), tmp_path) as held:
        try:
            servers.forget([told(servers, DhcpAction.LEASED, IPv4Address("10.0.0.3")).key])
            until(lambda: bool(list(tmp_path.glob("*.told"))), "the client's own word of it")
            until(lambda: bool(_renewed(held, tmp_path) and servers.happened()), "a lease that lasts a second longer")
        finally:
            held.terminate()
    assert {each.what for each in servers.happened()} == {DhcpAction.RENEWED}


def _renewed(held: subprocess.Popen[bytes], folder: Path) -> int:
    """How often the client has heard that it may go on, after it has asked once more."""
    before = renewals(folder)
    held.send_signal(signal.SIGUSR1)
    until(lambda: renewals(folder) > before, "renewal")
    return renewals(folder)


def test_a_service_that_starts_anew_finds_its_servers_and_disturbs_none(
    servers: DhcpServers, link: Link, folder: Path
) -> None:
    servers.start(link, dhcp(entry(1)))
    before = process(folder)
    other = DhcpServers(HOST, folder)
    assert other.running() == {link.network_id}
    other.start(link, dhcp(replace(entry(1), since=1000)))
    assert process(folder) == before
    other.start(link, replace(dhcp(entry(1)), lease_seconds=60))
    assert process(folder) != before, "what its command says cannot be told it otherwise"


def test_a_server_that_was_killed_is_started_again(
    servers: DhcpServers, link: Link, bench: Bench, folder: Path, tmp_path: Path
) -> None:
    servers.start(link, dhcp(entry(1)))
    first = processes.of(process(folder))
    assert first is not None
    os.kill(first.number, signal.SIGKILL)
    until(lambda: servers.running() == frozenset(), "the end of the server")
    servers.start(link, dhcp(entry(1)))
    assert servers.running() == {link.network_id}
    assert lease(bench.guest(link, number=1), tmp_path)["ip"] == "10.0.0.3"


def test_a_server_without_its_pid_file_is_not_left_beside_the_new_one(
    servers: DhcpServers, link: Link, folder: Path
) -> None:
    servers.start(link, dhcp(entry(1)))
    first = processes.of(process(folder))
    (folder / link.network_id / "pid").unlink()
    servers.start(link, dhcp(entry(1)))
    assert processes.state(first) is None
    assert servers.running() == {link.network_id}


def test_files_that_were_changed_and_not_read_are_read(
    servers: DhcpServers, link: Link, bench: Bench, folder: Path, tmp_path: Path
) -> None:
    """As they are when the service is killed in the middle."""
    servers.start(link, dhcp(entry(1)))
    home = folder / link.network_id
    (home / "stale").touch()
    (home / "hosts").write_text(dnsmasq.hosts([entry(1), entry(2)], "novalocal"))
    servers.start(link, dhcp(entry(1), entry(2)))
    assert lease(bench.guest(link, number=2), tmp_path)["ip"] == "10.0.0.4"
    assert not (home / "stale").exists()


def test_a_bridge_that_was_recreated_gets_a_new_server(
    servers: DhcpServers, link: Link, bench: Bench, folder: Path, tmp_path: Path
) -> None:
    servers.start(link, dhcp(entry(1)))
    before = process(folder)
    said(HOST, "ip", "link", "delete", "br100")
    again = bench.bridge("br100", "10.0.0.1/24")
    servers.start(again, dhcp(entry(1)))
    assert process(folder) != before
    assert lease(bench.guest(again, number=1), tmp_path)["ip"] == "10.0.0.3"


def test_nothing_is_left_of_a_server_that_is_stopped(servers: DhcpServers, link: Link, folder: Path) -> None:
    servers.start(link, dhcp(entry(1)))
    family = list(processes.carrying({MARK: str(folder / link.network_id)}))
    assert len(family) >= 2, "the server and what calls its script"
    for _ in range(2):
        servers.stop(link.network_id)
    assert [pid for pid in family if processes.state(pid)] == []
    servers.forget([event.key for event in servers.happened()])
    assert list(folder.iterdir()) == []
    assert servers.running() == frozenset()


def test_what_cannot_be_served_is_said(servers: DhcpServers, link: Link, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="no interface br999"):
        servers.start(replace(link, bridge="br999"), dhcp(entry(1)))
    with pytest.raises(NetworkError, match=r"dnsmasq: .*bad dhcp-range"):
        servers.start(link, replace(dhcp(entry(1)), lease_seconds=-1))
    with pytest.raises(NetworkError, match="could not be released on br999"):
        servers.release(replace(link, bridge="br999"), entry(1))
    assert servers.running() == frozenset()
    servers.stop(link.network_id)


def test_two_servers_of_one_name_and_names_that_dns_cannot_have_disturb_nobody(
    servers: DhcpServers, link: Link, bench: Bench, tmp_path: Path
) -> None:
    odd = [replace(entry(number), hostname=name) for number, name in enumerate(("same", "same", "a b,c\n", ""), 1)]
    servers.start(link, dhcp(*odd))
    assert [lease(bench.guest(link, number=number), tmp_path)["ip"] for number in (1, 2, 3, 4)] == [
        *("10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6")
    ]
