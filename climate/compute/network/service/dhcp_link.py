"""What the two managers with DHCP do alike for a network on its own host."""

from collections.abc import Sequence
from dataclasses import replace

from climate.compute.network.driver import Dhcp, Entry, Link, Served
from climate.compute.network.models import Network
from climate.compute.network.network_options import NetworkOptions


def with_gateway(link: Link, network: Network) -> Link:
    """The link on the host that is the gateway of its network."""
    return replace(link, gateway=network.gateway_interface, gateway_v6=network.router_v6)


def served(link: Link, network: Network, options: NetworkOptions, entries: Sequence[Entry]) -> Served:
    """DHCP for these addresses, and the network's IPv6 prefix announced."""
    dhcp = Dhcp(
        network=network.cidr,
        start=network.dhcp_start,
        domain=options.domain,
        lease_seconds=options.lease_seconds,
        entries=tuple(entries),
        servers=options.dns_servers,
    )
    return Served(link, dhcp, network.cidr_v6)
