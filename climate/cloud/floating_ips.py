"""Floating IPs of external networks: the protocol FloatingIps and its values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ExternalSubnet:
    """A subnet of an external network. Addresses are IPv4, as text."""

    id: str
    cidr: str
    gateway: str | None
    handed_out: tuple[tuple[str, str], ...] = ()
    """First and last address of each range that the cloud allocates to projects by itself."""


@dataclass(frozen=True, slots=True)
class ExternalNetwork:
    """An external network that provides floating IPs."""

    id: str
    name: str
    subnets: tuple[ExternalSubnet, ...]


class FloatingIps(Protocol):
    """Create floating IPs for projects, and delete them."""

    def find_external(self, network: str) -> ExternalNetwork | None:
        """Return the external network of that id or name, or None."""

    def lend_address(self, pool: str, project_id: str, network_id: str, address: str, token: int) -> None:
        """Create a floating IP of an external network for a project, tagged `blazar` and `reservation:<pool>`.

        Raise NotYet while another pool has the address. Raise Refused if the cloud uses it for something else, or has
        no such network.
        """

    def take_back_addresses(self, pool: str, addresses: Sequence[str], token: int) -> None:
        """Detach and delete the floating IPs of a pool.

        `addresses` were handed over to its project, which may have removed the tags. Afterwards no address can be
        created for the pool under a lower token, even if there was none.
        """
