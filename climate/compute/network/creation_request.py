"""Request to create networks."""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from climate.compute.network import subnetting
from climate.compute.network.models import Draft
from climate.compute.network.network_options import NetworkOptions


@dataclass(frozen=True, slots=True)
class CreationRequest:
    """Request for `count` networks of `size` addresses out of `cidr`; None takes the option's value."""

    label: str
    cidr: IPv4Network
    count: int = 1
    size: int | None = None
    """None: the whole range for one network, else the options' size."""
    cidr_v6: IPv6Network | None = None
    place_v6: int = 0
    """Index of the first network's /64 in the IPv6 range; the others follow."""
    gateway_v6: IPv6Address | None = None
    bridge: str | None = None
    bridge_interface: str | None = None
    dns: tuple[IPv4Address, ...] | None = None
    vlan_start: int | None = None
    vpn_start: int | None = None
    project_id: str | None = None
    network_id: str | None = None
    """Requested id of a single network; None: a new one."""

    def label_of(self, index: int) -> str:
        return self.label if self.count == 1 else f"{self.label}_{index}"

    def size_of(self, options: NetworkOptions) -> int:
        """Return the number of addresses of each network."""
        if self.size is not None:
            return self.size
        return self.cidr.num_addresses if self.count == 1 else options.network_size

    def draft(self, options: NetworkOptions, manager: str, index: int, cidr: IPv4Network) -> Draft:
        """Return the fields common to all managers: the first address is the gateway, the next one the
        first guest's.
        """
        range_v6 = self.cidr_v6 or (options.range_v6 if options.use_ipv6 else None)
        prefix = None if range_v6 is None else subnetting.prefix_v6(range_v6, self.place_v6 + index)
        return Draft(
            label=self.label_of(index),
            network_id=self.network_id,
            manager=manager,
            cidr=cidr,
            gateway=cidr[1],
            dhcp_start=cidr[2],
            cidr_v6=prefix,
            gateway_v6=None if prefix is None else self.gateway_v6 or prefix[1],
            dns=options.flat_dns if self.dns is None else self.dns,
            project_id=self.project_id,
            reserved=subnetting.reserved(cidr, 2, 1),
        )
