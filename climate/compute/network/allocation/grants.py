"""Requests for addresses of servers, and the addresses that network hosts granted."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from climate.compute.network.allocation.allocator import Allocation
from climate.compute.network.models import Network


@dataclass(frozen=True, slots=True)
class AddressRequest:
    """Servers that need one address in each of these networks."""

    project_id: str
    server_ids: tuple[str, ...]
    networks: tuple[Network, ...]
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Network -> requested address of the only server."""
    vpn: bool = False
    """True for cloudpipes, which have a fixed address of their own."""
    macs: Mapping[str, str] = field(default_factory=dict)
    """Network -> MAC that the only server already has there."""


@dataclass(frozen=True, slots=True)
class Granted:
    """Addresses that the host of one network granted."""

    asked: Allocation
    network: Network
    addresses: Mapping[str, str]
    """Server id -> address."""
