"""Networks, subnets and ports, read-only."""

from collections.abc import Iterable
from ipaddress import IPv4Network
from typing import Any

from flask import Blueprint, request

from api.compute import asked
from api.current import caller, deployment
from climate.compute import Compute
from climate.compute.store import addresses
from climate.domain.errors import NotFound

Body = dict[str, Any]

blueprint = Blueprint("network-networks", __name__, url_prefix="/network/v2.0")

PAGING = frozenset({"limit", "marker", "fields", "sort_key", "sort_dir", "page_reverse"})


def compute() -> Compute:
    return deployment().compute


@blueprint.get("/networks")
def listing() -> Body:
    """The networks that fit the query."""
    return {"networks": _fitting(_network(row) for row in _rows())}


@blueprint.get("/networks/<network_id>")
def show(network_id: str) -> Body:
    """One network, by its id; a name is nobody's."""
    return {"network": _one((_network(row) for row in _rows()), network_id, "Network")}


@blueprint.get("/subnets")
def subnets() -> Body:
    """The subnets that fit the query: each network has one."""
    return {"subnets": _fitting(_subnet(row) for row in _rows())}


@blueprint.get("/subnets/<subnet_id>")
def subnet(subnet_id: str) -> Body:
    """One subnet."""
    return {"subnet": _one((_subnet(row) for row in _rows()), subnet_id, "Subnet")}


@blueprint.get("/ports")
def ports() -> Body:
    """The addresses in use that fit the query."""
    return {"ports": _fitting(_port(row) for row in _ports())}


@blueprint.get("/ports/<port_id>")
def port(port_id: str) -> Body:
    """One address in use."""
    return {"port": _one((_port(row) for row in _ports()), port_id, "Port")}


@blueprint.get("/floatingips")
def floating() -> Body:
    """There are none."""
    asked.may_read()
    return {"floatingips": []}


@blueprint.get("/security-groups")
def security_groups() -> Body:
    """The one that lets everything through."""
    asked.may_read()
    return {"security_groups": []}


@blueprint.get("/extensions")
def extensions() -> Body:
    """There are none."""
    return {"extensions": []}


@blueprint.get("/extensions/<alias>")
def extension(alias: str) -> Body:
    """There are none."""
    raise NotFound(f"Extension with alias {alias[:80]} does not exist")


def _rows() -> list[Body]:
    asked.may_read()
    with compute().engine.connect() as conn:
        return addresses.networks(conn)


def _ports() -> list[Body]:
    asked.may_read()
    wanted = {"server_id": request.args.get("device_id"), "project_id": asked.own_project()}
    with compute().engine.connect() as conn:
        return addresses.ports(conn, wanted)


def _fitting(things: Iterable[Body]) -> list[Body]:
    """Those whose keys have the values of the query; a key that is not theirs fits nothing."""
    wanted = {key: values for key, values in request.args.lists() if key not in PAGING}
    return [
        thing
        for thing in things
        if all(key in thing and str(thing[key]).lower() in _lower(values) for key, values in wanted.items())
    ]


def _lower(values: Iterable[str]) -> set[str]:
    return {value.lower() for value in values}


def _one(things: Iterable[Body], wanted: str, what: str) -> Body:
    for thing in things:
        if thing["id"] == wanted:
            return thing
    raise NotFound(f"{what} {wanted[:80]} could not be found.")


def _network(row: Body) -> Body:
    seen: Body = {
        "id": row["id"],
        "name": row["label"],
        "status": "ACTIVE",
        "admin_state_up": True,
        "shared": True,
        "router:external": False,
        "subnets": [row["subnet_id"]],
        "mtu": 1500,
        "tenant_id": "",
        "project_id": "",
        "availability_zones": ["nova"],
        "port_security_enabled": False,
        "is_default": True,
        "description": "",
        "created_at": f"{row['created_at']:%Y-%m-%dT%H:%M:%SZ}",
        "updated_at": f"{row['created_at']:%Y-%m-%dT%H:%M:%SZ}",
    }
    return seen | ({"provider:network_type": "flat", "provider:physical_network": None} if caller().is_admin else {})


def _subnet(row: Body) -> Body:
    network = IPv4Network(row["cidr"])
    return {
        "id": row["subnet_id"],
        "name": row["label"],
        "network_id": row["id"],
        "cidr": row["cidr"],
        "gateway_ip": row["gateway"],
        "ip_version": 4,
        "enable_dhcp": False,
        "allocation_pools": [{"start": str(network[2]), "end": str(network[-2])}],
        "dns_nameservers": [],
        "host_routes": [],
        "tenant_id": "",
        "project_id": "",
    }


def _port(row: Body) -> Body:
    return {
        "id": row["port_id"],
        "name": "",
        "network_id": row["network_id"],
        "device_id": row["server_id"],
        "device_owner": "compute:nova",
        "mac_address": row["mac"],
        "fixed_ips": [{"subnet_id": row["subnet_id"], "ip_address": row["address"]}],
        "status": "ACTIVE" if row["status"] == "ACTIVE" else "DOWN",
        "admin_state_up": True,
        "security_groups": [],
        "tenant_id": row["project_id"],
        "project_id": row["project_id"],
    }
