"""Registry of the three network managers: modules with the same functions."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from typing import Protocol, cast

from sqlalchemy import Connection

from climate.compute.network.creation_request import CreationRequest
from climate.compute.network.driver import Entry, Link, Nat, NetworkServices
from climate.compute.network.managers import flat, flat_dhcp, vlan
from climate.compute.network.models import Draft, Network
from climate.compute.network.network_options import NetworkOptions


class Manager(Protocol):
    """Functions of a network manager."""

    @property
    def NAME(self) -> str: ...  # noqa: N802  (a module's constant)
    @property
    def FLOATING(self) -> bool: ...  # noqa: N802
    @property
    def DHCP(self) -> bool: ...  # noqa: N802
    def drafts(
        self, request: CreationRequest, options: NetworkOptions, cut: Sequence[IPv4Network], /
    ) -> list[Draft]: ...
    def attached(self, conn: Connection, project_id: str, /) -> list[Network]: ...
    def claimed(self, network: Network, options: NetworkOptions, /) -> Mapping[str, object]: ...
    def address(self, network: Network, vpn: bool, /) -> IPv4Address | None: ...
    def link(self, network: Network, options: NetworkOptions, /, *, own: bool) -> Link: ...
    def served(
        self, network: Network, options: NetworkOptions, entries: Sequence[Entry], /
    ) -> NetworkServices | None: ...
    def translated(self, network: Network, options: NetworkOptions, nat: Nat, /) -> Nat: ...


MANAGERS: Mapping[str, Manager] = {module.NAME: cast(Manager, module) for module in (flat, flat_dhcp, vlan)}


def of(network: Network) -> Manager:
    """Return the manager of a network."""
    return MANAGERS[network.manager]
