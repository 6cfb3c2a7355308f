"""Network info of a server for metadata, config drives and guest setup (Nova's legacy nw_info)."""

from collections.abc import Sequence

from climate.compute.network import ipv6
from climate.compute.network.models import Vif
from climate.compute.network.network_options import NetworkOptions

Info = list[list[dict[str, object]]]


def described(vifs: Sequence[Vif], options: NetworkOptions, rxtx_cap: int = 0) -> Info:
    """Return [network, info] for each interface; `rxtx_cap` is that of the flavor."""
    return [[_network(vif), _info(vif, options, rxtx_cap)] for vif in vifs]


def _network(vif: Vif) -> dict[str, object]:
    network = vif.network
    cidr_v6 = None if network.cidr_v6 is None else str(network.cidr_v6)
    return {
        "bridge": network.bridge,
        "id": network.id,
        "cidr": str(network.cidr),
        "cidr_v6": cidr_v6,
        "injected": network.injected,
    }


def _info(vif: Vif, options: NetworkOptions, rxtx_cap: int) -> dict[str, object]:
    network, netmask = vif.network, str(vif.network.cidr.netmask)
    info: dict[str, object] = {
        "label": network.label,
        "gateway": str(network.gateway),
        "broadcast": str(network.cidr.broadcast_address),
        "mac": vif.mac,
        "rxtx_cap": rxtx_cap,
        "dns": [str(server) for server in network.dns],
        "ips": [{"ip": str(address), "netmask": netmask, "enabled": "1"} for address in vif.addresses],
    }
    if network.cidr_v6 is not None:
        made = ipv6.address(options.ipv6_backend, network.cidr_v6, vif.mac, vif.project_id)
        info["ip6s"] = [{"ip": str(made), "netmask": network.cidr_v6.prefixlen, "enabled": "1"}]
        if network.gateway_v6 is not None:
            info["gateway6"] = str(network.gateway_v6)
    return info
