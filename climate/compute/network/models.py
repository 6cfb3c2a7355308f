"""Values of networks and interfaces."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network

FLAT, FLAT_DHCP, VLAN = "flat", "flat_dhcp", "vlan"


@dataclass(frozen=True, slots=True)
class Draft:
    """Network to create."""

    label: str
    manager: str
    cidr: IPv4Network
    gateway: IPv4Address
    dhcp_start: IPv4Address
    cidr_v6: IPv6Network | None = None
    gateway_v6: IPv6Address | None = None
    dns: tuple[IPv4Address, ...] = ()
    bridge: str | None = None
    bridge_interface: str | None = None
    vlan: int | None = None
    vpn_private_address: IPv4Address | None = None
    vpn_public_port: int | None = None
    project_id: str | None = None
    reserved: tuple[IPv4Address, ...] = ()
    """Addresses that the pool never assigns."""
    network_id: str | None = None
    """Requested id; None: a new one."""
    subnet_id: str | None = None
    by_project: bool = False
    subnet_name: str | None = None
    routed: bool = True
    ranges: Sequence[tuple[IPv4Address, IPv4Address]] = ()
    routes: Sequence[tuple[IPv4Network, IPv4Address]] = ()


@dataclass(frozen=True, slots=True)
class Network:
    """Network as recorded."""

    id: str
    subnet_id: str
    label: str
    manager: str
    cidr: IPv4Network
    gateway: IPv4Address
    dhcp_start: IPv4Address
    created_at: datetime
    cidr_v6: IPv6Network | None = None
    gateway_v6: IPv6Address | None = None
    """IPv6 gateway: the link-local address of the bridge, known once the network is served."""
    dns: tuple[IPv4Address, ...] = ()
    bridge: str | None = None
    bridge_interface: str | None = None
    vlan: int | None = None
    vpn_private_address: IPv4Address | None = None
    vpn_public_address: IPv4Address | None = None
    vpn_public_port: int | None = None
    injected: bool = False
    project_id: str | None = None
    """Owning project; None: shared, or with a VLAN not owned yet."""
    host: str | None = None
    """Network service that serves it; None: unclaimed."""
    by_project: bool = False
    """True: created by its project, which deletes it."""
    subnet_name: str | None = None
    """None: the label."""
    routed: bool = True
    """False: DHCP offers no default gateway."""
    ranges: Sequence[tuple[IPv4Address, IPv4Address]] = ()
    """First and last address of each range that the pool assigns; empty: all from `dhcp_start` on."""
    routes: Sequence[tuple[IPv4Network, IPv4Address]] = ()
    """Destination and next hop of each further route that DHCP offers."""

    @property
    def usable(self) -> bool:
        """Return whether servers can get addresses: a network of a project need not be served yet."""
        return self.host is not None or self.by_project

    @property
    def gateway_interface(self) -> IPv4Interface:
        return IPv4Interface(f"{self.gateway}/{self.cidr.prefixlen}")

    @property
    def router_v6(self) -> IPv6Interface | None:
        """Return the first address of the prefix: the bridge's address on the serving host."""
        return None if self.cidr_v6 is None else IPv6Interface(f"{self.cidr_v6[1]}/{self.cidr_v6.prefixlen}")


@dataclass(frozen=True, slots=True)
class Vif:
    """Interface of a server, with its addresses."""

    id: str
    mac: str
    place: int
    """0 for the server's first interface, which has the default route."""
    server_id: str
    project_id: str
    network: Network
    addresses: Sequence[IPv4Address] = field(default_factory=tuple)
    security_groups: tuple[str, ...] | None = None
    """Ids of its security groups; None: the group `default` of the project, which was never changed."""
    admin_up: bool = True
    """False: the interface passes no traffic."""
    kept: bool = False
    """True for a port that a project created, which outlives its server."""
