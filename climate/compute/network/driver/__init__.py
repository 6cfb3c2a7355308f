"""NetworkDriver protocol and its values: the operations that network and compute services need on a host.

A driver manages one host, reads all of its state from that host, and never uses the database. All operations are
idempotent.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import Protocol

from climate.compute.network.render.port_filter import FilterRule


@dataclass(frozen=True, slots=True)
class Link:
    """Network as a host needs it: a bridge, and the interface it is attached to."""

    network_id: str
    bridge: str
    interface: str | None = None
    """Interface that the bridge is attached to, or that carries the VLAN if `vlan` is set. None: the bridge is
    isolated.
    """
    vlan: int | None = None
    mtu: int = 1500
    ours: bool = True
    """True if the driver creates the bridge; False if the operator created it and the driver only uses it."""
    gateway: IPv4Interface | None = None
    """Address of the bridge on the host that serves the network; None on other hosts, where addresses are unchanged."""
    gateway_v6: IPv6Interface | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """Address that DHCP assigns to one interface."""

    mac: str
    address: IPv4Address
    hostname: str
    vif_id: str
    routes: bool = True
    """True if the client gets a default gateway; only a server's first interface does."""
    since: int = 0
    """Time of the last change, in seconds since 1970 UTC."""


@dataclass(frozen=True, slots=True)
class Dhcp:
    """Settings of a DHCP server beside its link."""

    network: IPv4Network
    start: IPv4Address
    """First address of the DHCP range."""
    domain: str
    lease_seconds: int
    entries: tuple[Entry, ...] = ()
    servers: tuple[IPv4Address, ...] = ()
    """Upstream name servers; if empty, other names are not resolved."""
    routes: tuple[tuple[IPv4Network, IPv4Address], ...] = ()
    """Destination and next hop of each route beside the default one."""
    router: IPv4Address | None = None
    """Default gateway; required with `routes`, which replace it otherwise (RFC 3442)."""


@dataclass(frozen=True, slots=True)
class NetworkServices:
    """Services of a network on the host that owns it."""

    link: Link
    dhcp: Dhcp | None = None
    prefix_v6: IPv6Network | None = None
    """Prefix in router advertisements, for addresses by SLAAC; None: no IPv6."""

    @property
    def timeless(self) -> "NetworkServices":
        """Return a copy without change times of entries, which matter only when a DHCP server starts."""
        if self.dhcp is None:
            return self
        entries = tuple(replace(entry, since=0) for entry in self.dhcp.entries)
        return replace(self, dhcp=replace(self.dhcp, entries=entries))


@dataclass(frozen=True, slots=True)
class Forward:
    """Floating address and the fixed address it translates to."""

    floating: IPv4Address
    fixed: IPv4Address
    interface: str
    """Interface that has the floating address."""


@dataclass(frozen=True, slots=True)
class Vpn:
    """Cloudpipe server, and its public UDP endpoint."""

    private: IPv4Address
    public: IPv4Address
    port: int


@dataclass(frozen=True, slots=True)
class Nat:
    """Complete address translation of a host; rules that are not in it are removed."""

    fixed_range: IPv4Network
    source: IPv4Address | None = None
    """Source address of servers without floating addresses; None: the address of the outgoing interface."""
    interface: str | None = None
    """Outgoing interface; None: no source translation on the way out."""
    kept: IPv4Network | None = None
    """Destinations to which servers keep their own addresses (dmz_cidr)."""
    metadata: tuple[str, int] | None = None
    """Host and port to which 169.254.169.254:80 is translated."""
    forwards: tuple[Forward, ...] = ()
    vpns: tuple[Vpn, ...] = ()
    bridges: tuple[str, ...] = ()
    """Bridges of the networks served here."""
    between: tuple[frozenset[str], ...] = ()
    """Groups of bridges between which this host routes; traffic between any other two of `bridges` is dropped."""


class Kind(Enum):
    """Kind of a guest's interface."""

    VETH = "veth"
    """A veth pair: one end in the bridge, the other in the guest's network namespace."""
    TAP = "tap"
    """A tap device in the bridge, whose file descriptor the virtual machine holds."""


@dataclass(frozen=True, slots=True)
class Plug:
    """Interface of a guest on its host."""

    vif_id: str
    mac: str
    kind: Kind
    link: Link
    addresses: tuple[IPv4Address | IPv6Address, ...] = ()
    """All allowed source addresses."""
    netns: str = ""
    """Name of the guest's network namespace (VETH); created if missing."""
    device: str = "eth0"
    """Name of the interface inside the namespace."""
    static: tuple[IPv4Interface, ...] = ()
    """Addresses to configure inside the namespace if there is no DHCP server; the gateway is `router`."""
    router: IPv4Address | None = None
    up: bool = True
    """True if the link is connected. The interface of a RESERVED server is plugged but down."""
    ranges: tuple[IPv4Network, ...] = ()
    """Further allowed source ranges, which the guest routes: the clients of a cloudpipe."""
    rules: tuple[FilterRule, ...] | None = None
    """Traffic that its security groups allow; None: all."""

    @property
    def name(self) -> str:
        """Return the name of the interface on the host."""
        return interface_name(self.vif_id)


class DhcpAction(Enum):
    """Action of a DHCP client, as reported by dnsmasq's dhcp-script."""

    LEASED = "add"
    RENEWED = "old"
    RELEASED = "del"


@dataclass(frozen=True, slots=True)
class DhcpEvent:
    """Event reported by a DHCP server, kept until it is acknowledged."""

    key: str
    network_id: str
    what: DhcpAction
    mac: str
    address: IPv4Address


@dataclass(frozen=True, slots=True)
class ExistingResources:
    """Resources of climate that exist on a host."""

    networks: frozenset[str] = field(default_factory=frozenset)
    """Ids of networks whose bridge climate created, or which are served here."""
    served: frozenset[str] = field(default_factory=frozenset)
    plugs: frozenset[str] = field(default_factory=frozenset)
    """Names of the guests' interfaces."""


PREFIX = "clp-"


def interface_name(vif_id: str) -> str:
    """Return the 12-character name of an interface on its host."""
    return f"{PREFIX}{vif_id.replace('-', '')[:8]}"


def is_interface_name(name: str) -> bool:
    """Return whether a name has the form of a guest's interface; others with the same prefix are foreign."""
    return re.fullmatch(rf"{PREFIX}[0-9a-f]{{8}}", name) is not None


class NetworkDriver(Protocol):
    """Network of one host. Its methods raise NetworkError."""

    @property
    def real(self) -> bool:
        """Return whether guests get real interfaces; False if the driver only records calls."""

    def trouble(self) -> str | None:
        """Return why the driver cannot work on this host, or None if it can."""

    def standing(self) -> ExistingResources:
        """Return the resources of climate that exist on the host, read from the host."""

    def ensure(self, link: Link) -> None:
        """Create the bridge of a network, and attach it."""

    def remove(self, network_id: str) -> None:
        """Remove the bridge and the services of a network; guests' interfaces are left without a bridge."""

    def remove_unused(self, network_id: str) -> None:
        """Remove the bridge of a network that no guest on this host uses, unless this host serves the network."""

    def serve(self, served: NetworkServices) -> IPv6Address | None:
        """Ensure the link, start DHCP and router advertisements. Return the bridge's link-local
        address if IPv6 is on.
        """

    def unchanged(self, served: Sequence[NetworkServices]) -> frozenset[str]:
        """Return the ids of the networks that are already served like this, by one cheap check of the host. Only
        `serve` checks a network completely.
        """

    def unserve(self, network_id: str) -> None:
        """Stop DHCP and router advertisements, and remove the gateway's address from the bridge."""

    def translate(self, nat: Nat) -> None:
        """Replace all address translation on the host."""

    def plug(self, plug: Plug) -> None:
        """Connect a guest's interface to its network, with anti-spoofing rules."""

    def guard(self, plug: Plug) -> None:
        """Replace the rules of a guest's interface that is plugged; do nothing if it is not."""

    def unplug(self, name: str) -> None:
        """Remove a guest's interface; `name` as in `ExistingResources.plugs`."""

    def drop_netns(self, netns: str) -> None:
        """Remove a guest's network namespace."""

    def release(self, link: Link, entry: Entry) -> None:
        """Release a DHCP lease on behalf of its client; the server reports the release in `happened`."""

    def happened(self) -> Sequence[DhcpEvent]:
        """Return the unacknowledged events of DHCP clients, oldest first."""

    def forget(self, keys: Sequence[str]) -> None:
        """Acknowledge events that were recorded, so that they are not reported again."""
