"""Network data of a server: its interfaces and addresses in the format that cloud-init reads (network_data.json)."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address

from climate.compute.network import ipv6
from climate.compute.network.driver import interface_name
from climate.compute.network.models import FLAT, Vif
from climate.compute.network.network_options import NetworkOptions

_ANYWHERE = "0.0.0.0"  # noqa: S104  (destination and mask of a default route)


def described(vifs: Sequence[Vif], options: NetworkOptions) -> Mapping[str, object]:
    """Return links, networks and name servers of interfaces in their order."""
    networks = [one for vif in vifs for one in _networks(vif, options)]
    servers = list(dict.fromkeys(str(server) for vif in vifs for server in vif.network.dns))
    return {
        "links": [_link(vif) for vif in vifs],
        "networks": [{"id": f"network{number}", **network} for number, network in enumerate(networks)],
        "services": [{"type": "dns", "address": address} for address in servers],
    }


def _link(vif: Vif) -> Mapping[str, object]:
    # The MTU depends on the transport of the host, and DHCP announces it.
    common = {"id": interface_name(vif.id), "vif_id": vif.id, "type": "bridge", "mtu": None}
    return {**common, "ethernet_mac_address": vif.mac}


def _networks(vif: Vif, options: NetworkOptions) -> list[Mapping[str, object]]:
    """Return the networks of an interface: one with DHCP or one for each static address, and one for IPv6."""
    common = {"link": interface_name(vif.id), "network_id": vif.network.id}
    result: list[Mapping[str, object]] = []
    if vif.network.manager == FLAT:
        result += [{**common, **_static(vif, address)} for address in vif.addresses]
    elif vif.addresses:
        result.append({**common, "type": "ipv4_dhcp"})
    if vif.network.cidr_v6 is not None:
        made = ipv6.address(options.ipv6_backend, vif.network.cidr_v6, vif.mac, vif.project_id)
        result.append({**common, "type": "ipv6_slaac", "ip_address": str(made)})
    return result


def _static(vif: Vif, address: IPv4Address) -> Mapping[str, object]:
    """Return the configuration of a fixed address; only the first interface has the default route."""
    route = {"network": _ANYWHERE, "netmask": _ANYWHERE, "gateway": str(vif.network.gateway)}
    routes = [route] if vif.place == 0 else []
    netmask = str(vif.network.cidr.netmask)
    return {"type": "ipv4", "ip_address": str(address), "netmask": netmask, "routes": routes}
