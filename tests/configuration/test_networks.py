"""What the settings say about networks is read as it is meant, and what cannot be used is named at start-up."""

from ipaddress import IPv4Address, IPv4Network, IPv6Network
from pathlib import Path

import pytest

from climate.bootstrap import check
from climate.compute.network.allocation.broker_queue import BrokerQueue
from climate.compute.network.driver.recording import RecordingNetwork
from climate.compute.network.network_options import NetworkOptions
from climate.configuration.networks import network_drivers, options, queue
from climate.settings import SettingError, Settings


def settings(**variables: str) -> Settings:
    return Settings.from_env({f"CLIMATE_{name.upper()}": text for name, text in variables.items()})


def test_without_settings_they_are_the_defaults_but_for_a_name_server() -> None:
    found = options(Settings())
    assert found.flat_dns == (IPv4Address("8.8.4.4"),)
    assert found == NetworkOptions(flat_dns=found.flat_dns)


GIVEN = {
    "network_manager": ("vlan", "manager", "vlan"),
    "project_vlans": ("2000-2099", "project_vlans", range(2000, 2100)),
    "network_size": ("16", "network_size", 16),
    "network_mtu": ("1400", "mtu", 1400),
    "network_down_seconds": ("30", "down_seconds", 30),
    "network_call_seconds": ("5", "call_seconds", 5.0),
    "network_placement": ("fewest", "placement", "fewest"),
    "simple_max_networks": ("3", "max_networks", 3),
    "flat_network_bridge": ("br7", "flat_bridge", "br7"),
    "flat_interface": ("eth1", "flat_interface", "eth1"),
    "flat_network_dns": (
        "9.9.9.9, 1.1.1.1,",
        "flat_dns",
        (IPv4Address("9.9.9.9"), IPv4Address("1.1.1.1")),
    ),
    "flat_injected": ("false", "flat_injected", False),
    "vlan_interface": ("eth2", "vlan_interface", "eth2"),
    "vlan_start": ("7", "vlan_start", 7),
    "vpn_ip": ("192.0.2.1", "vpn_address", IPv4Address("192.0.2.1")),
    "vpn_start": ("5000", "vpn_start", 5000),
    "vpn_clients": ("3", "vpn_clients", 3),
    "vpn_image_id": ("i", "vpn_image", "i"),
    "vpn_flavor": ("m1.nano", "vpn_flavor", "m1.nano"),
    "fixed_range": ("172.16.0.0/12", "fixed_range", IPv4Network("172.16.0.0/12")),
    "dmz_cidr": ("10.128.0.0/24", "kept", IPv4Network("10.128.0.0/24")),
    "public_interface": ("eth0", "public_interface", "eth0"),
    "routing_source_ip": ("192.0.2.2", "source", IPv4Address("192.0.2.2")),
    "metadata_address": ("192.0.2.3:8775", "metadata", ("192.0.2.3", 8775)),
    "dhcp_domain": ("lab.example", "domain", "lab.example"),
    "dhcp_lease_time": ("300", "lease_seconds", 300),
    "fixed_ip_timeout": ("60", "timeout_seconds", 60),
    "force_dhcp_release": ("false", "force_release", False),
    "dns_server": ("9.9.9.9", "dns_servers", (IPv4Address("9.9.9.9"),)),
    "use_ipv6": ("true", "use_ipv6", True),
    "fixed_range_v6": ("fd12::/56", "range_v6", IPv6Network("fd12::/56")),
    "ipv6_backend": ("account_identifier", "ipv6_backend", "account_identifier"),
    "floating_range": ("192.0.2.0/26", "floating_range", IPv4Network("192.0.2.0/26")),
    "floating_cidr": ("192.0.2.0/24", "floating_cidr", IPv4Network("192.0.2.0/24")),
    "floating_pool": ("outside", "floating_pool", "outside"),
    "auto_assign_floating_ip": ("true", "auto_assign", True),
    "route_between_projects": ("true", "route_between_projects", True),
}
"""Setting -> its text, the option that it is, and what that is then."""


@pytest.mark.parametrize("name", GIVEN)
def test_each_setting_is_its_option(name: str) -> None:
    text, option, value = GIVEN[name]
    found = options(settings(**{name: text}))
    assert getattr(found, option) == value
    assert getattr(found, option) != getattr(options(Settings()), option)


@pytest.mark.parametrize(
    ("scheduler", "placement", "found"),
    [
        ("simple", "scheduler", "fewest"),
        ("filter", "scheduler", "first"),
        ("simple", "first", "first"),
        ("filter", "fewest", "fewest"),
    ],
)
def test_simple_places_networks_too_where_nothing_else_is_said(scheduler: str, placement: str, found: str) -> None:
    assert options(settings(scheduler=scheduler, network_placement=placement)).placement == found


def test_every_option_but_the_time_between_looks_can_be_set() -> None:
    assert {option for _, option, _ in GIVEN.values()} == set(NetworkOptions.__slots__) - {"look_seconds"}


def test_addresses_are_asked_of_hosts_only_where_that_is_set() -> None:
    assert queue(Settings()) is None
    assert isinstance(queue(settings(network_allocation="queue", redis_url="redis://127.0.0.1:1")), BrokerQueue)


@pytest.mark.parametrize(("processes", "queues"), [("1", ""), ("1", "events, network"), ("1", "network,compute")])
def test_a_worker_that_would_wait_for_itself_is_refused(processes: str, queues: str) -> None:
    with pytest.raises(SettingError, match="CLIMATE_WORKER_PROCESSES=1: a worker that starts leases would wait"):
        check(settings(network_allocation="queue", worker_processes=processes, worker_queues=queues))


@pytest.mark.parametrize(("processes", "queues"), [("2", ""), ("1", "network"), ("1", "events,compute")])
def test_a_worker_that_waits_for_others_is_not(processes: str, queues: str) -> None:
    check(settings(network_allocation="queue", worker_processes=processes, worker_queues=queues))
    check(settings(worker_processes="1"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("network_manager", "fancy"),
        ("network_driver", "none"),
        ("network_size", "4"),
        ("network_allocation", "guessed"),
        ("network_allocator", "not_installed"),
        ("network_call_seconds", "0"),
        ("network_size", "many"),
        ("vlan_start", "0"),
        ("vlan_start", "4095"),
        ("project_vlans", "many"),
        ("project_vlans", "200-100"),
        ("project_vlans", "4000-4095"),
        ("vpn_start", "65536"),
        ("flat_injected", "maybe"),
        ("flat_network_dns", "8.8.4.4,nobody"),
        ("flat_network_dns", "::1"),
        ("dns_server", "8.8.4.256"),
        ("vpn_ip", "here"),
        ("fixed_range", "10.0.0.1/8"),
        ("fixed_range", "10.0.0.0/33"),
        ("dmz_cidr", "fd00::/8"),
        ("routing_source_ip", "10.0.0.0/8"),
        ("metadata_address", "192.0.2.3"),
        ("metadata_address", "192.0.2.3:0"),
        ("metadata_address", "192.0.2.3:65536"),
        ("metadata_address", "somewhere:8775"),
        ("metadata_address", ":8775"),
        ("fixed_range_v6", "10.0.0.0/8"),
        ("fixed_range_v6", "fd00::/65"),
        ("ipv6_backend", "random"),
        ("floating_range", "192.0.2.1/24"),
        ("floating_range", "10.0.0.0/8"),
        ("floating_cidr", "outside"),
        ("flat_network_bridge", "a-bridge-with-a-long-name"),
        ("flat_network_bridge", "br 1"),
        ("flat_interface", "eth0; reboot"),
        ("vlan_interface", "-eth0"),
        ("public_interface", "eth0\n"),
        ("dhcp_domain", "two words"),
        ("dhcp_domain", "a..b"),
        ("dhcp_domain", "-"),
        ("dhcp_domain", "x" * 64),
    ],
)
def test_what_cannot_be_used_is_named(name: str, text: str) -> None:
    with pytest.raises(SettingError, match=f"CLIMATE_{name.upper()}="):
        check(settings(**{name: text}))


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"floating_range": "192.0.2.0/24", "floating_cidr": "192.0.2.0/26"}, "CLIMATE_FLOATING_RANGE=192.0.2.0/24"),
        ({"network_manager": "vlan", "network_size": "16", "vpn_clients": "12"}, "CLIMATE_VPN_CLIENTS=12"),
    ],
)
def test_settings_that_do_not_go_together_are_named(given: dict[str, str], named: str) -> None:
    with pytest.raises(SettingError, match=named):
        check(settings(**given))


def test_each_host_has_one_driver_with_a_folder_of_its_own(tmp_path: Path) -> None:
    found = network_drivers(settings(home=str(tmp_path), network_driver="recording"))
    own, other = found.on(None), found.on("c1")
    assert found.on("c1") is other
    assert isinstance(own, RecordingNetwork)
    assert isinstance(other, RecordingNetwork)
    assert (own.folder, other.folder) == (tmp_path / "networks" / "host", tmp_path / "networks" / "c1")
