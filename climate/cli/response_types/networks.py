"""Networks, their addresses, floating IPs, and the VPNs into the networks of projects."""

from typing import NotRequired, TypedDict


class ComputeNetwork(TypedDict):
    """A network of servers; administrators see the manager and further keys."""

    id: str
    label: str
    cidr: str
    gateway: str
    manager: NotRequired[str]


class AgentConfiguration(TypedDict):
    """The number of networks that a network service has."""

    networks: int


class NetworkAgent(TypedDict):
    """A network service."""

    host: str
    alive: bool
    heartbeat_timestamp: str
    configurations: AgentConfiguration


class Network(TypedDict):
    """A network of Neutron's API; administrators see further keys."""

    id: str
    name: str


class FixedIp(TypedDict):
    """An address of a port."""

    subnet_id: str
    ip_address: str


class Port(TypedDict):
    """A port of a server."""

    id: str
    fixed_ips: list[FixedIp]


class AddressRange(TypedDict):
    """The first and the last address of a range."""

    start: str
    end: str


class Subnet(TypedDict):
    """The subnet of a network, with its allocation ranges."""

    id: str
    network_id: str
    cidr: str
    gateway_ip: str | None
    allocation_pools: list[AddressRange]


class PoolFigures(TypedDict):
    """The number of addresses of a network, and of those that are used."""

    network_id: str
    total_ips: int
    used_ips: int


class FloatingIp(TypedDict):
    """A floating IP of the cloud."""

    id: str
    floating_ip_address: str
    floating_network_id: str
    fixed_ip_address: str | None
    port_id: str | None
    status: str
    tags: list[str]


class ReservableFloatingIp(TypedDict):
    """A floating IP that can be reserved."""

    id: str
    floating_network_id: str
    subnet_id: str
    floating_ip_address: str
    reservable: bool
    created_at: str
    updated_at: str | None


class Certificate(TypedDict):
    """A new certificate for a VPN, with its key and the configuration of OpenVPN."""

    serial: str
    name: str
    expires_at: str
    authority: str
    certificate: str
    private_key: str
    config: str
