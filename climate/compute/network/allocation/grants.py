"""Addresses that are asked of network hosts for servers, and those that the hosts have granted."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from climate.compute.network.allocation.allocator import Allocation
from climate.compute.network.models import Network


@dataclass(frozen=True, slots=True)
class Wanted:
    """Addresses that servers are to get: in each of these networks one."""

    project_id: str
    server_ids: tuple[str, ...]
    networks: tuple[Network, ...]
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Network -> the very address that the only server is to have there."""
    vpn: bool = False
    """Whether they are cloudpipes, which have an address of their own."""
    macs: Mapping[str, str] = field(default_factory=dict)
    """Network -> the MAC that the only server has there already."""


@dataclass(frozen=True, slots=True)
class Granted:
    """Addresses that the host of one network has granted."""

    asked: Allocation
    network: Network
    addresses: Mapping[str, str]
    """Server id -> address."""
