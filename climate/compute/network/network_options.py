"""Operator's options for networks, with the names of Nova's network options."""

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Network

RFC2462, ACCOUNT = "rfc2462", "account_identifier"
"""IPv6 address backend: from the MAC alone, or with the project's name."""

FIRST, FEWEST = "first", "fewest"
"""Host that claims a network: the first that asks, or one with the fewest networks (the simple scheduler)."""

MAC_ATTEMPTS = 5
"""Attempts to choose an unused MAC for an interface (create_unique_mac_address_attempts)."""


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """Options of networks. Times are in seconds."""

    manager: str = "flat"
    """Manager of new networks: flat, flat_dhcp or vlan."""
    flat_bridge: str = "br100"
    flat_interface: str | None = None
    flat_dns: tuple[IPv4Address, ...] = ()
    flat_injected: bool = True
    vlan_interface: str | None = None
    vlan_start: int = 100
    project_vlans: range = field(default=range(0))
    """VLANs of networks that projects create; empty: they create none."""
    network_size: int = 256
    vpn_address: IPv4Address | None = None
    """Public address of the cloudpipes of this host's networks."""
    vpn_start: int = 1000
    vpn_clients: int = 0
    vpn_image: str | None = None
    vpn_flavor: str = "m1.tiny"
    """Name or id of the flavor of cloudpipes."""
    fixed_range: IPv4Network = field(default=IPv4Network("10.0.0.0/8"))
    kept: IPv4Network | None = None
    """Destinations to which servers keep their own addresses: dmz_cidr."""
    public_interface: str | None = None
    source: IPv4Address | None = None
    """Source address of servers' outgoing traffic: routing_source_ip."""
    metadata: tuple[str, int] | None = None
    domain: str = "novalocal"
    lease_seconds: int = 120
    timeout_seconds: int = 600
    """Seconds after which a released address is free, even if its guest never released the DHCP lease."""
    force_release: bool = True
    dns_servers: tuple[IPv4Address, ...] = ()
    use_ipv6: bool = False
    range_v6: IPv6Network = field(default=IPv6Network("fd00::/48"))
    ipv6_backend: str = RFC2462
    auto_assign: bool = False
    floating_pool: str = "public"
    floating_range: IPv4Network | None = None
    """Range of the pool that a new deployment gets; None: no pool."""
    floating_cidr: IPv4Network | None = None
    route_between_projects: bool = False
    mtu: int = 1500
    down_seconds: float = 60.0
    """Seconds without a heartbeat after which another host may claim a host's networks."""
    placement: str = FIRST
    max_networks: int = 1000
    """Maximum number of networks per host when they are placed on the host with the fewest."""
    call_seconds: float = 10.0
    """Seconds to wait for a network host's answer on the allocation queue."""
    look_seconds: float = 30.0
    """Maximum seconds between two complete checks of a host's network without changes."""

    @property
    def own(self) -> frozenset[IPv4Address]:
        """Return the external addresses of network hosts, which are never floating addresses."""
        return frozenset(one for one in (self.source, self.vpn_address) if one is not None)
