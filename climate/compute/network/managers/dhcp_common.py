"""Functions common to the two managers with DHCP."""

from collections.abc import Sequence
from dataclasses import replace

from climate.compute.network.driver import Dhcp, Entry, Link, NetworkServices
from climate.compute.network.models import Network
from climate.compute.network.network_options import NetworkOptions


def with_gateway(link: Link, network: Network) -> Link:
    """Return the link with the gateway's address, for the host that serves the network."""
    return replace(link, gateway=network.gateway_interface, gateway_v6=network.router_v6)


def served(link: Link, network: Network, options: NetworkOptions, entries: Sequence[Entry]) -> NetworkServices:
    """Return the services of a network: DHCP for these entries, and router advertisements."""
    dhcp = Dhcp(
        network=network.cidr,
        start=network.dhcp_start,
        domain=options.domain,
        lease_seconds=options.lease_seconds,
        entries=tuple(entries),
        servers=options.dns_servers,
        routes=tuple(network.routes),
        router=network.gateway,
    )
    return NetworkServices(link, dhcp, network.cidr_v6)
