"""The command and the files of a DHCP server (cloud.md D.8; vectors NW-16 and NW-17)."""

from dataclasses import replace
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import Path

import pytest

from climate.compute.errors import NetworkError
from climate.compute.network.driver import Dhcp, Entry, Link
from climate.compute.network.render import dnsmasq

LINK = Link("net-1", "br100", gateway=IPv4Interface("10.0.0.1/24"))
DHCP = Dhcp(IPv4Network("10.0.0.0/24"), IPv4Address("10.0.0.2"), "novalocal", 120)
ENTRY = Entry("02:16:3e:33:44:55", IPv4Address("10.0.0.3"), "vm1", "2")
FILES = dnsmasq.Files(Path("/networks"), "net-1")


def entry(vif: int, *, routes: bool) -> Entry:
    return Entry(f"02:16:3e:00:00:{vif:02x}", IPv4Address(f"10.0.0.{vif + 2}"), f"vm{vif}", str(vif), routes)


def test_the_command_is_the_one_of_the_source_and_what_several_servers_on_a_host_need() -> None:
    command = dnsmasq.command(LINK, DHCP, FILES)
    assert command[:4] == ("dnsmasq", "--strict-order", "--bind-interfaces", "--conf-file=")
    assert set(command) >= {
        "--domain=novalocal",
        "--pid-file=/networks/net-1/pid",
        "--listen-address=10.0.0.1",
        "--except-interface=lo",
        "--dhcp-range=10.0.0.2,static,120s",
        "--dhcp-lease-max=256",
        "--dhcp-hostsfile=/networks/net-1/hosts",
        "--dhcp-optsfile=/networks/net-1/opts",
        "--dhcp-script=/networks/script",
        "--leasefile-ro",
        "--interface=br100",
        "--dhcp-authoritative",
        "--dhcp-ignore-clid",
        "--local=/novalocal/",
    }
    assert not [part for part in command if part.startswith(("--server", "--dhcp-option"))]


def test_other_name_servers_the_size_of_packets_and_a_file_of_the_operators_are_reported() -> None:
    servers = (IPv4Address("8.8.4.4"), IPv4Address("8.8.8.8"))
    command = dnsmasq.command(replace(LINK, mtu=1450), replace(DHCP, servers=servers), FILES, "/etc/more.conf")
    assert set(command) >= {
        *("--server=8.8.4.4", "--server=8.8.8.8", "--dhcp-option-force=26,1450", "--conf-file=/etc/more.conf")
    }


def test_a_bridge_without_an_address_cannot_have_a_server() -> None:
    with pytest.raises(NetworkError, match="br100 has no address"):
        dnsmasq.command(replace(LINK, gateway=None), DHCP, FILES)


@pytest.mark.parametrize("name", ["", "br 100", "br100,br200", "-i", "a" * 16, "br100\n"])
def test_a_name_that_is_not_an_interfaces_is_refused(name: str) -> None:
    with pytest.raises(NetworkError, match="is not a valid interface name"):
        dnsmasq.command(replace(LINK, bridge=name), DHCP, FILES)


def test_a_line_of_the_hosts_file() -> None:
    assert dnsmasq.hosts([ENTRY], "novalocal") == "02:16:3e:33:44:55,vm1.novalocal,10.0.0.3\n"


def test_who_is_given_no_router_is_tagged() -> None:
    line = dnsmasq.hosts([replace(ENTRY, routes=False)], "novalocal")
    assert line == "02:16:3e:33:44:55,vm1.novalocal,10.0.0.3,net:NW-2\n"


@pytest.mark.parametrize("name", ["", "two words", "a,b", "vm1\n02:16:3e:00:00:01,10.0.0.9", "-vm", "vm.other", "é"])
def test_a_name_that_dns_cannot_have_is_left_out(name: str) -> None:
    odd = replace(ENTRY, hostname=name)
    assert dnsmasq.hosts([odd], "novalocal") == "02:16:3e:33:44:55,10.0.0.3\n"
    assert dnsmasq.leases([odd], 120) == "120 02:16:3e:33:44:55 10.0.0.3 * *\n"


def test_nw_16_one_server_with_three_interfaces() -> None:
    assert dnsmasq.options([entry(2, routes=True), entry(5, routes=False)]) == "NW-5,3\n"


def test_nw_16_two_servers_in_one_network() -> None:
    held = [entry(0, routes=True), entry(3, routes=False), entry(4, routes=False)]
    assert dnsmasq.options(held) == "NW-3,3\nNW-4,3\n"


def test_routes_come_with_the_default_one_where_there_is_one() -> None:
    routes = ((IPv4Network("10.9.0.0/24"), IPv4Address("10.0.0.4")),)
    dhcp = Dhcp(
        IPv4Network("10.0.0.0/24"), IPv4Address("10.0.0.2"), "x", 120, routes=routes, router=IPv4Address("10.0.0.1")
    )
    assert dnsmasq.options([entry(1, routes=True), entry(3, routes=False)], dhcp) == (
        "121,10.9.0.0/24,10.0.0.4,0.0.0.0/0,10.0.0.1\nNW-3,3\nNW-3,121,10.9.0.0/24,10.0.0.4\n"
    )


def test_a_tag_holds_an_id_and_nothing_else() -> None:
    with pytest.raises(NetworkError, match="not an interface's id"):
        dnsmasq.options([replace(ENTRY, vif_id="5,3\nNW-6", routes=False)])


def test_nw_17_a_lease() -> None:
    since = int(datetime(2011, 7, 15, tzinfo=UTC).timestamp())
    assert dnsmasq.leases([replace(ENTRY, since=since)], 120) == "1310688120 02:16:3e:33:44:55 10.0.0.3 vm1 *\n"
    unnamed = replace(ENTRY, since=since, hostname="")
    assert dnsmasq.leases([unnamed], 120) == "1310688120 02:16:3e:33:44:55 10.0.0.3 * *\n"


def test_what_a_server_that_starts_anew_still_takes_for_granted() -> None:
    before = dnsmasq.leases([ENTRY, entry(9, routes=True)], 120)
    assert dnsmasq.unassigned_lines(before, [ENTRY]) == "120 02:16:3e:00:00:09 10.0.0.11 vm9 *\n"
    assert dnsmasq.unassigned_lines("", [ENTRY]) == ""


def test_tags_are_seen_in_a_file_of_hosts() -> None:
    assert not dnsmasq.tagged(dnsmasq.hosts([ENTRY], "novalocal"))
    assert dnsmasq.tagged(dnsmasq.hosts([ENTRY, entry(9, routes=False)], "novalocal"))
