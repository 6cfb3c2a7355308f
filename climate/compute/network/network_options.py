"""What an operator may choose about networks (cloud.md D.2)."""

from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Network

RFC2462, ACCOUNT = "rfc2462", "account_identifier"
"""How IPv6 addresses are made of MACs: alone, or with the project's name."""

FIRST, FEWEST = "first", "fewest"
"""Which network host claims a network: the first that asks, or one with the fewest networks (the simple scheduler)."""

MAC_ATTEMPTS = 5
"""So often a MAC is chosen for an interface (create_unique_mac_address_attempts)."""


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """Names as in cloud.md D.2, without what a name repeats.  Times in seconds."""

    manager: str = "flat"
    """Of networks that are made from now on, and how servers get to theirs: flat, flat_dhcp or vlan."""
    flat_bridge: str = "br100"
    flat_interface: str | None = None
    flat_dns: tuple[IPv4Address, ...] = ()
    flat_injected: bool = True
    vlan_interface: str | None = None
    vlan_start: int = 100
    network_size: int = 256
    vpn_address: IPv4Address | None = None
    """Where the cloudpipes of this host's networks are reached."""
    vpn_start: int = 1000
    vpn_clients: int = 0
    vpn_image: str | None = None
    vpn_flavor: str = "m1.tiny"
    """Name or id of the flavor of cloudpipes."""
    fixed_range: IPv4Network = field(default=IPv4Network("10.0.0.0/8"))
    kept: IPv4Network | None = None
    """Where servers are seen with their own addresses: dmz_cidr."""
    public_interface: str | None = None
    source: IPv4Address | None = None
    """What servers look like from outside: routing_source_ip."""
    metadata: tuple[str, int] | None = None
    domain: str = "novalocal"
    lease_seconds: int = 120
    timeout_seconds: int = 600
    """Time after which an address that is not allocated any more is free, though its guest never released it."""
    force_release: bool = True
    dns_servers: tuple[IPv4Address, ...] = ()
    use_ipv6: bool = False
    range_v6: IPv6Network = field(default=IPv6Network("fd00::/48"))
    ipv6_backend: str = RFC2462
    auto_assign: bool = False
    floating_pool: str = "public"
    floating_range: IPv4Network | None = None
    """Handed out by the pool that a fresh cloud is furnished with; None: there is none."""
    floating_cidr: IPv4Network | None = None
    route_between_projects: bool = False
    mtu: int = 1500
    down_seconds: float = 60.0
    """Networks of a host that was not heard of for so long are another's to claim."""
    placement: str = FIRST
    max_networks: int = 1000
    """Networks that a host claims when they are placed on the host with the fewest."""
    call_seconds: float = 10.0
    """Longest time that the answer of a network host is waited for, where addresses are asked of its queue."""
    look_seconds: float = 30.0
    """Longest time between two looks at a host's own network when nothing has changed."""

    @property
    def own(self) -> frozenset[IPv4Address]:
        """Addresses outside that are a network host's own: nobody gets them for a floating one."""
        return frozenset(one for one in (self.source, self.vpn_address) if one is not None)
