"""Settings of networks."""

import re
from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from typing import TypeVar

from climate.compute.errors import NetworkError
from climate.compute.network import floating_ips
from climate.compute.network.allocation import allocator
from climate.compute.network.allocation.queue import AllocationQueue
from climate.compute.network.driver import NetworkDriver
from climate.compute.network.driver.recording import RecordingNetwork
from climate.compute.network.driver.registry import DriverCache
from climate.compute.network.managers import vlan
from climate.compute.network.models import VLAN
from climate.compute.network.network_options import FEWEST, FIRST, NetworkOptions
from climate.compute.network.render import interface_names
from climate.settings import SettingError, Settings

T = TypeVar("T")

PREFIX_V6 = 64
"""Bits of each network's IPv6 prefix; guests derive the others (SLAAC)."""

ENOUGH_PROCESSES = 2
"""Minimum of worker processes: one waits for addresses while another answers."""

LABEL, LONGEST_DOMAIN = r"(?i)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", 253
"""A part of a domain's name, and its length (RFC 1123)."""


def options(settings: Settings) -> NetworkOptions:
    """Return the network options; SettingError names the invalid setting."""
    return replace(_options(settings), project_vlans=_vlans(settings.project_vlans))


def _options(settings: Settings) -> NetworkOptions:
    return NetworkOptions(
        manager=settings.network_manager,
        flat_bridge=_one("flat_network_bridge", settings.flat_network_bridge, _device) or NetworkOptions().flat_bridge,
        flat_interface=_one("flat_interface", settings.flat_interface, _device),
        flat_dns=_many("flat_network_dns", settings.flat_network_dns),
        flat_injected=settings.flat_injected,
        vlan_interface=_one("vlan_interface", settings.vlan_interface, _device),
        vlan_start=settings.vlan_start,
        network_size=settings.network_size,
        vpn_address=_one("vpn_ip", settings.vpn_ip, IPv4Address),
        vpn_start=settings.vpn_start,
        vpn_clients=settings.vpn_clients,
        vpn_image=settings.vpn_image_id or None,
        vpn_flavor=settings.vpn_flavor,
        fixed_range=_range("fixed_range", settings.fixed_range),
        kept=_one("dmz_cidr", settings.dmz_cidr, IPv4Network),
        public_interface=_one("public_interface", settings.public_interface, _device),
        source=_one("routing_source_ip", settings.routing_source_ip, IPv4Address),
        metadata=_one("metadata_address", settings.metadata_address, _host_and_port),
        domain=_one("dhcp_domain", settings.dhcp_domain, _domain) or NetworkOptions().domain,
        lease_seconds=settings.dhcp_lease_time,
        timeout_seconds=settings.fixed_ip_timeout,
        force_release=settings.force_dhcp_release,
        dns_servers=_many("dns_server", settings.dns_server),
        use_ipv6=settings.use_ipv6,
        range_v6=_one("fixed_range_v6", settings.fixed_range_v6, IPv6Network) or NetworkOptions().range_v6,
        ipv6_backend=settings.ipv6_backend,
        auto_assign=settings.auto_assign_floating_ip,
        floating_pool=settings.floating_pool,
        floating_range=_one("floating_range", settings.floating_range, IPv4Network),
        floating_cidr=_one("floating_cidr", settings.floating_cidr, IPv4Network),
        route_between_projects=settings.route_between_projects,
        mtu=settings.network_mtu,
        down_seconds=settings.network_down_seconds,
        call_seconds=settings.network_call_seconds,
        placement=_placement(settings),
        max_networks=settings.simple_max_networks,
    )


def _vlans(text: str) -> range:
    """Return a range of VLANs given as `first-last`, or one VLAN; empty: none. SettingError."""
    first, _, last = text.strip().partition("-")
    if not first:
        return range(0)
    numbers = [int(one) for one in (first, last or first) if one.strip().isdecimal()]
    if len(numbers) != 2 or not 1 <= numbers[0] <= numbers[1] <= vlan.LAST_VLAN:
        raise SettingError(f"CLIMATE_PROJECT_VLANS={text!r} must be like 2000-2999, between 1 and {vlan.LAST_VLAN}")
    return range(numbers[0], numbers[1] + 1)


def _placement(settings: Settings) -> str:
    if settings.network_placement != "scheduler":
        return settings.network_placement
    return FEWEST if settings.scheduler == "simple" else FIRST


def queue(settings: Settings) -> AllocationQueue | None:
    """Return the queue for requests of addresses; None if the database allocates them."""
    if settings.network_allocation == "direct":
        return None
    # Imported late, because other web processes need no such library.
    from climate.compute.network.allocation.broker_queue import BrokerQueue

    return BrokerQueue(settings.redis_url)


def network_drivers(settings: Settings) -> DriverCache:
    """Return the network drivers of this process's hosts."""
    folder = (settings.home / "networks").resolve()
    if settings.network_driver == "recording":
        return DriverCache(lambda netns: RecordingNetwork(folder / (netns or "host")))
    return DriverCache(_linux(settings))


def _linux(settings: Settings) -> Callable[[str | None], NetworkDriver]:
    folder = (settings.home / "networks").resolve()

    def create_driver(netns: str | None) -> NetworkDriver:
        # Imported late, because other processes need no such libraries.
        from climate.compute.network.linux.driver import LinuxNetwork

        made: NetworkDriver = LinuxNetwork(
            netns, folder / (netns or "host"), settings.network_segments, settings.network_nat
        )
        return made

    return create_driver


def check(settings: Settings) -> None:
    """Raise SettingError for invalid settings of networks; opens nothing."""
    chosen = options(settings)
    _check_allocation(settings)
    inside, outside = chosen.floating_range, chosen.floating_cidr
    if inside is not None and outside is not None and not inside.subnet_of(outside):
        raise SettingError(f"CLIMATE_FLOATING_RANGE={inside} is not in {outside}")
    if inside is not None and inside.num_addresses > floating_ips.MOST_AT_ONCE:
        raise SettingError(f"CLIMATE_FLOATING_RANGE={inside} has more than {floating_ips.MOST_AT_ONCE} addresses")
    if chosen.range_v6.prefixlen > PREFIX_V6:
        raise SettingError(f"CLIMATE_FIXED_RANGE_V6={chosen.range_v6} has no prefixes of {PREFIX_V6} bits")
    if chosen.manager == VLAN and vlan.reserved_count(chosen) >= chosen.network_size:
        raise SettingError(
            f"CLIMATE_VPN_CLIENTS={chosen.vpn_clients} leaves no address in networks of {chosen.network_size}"
        )


def _check_allocation(settings: Settings) -> None:
    if settings.network_allocator not in allocator.names():
        known = ", ".join(allocator.names())
        raise SettingError(f"CLIMATE_NETWORK_ALLOCATOR={settings.network_allocator!r}: unknown; installed are {known}")
    if settings.network_allocation == "direct" and settings.network_allocator != allocator.BUNDLED:
        raise SettingError(
            f"CLIMATE_NETWORK_ALLOCATOR={settings.network_allocator!r} has no effect: "
            "it needs CLIMATE_NETWORK_ALLOCATION=queue"
        )
    queues = {word.strip() for word in settings.worker_queues.split(",") if word.strip()}
    alone = settings.worker_processes < ENOUGH_PROCESSES and (not queues or ("network" in queues and len(queues) > 1))
    if settings.network_allocation == "queue" and alone:
        raise SettingError(
            f"CLIMATE_WORKER_PROCESSES={settings.worker_processes}: a worker that starts leases would wait for an "
            "answer that only it can give; it needs two, or CLIMATE_WORKER_QUEUES=network for a worker of its own"
        )


def _one(name: str, text: str, kind: Callable[[str], T]) -> T | None:
    try:
        return kind(text) if text else None
    except ValueError as error:
        raise SettingError(f"CLIMATE_{name.upper()}={text!r}: {error}") from None


def _range(name: str, text: str) -> IPv4Network:
    return _one(name, text, IPv4Network) or NetworkOptions().fixed_range


def _many(name: str, text: str) -> tuple[IPv4Address, ...]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    return tuple(address for word in words if (address := _one(name, word, IPv4Address)) is not None)


def _device(text: str) -> str:
    try:
        return interface_names.interface(text)
    except NetworkError as error:
        raise ValueError(str(error)) from None


def _domain(text: str) -> str:
    if len(text) > LONGEST_DOMAIN or not all(re.fullmatch(LABEL, word) for word in text.split(".")):
        raise ValueError("it must be the name of a domain, like novalocal")
    return text


def _host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError("it must be ADDRESS:PORT")
    return str(IPv4Address(host)), int(port)
