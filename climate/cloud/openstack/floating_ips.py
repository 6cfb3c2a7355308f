"""Floating IPs of Neutron for projects, marked by their description at creation, and by tags."""

from collections.abc import Sequence

from climate.cloud import ExternalNetwork, ExternalSubnet, NotYet, Refused
from climate.cloud.openstack import fence_store
from climate.cloud.openstack.http import Body, Clash, Missing, Remote
from climate.cloud.openstack.pools import aggregates

SERVICE = "network"
MARK, POOL = "blazar", "reservation:"
"""Tags that Blazar uses; the second is followed by the name of the pool."""


def find(remote: Remote, network: str) -> ExternalNetwork | None:
    """Return the external network of that id or name, with its IPv4 subnets."""
    result = _network(remote, network)
    if result is None:
        return None
    listed = remote.get("/subnets", SERVICE, network_id=result["id"], ip_version="4")["subnets"]
    return ExternalNetwork(result["id"], result["name"], tuple(_subnet(each) for each in listed))


def lend(remote: Remote, pool: str, project_id: str, at: tuple[str, str], token: int) -> None:
    """Create an address for a project; `at` is the network's id and the address."""
    network_id, address = at
    fence_store.fence_pool(remote, aggregates.read_state(remote), pool, token)
    there = _at(remote, network_id, address)
    if there is None:
        there = _create(remote, pool, project_id, at)
    holder = _pool_of(there)
    if holder is None:
        raise Refused(f"the address {address} is in use")
    if holder != pool:
        raise NotYet(f"the address {address} belongs to the reservation {holder}")
    wanted, present = {MARK, f"{POOL}{pool}"}, set(there.get("tags") or ())
    if wanted - present:
        remote.put(f"/floatingips/{there['id']}/tags", {"tags": sorted(wanted | present)}, SERVICE)


def take_back(remote: Remote, pool: str, addresses: Sequence[str], token: int) -> None:
    """Delete addresses with the tags of a pool, and of the given addresses those without tags of another pool."""
    fence_store.fence_pool(remote, aggregates.read_state(remote), pool, token)
    mark = f"{POOL}{pool}"
    result = [*_listed(remote, tags=mark), *_listed(remote, description=mark)]
    for address in addresses:
        result += [each for each in _listed(remote, floating_ip_address=address) if _pool_of(each) is None]
    for known in {each["id"]: each for each in result}.values():
        _drop(remote, known)


def _network(remote: Remote, network: str) -> Body | None:
    outside = {"router:external": "true"}
    named = [*_networks(remote, id=network, **outside), *_networks(remote, name=network, **outside)]
    return named[0] if named else None


def _networks(remote: Remote, **query: str) -> list[Body]:
    return list(remote.get("/networks", SERVICE, **query)["networks"])


def _subnet(body: Body) -> ExternalSubnet:
    handed_out = tuple((each["start"], each["end"]) for each in body.get("allocation_pools") or ())
    return ExternalSubnet(body["id"], body["cidr"], body.get("gateway_ip"), handed_out)


def _listed(remote: Remote, **query: str) -> list[Body]:
    return list(remote.get("/floatingips", SERVICE, **query)["floatingips"])


def _at(remote: Remote, network_id: str, address: str) -> Body | None:
    result = _listed(remote, floating_network_id=network_id, floating_ip_address=address)
    return result[0] if result else None


def _create(remote: Remote, pool: str, project_id: str, at: tuple[str, str]) -> Body:
    network_id, address = at
    body = {
        "floating_network_id": network_id,
        "floating_ip_address": address,
        "project_id": project_id,
        "description": f"{POOL}{pool}",
    }
    try:
        made: Body = remote.post("/floatingips", {"floatingip": body}, SERVICE)["floatingip"]
    except Clash as clash:  # the address was free a moment ago
        raise NotYet(str(clash)) from clash
    return made


def _pool_of(body: Body) -> str | None:
    """Return the pool whose tags an address has; its owner may have changed one of them."""
    marks = [*(body.get("tags") or ()), body.get("description") or ""]
    return next((mark.removeprefix(POOL) for mark in marks if mark.startswith(POOL)), None)


def _drop(remote: Remote, body: Body) -> None:
    path = f"/floatingips/{body['id']}"
    try:
        if body.get("port_id"):
            remote.put(path, {"floatingip": {"port_id": None}}, SERVICE)
        remote.delete(path, SERVICE)
    except Missing:
        return
