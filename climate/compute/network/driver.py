"""What network services and compute services ask of a host's network: the NetworkDriver protocol and its values.

A driver stands on one host, keeps nothing that it could not read from that
host, and never looks into the database.  All its verbs are "make it so".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Link:
    """A network as a host needs it: a bridge, and what the bridge is attached to."""

    network_id: str
    bridge: str
    interface: str | None = None
    """That the bridge is attached to; with `vlan`, the one on which the VLAN is.  None: the bridge stands alone."""
    vlan: int | None = None
    mtu: int = 1500
    ours: bool = True
    """Whether the driver makes the bridge; otherwise the operator has made it, and it is only used."""
    gateway: IPv4Interface | None = None
    """The bridge's own address, on the host that serves the network; None on others, where it is left as it is."""
    gateway_v6: IPv6Interface | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An address that DHCP hands out to one interface."""

    mac: str
    address: IPv4Address
    hostname: str
    vif_id: str
    routes: bool = True
    """Whether it is told of the gateway: only a server's first interface is."""
    since: int = 0
    """When that was last changed, in seconds since 1970 UTC."""


@dataclass(frozen=True, slots=True)
class Dhcp:
    """What a DHCP server needs to know beside its link."""

    network: IPv4Network
    start: IPv4Address
    """The first address that may be handed out."""
    domain: str
    lease_seconds: int
    entries: tuple[Entry, ...] = ()
    servers: tuple[IPv4Address, ...] = ()
    """Name servers that are asked about other names; none: nobody is."""


@dataclass(frozen=True, slots=True)
class Served:
    """What the host that a network belongs to does for it."""

    link: Link
    dhcp: Dhcp | None = None
    prefix_v6: IPv6Network | None = None
    """Announced by router advertisements, for addresses that guests make themselves; None: no IPv6."""

    @property
    def timeless(self) -> "Served":
        """The same without when entries have changed, which only a server that starts asks for."""
        if self.dhcp is None:
            return self
        entries = tuple(replace(entry, since=0) for entry in self.dhcp.entries)
        return replace(self, dhcp=replace(self.dhcp, entries=entries))


@dataclass(frozen=True, slots=True)
class Forward:
    """A floating address and the fixed one it stands for."""

    floating: IPv4Address
    fixed: IPv4Address
    interface: str
    """That the floating address is on."""


@dataclass(frozen=True, slots=True)
class Vpn:
    """A cloudpipe server, and where it is reached from outside (UDP)."""

    private: IPv4Address
    public: IPv4Address
    port: int


@dataclass(frozen=True, slots=True)
class Nat:
    """All address translation on a host: what is not in it is taken away."""

    fixed_range: IPv4Network
    source: IPv4Address | None = None
    """What servers without floating addresses look like from outside; None: the outgoing interface's address."""
    interface: str | None = None
    """The one that leads outside; None: there is none, and nothing is translated on the way out."""
    kept: IPv4Network | None = None
    """Where servers are seen with their own addresses (dmz_cidr)."""
    metadata: tuple[str, int] | None = None
    """Host and port to which 169.254.169.254:80 leads."""
    forwards: tuple[Forward, ...] = ()
    vpns: tuple[Vpn, ...] = ()
    bridges: tuple[str, ...] = ()
    """Of the networks served here."""
    between: tuple[frozenset[str], ...] = ()
    """Groups of bridges between which this host routes; between all others of `bridges` it does not."""


class Kind(Enum):
    """How an interface reaches its guest."""

    VETH = "veth"
    """A pair: one end in the bridge, the other in a network namespace of the guest's own."""
    TAP = "tap"
    """A tap device in the bridge, whose file the guest's machine holds."""


@dataclass(frozen=True, slots=True)
class Plug:
    """One interface of a guest on its host."""

    vif_id: str
    mac: str
    kind: Kind
    link: Link
    addresses: tuple[IPv4Address | IPv6Address, ...] = ()
    """All that may be its source."""
    netns: str = ""
    """Name of the guest's network namespace (VETH): made when it is not there."""
    device: str = "eth0"
    """What the interface is called there."""
    static: tuple[IPv4Interface, ...] = ()
    """Addresses that are put on it there, where no DHCP server does; its gateway is `router`."""
    router: IPv4Address | None = None
    up: bool = True
    """Whether the guest is connected; one that waits to be woken is plugged, and hears and says nothing."""
    ranges: tuple[IPv4Network, ...] = ()
    """What may be its source besides, because the guest routes for it: the clients of a cloudpipe."""

    @property
    def name(self) -> str:
        """Of the interface on the host."""
        return interface_name(self.vif_id)


class What(Enum):
    """What a DHCP client did (cloud.md D.8, dhcp-script)."""

    LEASED = "add"
    RENEWED = "old"
    RELEASED = "del"


@dataclass(frozen=True, slots=True)
class Happened:
    """Something that a DHCP server has told, kept until it is forgotten."""

    key: str
    network_id: str
    what: What
    mac: str
    address: IPv4Address


@dataclass(frozen=True, slots=True)
class Standing:
    """What of ours is on a host, as it is."""

    networks: frozenset[str] = field(default_factory=frozenset)
    """Ids of networks whose bridge is ours, or which are served here."""
    served: frozenset[str] = field(default_factory=frozenset)
    plugs: frozenset[str] = field(default_factory=frozenset)
    """Names of the interfaces of guests."""


PREFIX = "clp-"


def interface_name(vif_id: str) -> str:
    """The name, of 12 characters, of an interface on its host."""
    return f"{PREFIX}{vif_id.replace('-', '')[:8]}"


def is_interface_name(name: str) -> bool:
    """Whether an interface of a guest could have this name: what else begins like it is somebody else's."""
    return re.fullmatch(rf"{PREFIX}[0-9a-f]{{8}}", name) is not None


class NetworkDriver(Protocol):
    """The network of one host.  Its verbs raise NetworkError."""

    @property
    def real(self) -> bool:
        """Whether guests find their interfaces there; otherwise all of it is only written down."""

    def trouble(self) -> str | None:
        """Why nothing can be done on this host; None: it can."""

    def standing(self) -> Standing:
        """What of ours there is: found on the host, not remembered."""

    def ensure(self, link: Link) -> None:
        """Make the bridge of a network, and attach it."""

    def remove(self, network_id: str) -> None:
        """Take down what was made for a network, and its services; interfaces of guests are left without a bridge."""

    def spare(self, network_id: str) -> None:
        """Take down the bridge of a network that no guest here is in, unless this host serves it."""

    def serve(self, served: Served) -> IPv6Address | None:
        """Ensure its link, hand out its addresses, announce its prefix.  The bridge's link-local address, with IPv6."""

    def unchanged(self, served: Sequence[Served]) -> frozenset[str]:
        """Ids of the networks that are served like this, as far as one look at the host tells: each by itself may
        still lack what only `serve` finds."""

    def unserve(self, network_id: str) -> None:
        """Stop handing out and announcing, and take the gateway's address off the bridge."""

    def translate(self, nat: Nat) -> None:
        """Have exactly this translation on the host."""

    def plug(self, plug: Plug) -> None:
        """Connect a guest's interface to its network, let nothing false pass from it."""

    def unplug(self, name: str) -> None:
        """Leave nothing of a guest's interface; `name` as in `Standing.plugs`."""

    def drop_netns(self, netns: str) -> None:
        """Leave nothing of a guest's network namespace."""

    def release(self, link: Link, entry: Entry) -> None:
        """Tell the DHCP server of a network that this address is not used any more; it tells of that in `happened`."""

    def happened(self) -> Sequence[Happened]:
        """What DHCP clients did, oldest first, as far as it is not forgotten."""

    def forget(self, keys: Sequence[str]) -> None:
        """Do not tell of these any more: they are written down."""
