"""climate floating: floating IPs of the cloud and their pools; `reservable` below it has those that can be reserved."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Unpack

import click

from climate.cli import lookup
from climate.cli.connection.http_protocols import Sent
from climate.cli.connection.session import current
from climate.cli.errors import NOT_FOUND, Failure
from climate.cli.networks.network import call
from climate.cli.options import listed, output_options

if TYPE_CHECKING:
    from climate.cli.connection.client import Json
    from climate.cli.response_types.networks import FloatingIp, Network, PoolFigures, Port, Subnet

PATH = "/v2.0/floatingips"
COLUMNS = ("id", "floating_ip_address", "fixed_ip_address", "status", "project_id", "tags")
POOLS = ("id", "name", "cidr", "gateway_ip", "addresses", "total_ips", "used_ips")

KEY = "floating_ips_bulk_create"


@click.group("floating")
def group() -> None:
    """Floating IPs: those of servers, their pools, and those that can be reserved."""


def _request(method: str, path: str, **sent: Unpack[Sent]) -> "Json":
    return current().client.json("network", method, path, **sent)


def _floating(wanted: str) -> "FloatingIp":
    """Return a floating IP by its id or its address."""
    listed: Iterable[FloatingIp] = current().client.pages("network", PATH, "floatingips")
    return lookup.only("floating", wanted, listed, "floating_ip_address", "floating address")


def _pools() -> "list[Network]":
    return list(_request("GET", "/v2.0/networks", params={"router:external": "True"})["networks"])


def _port(server: str, fixed: str | None) -> dict[str, str]:
    """Return the port to associate: a server's first one, or the one with this fixed IP."""
    server_id = lookup.server(current().client, server)["id"]
    ports: list[Port] = _request("GET", "/v2.0/ports", params={"device_id": server_id})["ports"]
    held = [port for port in ports if fixed is None or fixed in [one["ip_address"] for one in port["fixed_ips"]]]
    if not held:
        raise Failure(
            f"server {server!r} has no address {fixed or 'at all'}", NOT_FOUND, f"`climate server show {server}`"
        )
    return {"port_id": held[0]["id"], **({"fixed_ip_address": fixed} if fixed else {})}


@group.command("create")
@click.argument("pool", required=False)
@click.option("--address", "floating_ip_address", help="Allocate this address.")
@click.option("--description", help="Description of the address.")
@click.option("--server", help="Associate it with this server, by name or id.")
@output_options
def create(pool: str | None, server: str | None, **given: str | None) -> None:
    """Allocate a floating IP from a POOL; the POOL may be omitted if there is only one."""
    pools = _pools()
    if pool is None and len(pools) != 1:
        raise click.UsageError(f"name a POOL of {', '.join(one['name'] for one in pools) or 'none'}")
    chosen = pools[0] if pool is None else lookup.only("floating pool", pool, pools)
    wanted = {key: value for key, value in given.items() if value is not None}
    body: dict[str, object] = {"floating_network_id": chosen["id"], **wanted}
    body |= {} if server is None else _port(server, None)
    current().show(_request("POST", PATH, json={"floatingip": body})["floatingip"])


@group.command("list")
@listed
def list_() -> None:
    """List floating IPs."""
    current().show_all(current().client.pages("network", PATH, "floatingips"), COLUMNS)


@group.command("show")
@click.argument("floating")
@output_options
def show(floating: str) -> None:
    """Show a floating IP by its id or its address."""
    current().show(_floating(floating))


@group.command("delete")
@click.argument("floatings", nargs=-1, required=True, metavar="FLOATING...")
def delete(floatings: tuple[str, ...]) -> None:
    """Release floating IPs to their pools."""
    for one in [_floating(floating) for floating in floatings]:
        _request("DELETE", f"{PATH}/{one['id']}")


@group.command("associate")
@click.argument("floating")
@click.argument("server")
@click.option("--fixed", help="Fixed IP of the server; by default its first one.")
@output_options
def associate(floating: str, server: str, fixed: str | None) -> None:
    """Associate a floating IP with a server; a former association is replaced."""
    _put(floating, _port(server, fixed))


@group.command("disassociate")
@click.argument("floating")
@output_options
def disassociate(floating: str) -> None:
    """Disassociate a floating IP from its server."""
    _put(floating, {"port_id": None})


def _put(floating: str, body: Mapping[str, object]) -> None:
    path = f"{PATH}/{_floating(floating)['id']}"
    current().show(_request("PUT", path, json={"floatingip": body})["floatingip"])


@group.group("pool")
def pool_group() -> None:
    """Pools of floating IPs, which are external networks."""


@pool_group.command("create")
@click.argument("name")
@click.argument("cidr", metavar="RANGE")
@click.option("--addresses", metavar="FIRST-LAST", help="Allocation range of the pool; by default the whole range.")
@click.option("--gateway", help="Router of the network, which is never allocated.")
@click.option("--interface", help="Interface of network hosts to this network; by default the deployment's.")
@output_options
def pool_create(name: str, cidr: str, addresses: str | None, gateway: str | None, interface: str | None) -> None:
    """Create a pool of an external network, like 203.0.113.0/24 (administrator)."""
    body = {"ip_range": addresses or cidr, "pool": name, "cidr": cidr, "gateway": gateway, "interface": interface}
    current().show(call("POST", "/os-floating-ips-bulk", json={KEY: body})[KEY])


@pool_group.command("add")
@click.argument("pool")
@click.argument("addresses", metavar="FIRST-LAST")
@output_options
def pool_add(pool: str, addresses: str) -> None:
    """Add addresses of its network to a pool (administrator)."""
    name = lookup.only("floating pool", pool, _pools())["name"]
    body = {"ip_range": addresses, "pool": name}
    current().show(call("POST", "/os-floating-ips-bulk", json={KEY: body})[KEY])


@pool_group.command("list")
@listed
def pool_list() -> None:
    """List the pools with their allocation ranges; administrators see the number of used addresses."""
    outside = {row["id"]: row for row in _pools()}
    known: list[Subnet] = _request("GET", "/v2.0/subnets")["subnets"]
    subnets = {row["network_id"]: row for row in known}
    figures = _figures() if any("provider:network_type" in row for row in outside.values()) else {}
    rows = [
        {**subnets[key], **figures.get(key, {}), "id": key, "name": row["name"], "addresses": _ranges(subnets[key])}
        for key, row in outside.items()
        if key in subnets
    ]
    current().show_all(rows, POOLS if figures else POOLS[:5])


def _figures() -> dict[str, dict[str, object]]:
    rows: list[PoolFigures] = _request("GET", "/v2.0/network-ip-availabilities")["network_ip_availabilities"]
    return {row["network_id"]: {"total_ips": row["total_ips"], "used_ips": row["used_ips"]} for row in rows}


def _ranges(subnet: "Subnet") -> str:
    return " ".join(f"{one['start']}-{one['end']}" for one in subnet["allocation_pools"])
