"""Filters by place and state of a node's service: zone, networks, liveness, earlier attempts."""

import ipaddress

import numpy as np

from climate.compute.errors import BadRequest
from climate.compute.models.request import Spec, read_destination
from climate.compute.scheduler.hosts.table import Grouping, Hosts, Mask
from climate.compute.scheduler.scheduler_parts import Filter, Options

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def everywhere(hosts: Hosts) -> Mask:
    return np.ones(len(hosts), dtype=np.bool_)


def not_tried_yet(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes on which no earlier attempt of this server failed."""
    return ~np.isin(hosts.ids, np.array(spec.tried, dtype=np.int64)) if spec.tried else everywhere(hosts)


def zones(grouping: Grouping, options: Options) -> frozenset[str]:
    """Return the availability zones of a node: of its aggregates, else its own, else the default."""
    return grouping.words("availability_zone") or frozenset([grouping.zone or options.default_zone])


def in_zone(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes in the requested availability zone."""
    if spec.zone is None:
        return everywhere(hosts)
    return hosts.grouping.where(lambda grouping: spec.zone in zones(grouping, options))


def service_up(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes whose compute service is enabled and has a recent heartbeat."""
    return hosts.up & ~hosts.disabled


def forced(hosts: Hosts, spec: Spec) -> Mask:
    """Return the live nodes that an administrator forced by service host, node or both; without force, all."""
    mask = hosts.present.copy() if spec.forced else everywhere(hosts)
    if spec.force_hosts:
        mask &= np.isin(hosts.service_hosts, spec.force_hosts) | np.isin(hosts.names, spec.force_hosts)
    if spec.force_nodes:
        mask &= np.isin(hosts.names, spec.force_nodes)
    return mask


def in_question(hosts: Hosts, spec: Spec) -> Mask:
    """Return the nodes at the request's destination, without the service hosts that it ignores."""
    mask = ~np.isin(hosts.service_hosts, spec.ignore_hosts) if spec.ignore_hosts else everywhere(hosts)
    host, node = read_destination(spec.destination) if spec.destination else (None, None)
    if host is not None:
        mask &= np.asarray(hosts.service_hosts == host, dtype=np.bool_)
    if node is not None:
        mask &= np.asarray(hosts.names == node, dtype=np.bool_)
    return mask


def neighbourhood(spec: Spec) -> Network | None:
    """Return the network of the hint `build_near_host_ip` with the prefix in `cidr` (or /24). Raise BadRequest."""
    address = spec.hints.get("build_near_host_ip")
    if not address:
        return None
    prefix = str(spec.hints.get("cidr", "/24")).removeprefix("/")
    try:
        return ipaddress.ip_network(f"{address}/{prefix}", strict=False)
    except ValueError:
        raise BadRequest(
            f"The hints 'build_near_host_ip' {address!r} and 'cidr' {prefix!r} are not an address and a prefix."
        ) from None


def near(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    """Return the nodes in the network that the hints request."""
    network = neighbourhood(spec)
    if network is None:
        return everywhere(hosts)
    inside = {text: _address_in(text, network) for text in set(hosts.host_ips)}
    return np.fromiter((inside[text] for text in hosts.host_ips), np.bool_, len(hosts))


def _address_in(text: str, network: Network) -> bool:
    try:
        return ipaddress.ip_address(text) in network
    except ValueError:
        return False


def _zone_why(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
    grouping = hosts.grouping.values[hosts.grouping.codes[index]]
    return f"is in availability zone {', '.join(sorted(zones(grouping, options)))}, not in {spec.zone}."


def _compute_why(hosts: Hosts, spec: Spec, options: Options, index: int) -> str:
    return "is disabled." if hosts.disabled[index] else "has not been heard from in a while, or is in maintenance."


RETRY = Filter("RetryFilter", not_tried_yet, why=lambda *_: "was tried already.")
AVAILABILITY_ZONE = Filter("AvailabilityZoneFilter", in_zone, why=_zone_why)
COMPUTE = Filter("ComputeFilter", service_up, why=_compute_why)
CIDR = Filter(
    "SimpleCIDRAffinityFilter",
    near,
    why=lambda *_: "is not near the requested address.",
    check=lambda hosts, spec: neighbourhood(spec),
)
ALL_HOSTS = Filter("AllHostsFilter", lambda hosts, spec, options: everywhere(hosts))
