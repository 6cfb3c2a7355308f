"""Floating addresses many at a time, for administrators: put into pools, taken out of them; below 2.36."""

from ipaddress import IPv4Address, IPv4Network, summarize_address_range
from typing import Any

from sqlalchemy import Connection

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import proxied
from api.compute.networks import ip_validation
from api.request_context import compute
from climate.compute.errors import Conflict
from climate.compute.network import floating_ips
from climate.compute.store.networks import floating_ips as rows
from climate.compute.store.networks import floating_pools
from climate.compute.store.networks.floating_ips import Floating
from climate.connections import reading
from climate.domain.errors import InvalidInput, NotFound

Body = dict[str, Any]

blueprint = compute_blueprint("floating-bulk")
blueprint.before_request(proxied)

CREATE, DELETE = "floating_ips_bulk_create", "floating_ips_bulk_delete"
KNOWN = frozenset({"ip_range", "pool", "interface", "cidr", "gateway"})


@blueprint.get("/os-floating-ips-bulk")
def listing() -> Body:
    """All addresses of all pools, and who has them."""
    return {"floating_ip_info": [_view(row) for row in _rows()]}


@blueprint.get("/os-floating-ips-bulk/<host>")
def of_host(host: str) -> Body:
    """Those that a network service serves."""
    found = [_view(row) for row in _rows() if row.host == host]
    if not found:
        raise NotFound(f"No floating addresses are served by host {host[:80]}.")
    return {"floating_ip_info": found}


@blueprint.post("/os-floating-ips-bulk")
def create() -> Body:
    """Put a range of addresses into a pool, which is made if there is none of that name."""
    validation.may_administer()
    given = validation.part(read_object(), CREATE)
    unknown = sorted(set(given) - KNOWN)
    if unknown:
        raise InvalidInput(f"{CREATE}: {unknown[0][:60]!r} cannot be set; there are {', '.join(sorted(KNOWN))}")
    first, last = ip_validation.stretch(given.get("ip_range"), "ip_range")
    name = validation.name(given.get("pool") or compute().network.floating_pool, "pool")
    with compute().engine.begin() as conn:
        there = next((pool for pool in floating_pools.pools(conn) if pool["name"] == name), None)
        pool_id = _make(conn, name, given, (first, last)) if there is None else str(there["id"])
        if there is not None:
            _check_same(there, given)
        if not floating_ips.add(conn, pool_id, first, last, compute().network.own):
            raise Conflict(f"{first} to {last}: all of them that can be handed out are in the pool already")
    interface = given.get("interface") or (compute().network.public_interface if there is None else there["interface"])
    return {CREATE: {"ip_range": given["ip_range"], "pool": name, "interface": interface}}


@blueprint.put("/os-floating-ips-bulk/delete")
def delete() -> Body:
    """Take a range of addresses, which no project has, out of their pool."""
    validation.may_administer()
    body = read_object()
    first, last = ip_validation.stretch(body.get("ip_range"), "ip_range")
    with compute().engine.begin() as conn:
        pool = next((one for one in floating_pools.pools(conn) if _has(one, first, last)), None)
        if pool is None:
            raise NotFound(f"No pool has the addresses {first} to {last}.")
        floating_ips.remove(conn, str(pool["id"]), first, last)
    return {DELETE: body["ip_range"]}


def _make(conn: Connection, name: str, given: Body, stretch: tuple[IPv4Address, IPv4Address]) -> str:
    """A pool of the network that is named, else of the smallest that has all of the addresses and an end of its own."""
    floating_ips.counted(*stretch)
    cidr = _around(*stretch) if given.get("cidr") is None else ip_validation.cidr(given["cidr"], "cidr")
    gateway = None if given.get("gateway") is None else ip_validation.address(given["gateway"], "gateway")
    interface = ip_validation.interface(given.get("interface") or compute().network.public_interface, "interface")
    return floating_ips.make_pool(conn, name, cidr, gateway=gateway, interface=interface)


def _around(first: IPv4Address, last: IPv4Address) -> IPv4Network:
    whole = next(iter(summarize_address_range(first, last)))
    while last not in whole:
        whole = whole.supernet()
    return whole


def _check_same(there: Body, given: Body) -> None:
    for key in ("interface", "cidr", "gateway"):
        if given.get(key) not in (None, there[key]):
            raise InvalidInput(f"{key} of pool {there['name']} is {there[key]}, and stays so")


def _has(pool: Body, first: IPv4Address, last: IPv4Address) -> bool:
    cidr = IPv4Network(pool["cidr"])
    return first in cidr and last in cidr


def _rows() -> list[Floating]:
    validation.may_administer()
    with reading(compute().engine) as conn:
        return rows.listed(conn, free=True)


def _view(row: Floating) -> Body:
    return {
        "address": row.address,
        "pool": row.pool,
        "interface": row.interface,
        "project_id": row.project_id,
        "instance_uuid": row.server_id,
        "fixed_ip": row.fixed_address,
    }
