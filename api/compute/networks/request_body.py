"""Body of a request that creates networks, as Nova's os-networks has it."""

from ipaddress import IPv4Address
from typing import Any

from api.compute import validation
from api.compute.networks import ip_validation
from climate.compute.network.network_request import Wanted
from climate.domain.errors import InvalidInput

Body = dict[str, Any]

KNOWN = frozenset(
    {
        *("label", "cidr", "num_networks", "network_size", "cidr_v6", "gateway_v6", "bridge", "bridge_interface"),
        *("vlan", "vlan_start", "vpn_start", "project_id", "dns1", "dns2", "manager"),
    }
)


def read(body: Body) -> tuple[Wanted, str | None]:
    """Return the requested networks and their manager; None: the deployment's."""
    unknown = sorted(set(body) - KNOWN)
    if unknown:
        raise InvalidInput(f"network: {unknown[0][:60]!r} cannot be set; there are {', '.join(sorted(KNOWN))}")
    body = {key: value for key, value in body.items() if value is not None}
    if {"vlan", "vlan_start"} <= set(body):
        raise InvalidInput("network: vlan and vlan_start mean the same; give one of them")
    wanted = Wanted(
        label=validation.name(body.get("label"), "label"),
        cidr=ip_validation.cidr(body.get("cidr"), "cidr"),
        count=validation.count(body.get("num_networks", 1), "num_networks", 1, 1024),
        size=_count(body, "network_size", 1 << 16),
        cidr_v6=ip_validation.cidr_v6(body["cidr_v6"], "cidr_v6") if "cidr_v6" in body else None,
        gateway_v6=ip_validation.address_v6(body["gateway_v6"], "gateway_v6") if "gateway_v6" in body else None,
        bridge=ip_validation.interface(body.get("bridge"), "bridge"),
        bridge_interface=ip_validation.interface(body.get("bridge_interface"), "bridge_interface"),
        dns=_dns(body),
        vlan_start=_count(body, "vlan" if "vlan" in body else "vlan_start", 4094),
        vpn_start=_count(body, "vpn_start", 65535),
        project_id=validation.name(body["project_id"], "project_id") if "project_id" in body else None,
    )
    if wanted.gateway_v6 is not None and wanted.cidr_v6 is None:
        raise InvalidInput("network: gateway_v6 needs cidr_v6")
    return wanted, validation.name(body["manager"], "manager") if "manager" in body else None


def _count(body: Body, key: str, highest: int) -> int | None:
    return validation.count(body[key], key, 1, highest) if key in body else None


def _dns(body: Body) -> tuple[IPv4Address, ...] | None:
    """Return the given DNS servers; None: the deployment's."""
    found = tuple(ip_validation.address(body[key], key) for key in ("dns1", "dns2") if key in body)
    return found or None
