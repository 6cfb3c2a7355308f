"""JSON views of networks, subnets, ports and floating IPs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from ipaddress import IPv4Address

from api.request_context import caller, deployment
from climate.compute.network import managers
from climate.compute.network.models import Network
from climate.compute.network.operations.security_groups import groups_of
from climate.compute.store.networks.floating_ips import Floating
from climate.compute.store.networks.floating_pools import PoolRow
from climate.compute.store.networks.networks_without_subnet import Outline
from climate.compute.store.networks.ports import Port

Body = dict[str, object]

FLAT_TYPE, VLAN_TYPE = "flat", "vlan"

Ranges = Mapping[str, Sequence[tuple[str, str]]]
"""Pool -> its allocation ranges, first and last address."""


def moment(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def network(row: Network) -> Body:
    """Return a network of servers."""
    shared = row.project_id is None and row.vlan is None
    seen = _network(row.id, row.label, row.created_at, row.project_id)
    seen |= {"status": "ACTIVE" if row.host else "DOWN", "shared": shared, "subnets": [row.subnet_id]}
    return seen | _provider(row.vlan, row.bridge_interface)


def pool(row: PoolRow) -> Body:
    """Return an external network, whose addresses are floating IPs."""
    seen = _network(row.id, row.name, row.created_at, None) | {"subnets": [row.subnet_id]}
    return seen | {"router:external": True, "is_default": False} | _provider(None, row.interface)


def outline(row: Outline) -> Body:
    """Return a network that has no subnet yet."""
    status = "ACTIVE" if row.by_project else "DOWN"
    seen = _network(row.id, row.label, row.created_at, row.project_id) | {"status": status, "is_default": False}
    return seen | {"router:external": row.manager is None} | _provider(row.vlan, row.interface, row.manager)


def _network(network_id: str, name: str, at: datetime, project_id: str | None) -> Body:
    return {
        "id": network_id,
        "name": name,
        "status": "ACTIVE",
        "admin_state_up": True,
        "shared": False,
        "router:external": False,
        "subnets": [],
        "mtu": deployment().compute.network.mtu,
        **whose(project_id),
        "availability_zones": [deployment().settings.default_availability_zone],
        "port_security_enabled": True,
        "is_default": True,
        "description": "",
        "dns_domain": "",
        "l2_adjacency": True,
        "tags": [],
        "revision_number": 0,
        "created_at": moment(at),
        "updated_at": moment(at),
    }


def _provider(vlan: int | None, interface: str | None, manager: str | None = None) -> Body:
    """Return the provider attributes, which only administrators see."""
    if not caller().is_admin:
        return {}
    return {
        "provider:network_type": VLAN_TYPE if vlan is not None or manager == "vlan" else FLAT_TYPE,
        "provider:physical_network": interface,
        "provider:segmentation_id": vlan,
    }


def whose(project_id: str | None) -> Body:
    """Return the two keys of a project, `project_id` and `tenant_id`."""
    return {"tenant_id": project_id or "", "project_id": project_id or ""}


def subnet(row: Network) -> Body:
    """Return the subnet of a network of servers."""
    seen = _subnet(row.subnet_id, row.label if row.subnet_name is None else row.subnet_name, row.id, str(row.cidr))
    return seen | {
        "gateway_ip": str(row.gateway) if row.routed else None,
        "enable_dhcp": managers.of(row).DHCP,
        "allocation_pools": [{"start": str(first), "end": str(last)} for first, last in _ranges(row)],
        "dns_nameservers": [str(server) for server in row.dns],
        "host_routes": [{"destination": str(to), "nexthop": str(hop)} for to, hop in row.routes],
        **whose(row.project_id),
    }


def _ranges(row: Network) -> Sequence[tuple[IPv4Address, IPv4Address]]:
    """Return the first and last address of each range that the pool assigns."""
    if row.ranges:
        return row.ranges
    if not row.by_project:
        return [(row.dhcp_start, row.cidr[-2])]
    around = ((row.cidr[1], row.gateway - 1), (row.gateway + 1, row.cidr[-2]))
    return [(first, last) for first, last in around if first <= last]


def pool_subnet(row: PoolRow, ranges: Ranges) -> Body:
    """Return the subnet of an external network."""
    seen = _subnet(row.subnet_id, row.name, row.id, row.cidr) | whose(None)
    pools = [{"start": first, "end": last} for first, last in ranges.get(row.id, ())]
    return seen | {"gateway_ip": row.gateway, "allocation_pools": pools}


def _subnet(subnet_id: str, name: str, network_id: str, cidr: str) -> Body:
    return {
        "id": subnet_id,
        "name": name,
        "network_id": network_id,
        "cidr": cidr,
        "ip_version": 4,
        "enable_dhcp": False,
        "dns_nameservers": [],
        "host_routes": [],
        "tags": [],
    }


def port(row: Port) -> Body:
    """Return a port."""
    bound = row.server_id is not None
    return {
        "id": row.port_id,
        "name": row.name,
        "description": row.description,
        "network_id": row.network_id,
        "device_id": row.server_id or row.device_id,
        "device_owner": "compute:nova" if bound else row.device_owner,
        "mac_address": row.mac,
        "fixed_ips": [{"subnet_id": row.subnet_id, "ip_address": address} for address in row.addresses],
        "status": "ACTIVE" if row.status == "ACTIVE" and row.admin_up else "DOWN",
        "admin_state_up": row.admin_up,
        "security_groups": list(groups_of(row.project_id, row.security_groups)),
        "port_security_enabled": True,
        "allowed_address_pairs": [],
        "extra_dhcp_opts": [],
        "binding:vnic_type": "normal",
        "tags": [],
        "revision_number": 0,
        "created_at": moment(row.created_at),
        "updated_at": moment(row.changed_at),
        **whose(row.project_id),
        **_binding(row),
    }


def _binding(row: Port) -> Body:
    """Return the binding of a port, which only administrators see."""
    if not caller().is_admin:
        return {}
    vif_type = "bridge" if row.server_id is not None and row.host else "unbound"
    return {
        "binding:host_id": row.host,
        "binding:profile": {},
        "binding:vif_type": vif_type,
        "binding:vif_details": {},
    }


def floating(row: Floating) -> Body:
    """Return a floating IP."""
    return {
        "id": row.id,
        "floating_ip_address": row.address,
        "floating_network_id": row.pool_id,
        "fixed_ip_address": row.fixed_address,
        "port_id": row.port_id,
        "router_id": None,
        "status": "DOWN" if row.fixed_address is None else "ACTIVE",
        "description": row.description,
        "dns_name": "",
        "dns_domain": "",
        "qos_policy_id": None,
        "tags": list(row.tags),
        "revision_number": 0,
        "created_at": moment(row.created_at),
        "updated_at": moment(row.changed_at),
        **whose(row.project_id),
    }
