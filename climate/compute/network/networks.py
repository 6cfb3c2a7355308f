"""Creation, deletion and ownership of networks."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network

from sqlalchemy import Connection

from climate.compute.errors import BadRequest, Conflict, NetworkError, NoMoreNetworks, NotFound
from climate.compute.network import subnetting
from climate.compute.network.creation_request import CreationRequest
from climate.compute.network.managers import MANAGERS
from climate.compute.network.models import FLAT, VLAN, Draft, Network
from climate.compute.network.network_options import NetworkOptions
from climate.compute.network.render import interface_names
from climate.compute.store.networks import floating_pools, network_hosts, networks_without_subnet, ports
from climate.compute.store.networks import networks as rows
from climate.compute.store.projects import vpn

MOST_AT_ONCE = 1024
"""Maximum number of networks per request."""

MOST_ADDRESSES = 1 << 20
"""Maximum number of addresses in all networks of one request; each is a row."""


def create(
    conn: Connection, options: NetworkOptions, request: CreationRequest, manager: str | None = None
) -> list[Network]:
    """Create networks, all or none; `manager` None: the deployment's.

    Raise BadRequest for invalid ranges, Conflict for ranges in use.
    """
    name = manager or options.manager
    _check_request(request, name)
    _check_size(request, options)
    taken = [IPv4Network(cidr) for cidr in rows.taken(conn)]
    there = rows.listed(conn)
    outlined = {one.vlan: one.label for one in networks_without_subnet.listed(conn) if one.vlan is not None}
    request = _numbered(request, options, there, outlined) if name == VLAN else request
    request = _with_range_v6(request, options, there)
    cut = subnetting.cut(request.cidr, request.count, request.size_of(options), taken)
    for one in cut:
        subnetting.check_usable(one)
    _check_outside(conn, cut)
    drafts = MANAGERS[name].drafts(request, options, cut)
    _check_vlans(drafts, outlined)
    _check(drafts, there)
    made = [rows.create(conn, draft) for draft in drafts]
    result = rows.by_ids(conn, made)
    return [result[network_id] for network_id in made]


def _check_request(request: CreationRequest, name: str) -> None:
    """Raise BadRequest for an unknown manager, or a request that it cannot serve."""
    if name not in MANAGERS:
        raise BadRequest(f"There is no network manager {name!r}, only {', '.join(MANAGERS)}")
    if not 1 <= request.count <= MOST_AT_ONCE:
        raise BadRequest(f"num_networks must be between 1 and {MOST_AT_ONCE}")
    if request.project_id is not None and name != VLAN:
        raise BadRequest(f"Networks of the manager {name} are shared: only networks with a VLAN have a project")


def _with_range_v6(request: CreationRequest, options: NetworkOptions, there: Sequence[Network]) -> CreationRequest:
    """Return the request with a range of the deployment, if it names none and networks have IPv6."""
    if request.cidr_v6 is not None or not options.use_ipv6:
        return request
    return replace(request, place_v6=place_v6(options.range_v6, request.count, there))


def _check_vlans(drafts: Sequence[Draft], outlined: dict[int, str]) -> None:
    """Raise Conflict if a VLAN belongs to a network that is still to be created."""
    for draft in drafts:
        if draft.vlan in outlined:
            raise Conflict(f"VLAN {draft.vlan} belongs to network {outlined[draft.vlan]}: choose another vlan_start")


def _check_size(request: CreationRequest, options: NetworkOptions) -> None:
    size = 1 << (32 - subnetting.prefix_length(request.size_of(options)))
    if request.count * size > MOST_ADDRESSES:
        raise BadRequest(
            f"{request.count} networks of {size} addresses are more than {MOST_ADDRESSES} at once: ask for fewer"
        )


def _check_outside(conn: Connection, cut: Sequence[IPv4Network]) -> None:
    """Raise Conflict if addresses would be both a network's and floating ones."""
    pools = [IPv4Network(pool.cidr) for pool in floating_pools.pools(conn)]
    result = next(((one, pool) for one in cut for pool in pools if one.overlaps(pool)), None)
    if result is not None:
        raise Conflict(f"{result[0]} overlaps {result[1]}, the range of a pool of floating addresses")


def place_v6(cidr: IPv6Network, count: int, there: Sequence[Network]) -> int:
    """Return the first of `count` consecutive unused prefixes, as an index from the beginning of the range."""
    prefixes = (network.cidr_v6 for network in there if network.cidr_v6 is not None)
    first = int(cidr.network_address)
    return _free(
        0, count, {(int(prefix.network_address) - first) >> 64 for prefix in prefixes if prefix.subnet_of(cidr)}
    )


def _numbered(
    request: CreationRequest, options: NetworkOptions, there: Sequence[Network], outlined: Collection[int]
) -> CreationRequest:
    """Fill in the first unused consecutive VLANs and cloudpipe ports where the request names none.

    A VLAN's bridge is named by its number, so a VLAN is used if another network has that bridge.
    """
    vlan, port = request.vlan_start, request.vpn_start
    if vlan is None:
        named = {int(bridge[2:]) for one in there if re.fullmatch(r"br\d{1,4}", bridge := one.bridge or "")}
        vlan = _free(options.vlan_start, request.count, {network.vlan for network in there} | named | set(outlined))
    if port is None:
        port = _free(options.vpn_start, request.count, {network.vpn_public_port for network in there})
    return replace(request, vlan_start=vlan, vpn_start=port)


def _free(start: int, count: int, taken: Collection[int | None]) -> int:
    """Return the first number from which `count` numbers are unused."""
    blocked = sorted(number for number in taken if number is not None and number >= start)
    for number in blocked:
        if start + count <= number:
            break
        start = number + 1
    return start


_TAKEN = {
    "label": "Network with label {} already exists",
    "vlan": "VLAN {} belongs to another network: choose another vlan_start",
    "vpn_public_port": "Port {} belongs to another network's cloudpipe: choose another vpn_start",
    "cidr_v6": "Network with cidr_v6 {} already exists",
}
"""Fields that are unique among networks, and the refusal of a value that another network has."""


def _check(drafts: Sequence[Draft], there: Sequence[Network]) -> None:
    """Raise Conflict if a draft duplicates a unique value, BadRequest for an invalid interface name."""
    taken = {field: {getattr(network, field) for network in there} - {None} for field in _TAKEN}
    for draft in drafts:
        _check_names(draft)
        for field, message in _TAKEN.items():
            value = getattr(draft, field)
            if value in taken[field]:
                raise Conflict(message.format(value))
        if draft.manager != FLAT:
            _check_bridge(draft, there)


def _check_names(draft: Draft) -> None:
    try:
        for name in (draft.bridge, draft.bridge_interface):
            if name is not None:
                interface_names.interface(name)
    except NetworkError as error:
        raise BadRequest(str(error)) from None


def _check_bridge(draft: Draft, there: Sequence[Network]) -> None:
    for network in there:
        if network.bridge == draft.bridge:
            raise Conflict(f"Bridge {draft.bridge} belongs to network {network.label}: choose another one")
        alone = draft.vlan is None and draft.bridge_interface is not None
        if alone and network.bridge_interface == draft.bridge_interface:
            raise Conflict(f"Interface {draft.bridge_interface} is in the bridge of network {network.label}")


def delete(conn: Connection, network_id: str) -> None:
    """Delete a network. Raise NotFound; Conflict while a project owns it or its addresses are in use."""
    network = get(conn, network_id, lock=True)
    if network.project_id is not None:
        raise Conflict(f"Network must be disassociated from project {network.project_id} before delete")
    _check_unused(conn, network_id)
    rows.delete(conn, network_id)
    _notify_host(conn, network)


def associate(conn: Connection, network_id: str, project_id: str) -> None:
    """Associate a network with a project. Raise NotFound; Conflict if another owns it, BadRequest if it has no VLAN."""
    network = get(conn, network_id, lock=True)
    if network.manager != VLAN:
        raise BadRequest(f"Network {network_id} is shared: only networks with a VLAN have a project")
    if network.project_id not in (None, project_id):
        raise Conflict(f"Network {network_id} is associated with another project")
    rows.associate(conn, network_id, project_id)


def disassociate(conn: Connection, network_id: str) -> None:
    """Disassociate a network from its project and its host. Raise NotFound; Conflict while its addresses are in use."""
    network = get(conn, network_id, lock=True)
    _check_unused(conn, network_id)
    rows.associate(conn, network_id, None, unhost=True)
    _notify_host(conn, network)


def add_to_project(conn: Connection, project_id: str) -> Network:
    """Associate the lowest unowned network with a project. Raise NoMoreNetworks."""
    result = rows.assign_vlan(conn, project_id, more=True)
    if result is None:
        raise NoMoreNetworks
    return result


def get(conn: Connection, network_id: str, *, lock: bool = False) -> Network:
    """Return the network. Raise NotFound. `lock`: no server gets an interface in it until the transaction ends."""
    if lock:
        rows.lock(conn, network_id)
    result = rows.by_ids(conn, [network_id]).get(network_id)
    if result is None:
        raise NotFound(f"Network {network_id} could not be found.")
    return result


def _check_unused(conn: Connection, network_id: str) -> None:
    used = rows.in_use(conn, network_id)
    if not used and ports.in_network(conn, network_id):
        raise Conflict(f"Network {network_id} has ports in use: delete them first")
    if not used:
        return
    own = [one for one in vpn.cloudpipes(conn) if one["network_id"] == network_id]
    hint = f", one of them by its cloudpipe: run climate cloudpipe delete {own[0]['project_id']}" if own else ""
    raise Conflict(f"Network {network_id} has {used} addresses in use{hint}")


def _notify_host(conn: Connection, network: Network) -> None:
    if network.host is not None:
        network_hosts.call(conn, [network.host])
