"""Hypervisors: the nodes of the cloud, for administrators."""

import json

from flask import request

from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.cells import unreachable_cells
from api.compute.microversion import since
from api.paging import cut, next_links, page
from api.request_context import compute, here
from climate.compute.cells.state import inventory
from climate.compute.models.node import Node
from climate.domain.errors import NotFound

Body = dict[str, object]

blueprint = compute_blueprint("hypervisors")

IN_MAINTENANCE = "it is in maintenance: "


@blueprint.get("/os-hypervisors")
def listing() -> Body:
    """List nodes by name and id only."""
    result, more = _listed()
    return {"hypervisors": _with_servers(result, [_brief(node) for node in result])} | more


@blueprint.get("/os-hypervisors/detail")
def detailed() -> Body:
    """List nodes with all details; with `with_maintenance` also the reason of their maintenance, if there is one."""
    result, more = _listed()
    return {"hypervisors": _with_servers(result, [_full(node) for node in result])} | more


@blueprint.get("/os-hypervisors/statistics")
def statistics() -> Body:
    """Show the sums over all nodes."""
    validation.may_administer()
    known = inventory.nodes_of(compute())
    numbers = [_numbers(node) for node in known.items]
    keys = numbers[0] if numbers else ()
    sums = {"count": len(numbers)} | {key: sum(each[key] for each in numbers) for key in keys}
    return {"hypervisor_statistics": sums} | unreachable_cells.unreachable(known.missing)


@blueprint.get("/os-hypervisors/<node_id>")
def show(node_id: str) -> Body:
    """Show one node by its id; names are not accepted."""
    node = _find(node_id)
    return {"hypervisor": _with_servers([node], [_full(node)])[0]}


@blueprint.get("/os-hypervisors/<node_id>/uptime")
def uptime(node_id: str) -> Body:
    """Show a node with `uptime` null, because drivers do not report it."""
    return {"hypervisor": _brief(_find(node_id)) | {"uptime": "not known"}}


@blueprint.get("/os-hypervisors/<pattern>/search")
def search(pattern: str) -> Body:
    """List the nodes whose name contains a text; only before 2.53."""
    return {"hypervisors": [_brief(node) for node in _matching(pattern)]}


@blueprint.get("/os-hypervisors/<pattern>/servers")
def servers(pattern: str) -> Body:
    """List the nodes whose name contains a text, with their servers; only before 2.53."""
    result = _matching(pattern)
    return {"hypervisors": _add_servers(result, [_brief(node) for node in result])}


def _matching(pattern: str) -> list[Node]:
    validation.may_administer()
    if since(53):
        raise NotFound("Since 2.53 use GET /os-hypervisors?hypervisor_hostname_pattern=…&with_servers=true.")
    nodes = [node for node in inventory.nodes_of(compute()).items if pattern in node.name]
    if not nodes:
        raise NotFound(f"No hypervisor matching '{pattern[:80]}' could be found.")
    return nodes


def _with_servers(nodes: list[Node], views: list[Body]) -> list[Body]:
    """Return the views, with the servers of their nodes if the query asks for them; since 2.53."""
    return _add_servers(nodes, views) if since(53) and validation.query_flag("with_servers") else views


def _add_servers(nodes: list[Node], views: list[Body]) -> list[Body]:
    there = inventory.servers_by_node(compute(), nodes)
    for node, view in zip(nodes, views, strict=True):
        view["servers"] = [{"uuid": server_id, "name": name} for server_id, name in there[node.uuid]]
    return views


def _listed() -> tuple[list[Node], Body]:
    validation.may_administer()
    pattern = request.args.get("hypervisor_hostname_pattern", "")
    known = inventory.nodes_of(compute())
    nodes = [node for node in known.items if pattern in node.name]
    if pattern and not nodes:
        raise NotFound(f"No hypervisor matching '{pattern[:80]}' could be found.")
    wanted = page()
    shown, more = cut(nodes, wanted, _id)
    links = {"hypervisors_links": next_links(here(), _id(shown[-1]), wanted)} if more else {}
    return shown, links | unreachable_cells.unreachable(known.missing)


def _find(node_id: str) -> Node:
    validation.may_administer()
    known = inventory.nodes_of(compute())
    for node in known.items:
        if node_id == _id(node):
            return node
    unreachable_cells.check_is_known(known.missing, node_id)
    raise NotFound(f"Hypervisor with ID '{node_id[:80]}' could not be found.")


def _id(node: Node) -> str:
    return str(_shown_id(node))


def _shown_id(node: Node) -> str | int:
    return node.uuid if since(53) or inventory.is_foreign(node.uuid) else node.id


def _brief(node: Node) -> Body:
    return {
        "id": _shown_id(node),
        "hypervisor_hostname": node.name,
        "state": "up" if node.up else "down",
        # Nova has no maintenance of single hypervisors; for its clients such a node is disabled.
        "status": "enabled" if node.enabled and node.maintenance is None else "disabled",
    }


def _full(node: Node) -> Body:
    service = {
        "id": node.service_uuid if since(53) or inventory.is_foreign(node.uuid) else node.service_id,
        "host": node.service_host,
        "disabled_reason": node.disabled_reason if node.maintenance is None else IN_MAINTENANCE + node.maintenance,
    }
    more = {
        "hypervisor_type": node.hypervisor_type,
        "hypervisor_version": node.hypervisor_version,
        "host_ip": node.host_ip,
        "cpu_info": _cpu_info(node) if since(28) else node.cpu_info,
        "service": service,
    }
    # Strict clients refuse keys that Nova does not have.
    own = {"climate:maintenance": node.maintenance} if validation.query_flag("with_maintenance") else {}
    return _brief(node) | _numbers(node) | more | own


def _cpu_info(node: Node) -> Body:
    """Return the CPU info as an object; rows of an earlier release may hold any text."""
    try:
        read = json.loads(node.cpu_info or "{}")
    except ValueError:
        return {"model": node.cpu_info}
    return read if isinstance(read, dict) else {"model": node.cpu_info}


def _numbers(node: Node) -> dict[str, int]:
    used_ram, used_gb = node.used_ram_mb + node.reserved_ram_mb, -(-(node.used_disk_mb + node.reserved_disk_mb) // 1024)
    return {
        "vcpus": node.vcpus,
        "vcpus_used": node.used_vcpus,
        "memory_mb": node.memory_mb,
        "memory_mb_used": used_ram,
        "free_ram_mb": node.memory_mb - used_ram,
        "local_gb": node.local_gb,
        "local_gb_used": used_gb,
        "free_disk_gb": node.local_gb - used_gb,
        "disk_available_least": node.local_gb - used_gb,
        "running_vms": node.servers,
        "current_workload": 0,
    }
