"""Hosts API of Nova, until microversion 2.42: service hosts, their nodes, and their maintenance."""

from collections.abc import Mapping, Sequence

from flask import request
from werkzeug.exceptions import NotImplemented as NoSuchThing

from api.audited import audited
from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.cells import unreachable_cells
from api.compute.microversion import since
from api.compute.nodes import service_bodies
from api.request_context import compute, deployment
from climate.compute.cells.state import inventory
from climate.compute.models.aggregate import INTERNAL
from climate.compute.models.node import Node, Service
from climate.compute.network.operations import agents_and_ip_availability
from climate.compute.nodes import maintenance, services
from climate.compute.reservations import pools
from climate.domain.errors import NotFound

Body = dict[str, object]

DEFAULT_REASON = "in maintenance"

blueprint = compute_blueprint("hosts")


@blueprint.get("/os-hosts")
def listing() -> Body:
    """List the hosts of compute and network services with their zones; a top cell lists those of all cells."""
    _may_administer()
    known = inventory.services_of(compute())
    zone, usual = request.args.get("zone"), deployment().settings.default_availability_zone
    views = [
        {"host_name": service.host, "service": "compute", "zone": service.zone or usual} for service in known.items
    ]
    network_hosts = [str(one["host"]) for one in agents_and_ip_availability.services(compute())]
    views += [{"host_name": host, "service": "network", "zone": INTERNAL} for host in network_hosts]
    hosts = [host for host in views if zone in (None, "", host["zone"])]
    return {"hosts": hosts} | unreachable_cells.unreachable(known.missing)


@blueprint.get("/os-hosts/<name>")
def show(name: str) -> Body:
    """Show the capacity and the usage of a service host or a node."""
    _may_administer()
    nodes = _known_nodes(name)
    total = {"cpu": "vcpus", "memory_mb": "memory_mb", "disk_gb": "local_gb"}
    used = {"cpu": "used_vcpus", "memory_mb": "used_ram_mb", "disk_gb": "used_disk_mb"}
    taken = _sums(nodes, used)
    taken["disk_gb"] = -(-taken["disk_gb"] // 1024)
    return {
        "host": [
            {"resource": {"host": name, "project": "(total)"} | _sums(nodes, total)},
            {"resource": {"host": name, "project": "(used_now)"} | taken},
        ]
    }


@blueprint.put("/os-hosts/<name>")
def update(name: str) -> Body:
    """Start or end the maintenance of a node (`maintenance_mode`), or disable a service host (`status`).

    Beyond Nova: `reason` is stored as the reason of the maintenance.
    """
    _may_administer()
    given = service_bodies.host(read_object())
    status, mode = given.get("status"), given.get("maintenance_mode")
    reason = given.get("reason", DEFAULT_REASON)
    service = _service(name) if status is not None else None
    answer: Body = {"host": name}
    if mode is not None:
        maintenance.maintain(audited(), name, reason if mode else None)
        answer["maintenance_mode"] = "on_maintenance" if mode else "off_maintenance"
    if service is not None:
        maintenance.change(audited(), service, enabled=status)
        answer["status"] = "enabled" if status else "disabled"
    return answer


@blueprint.get("/os-hosts/<name>/reboot")
@blueprint.get("/os-hosts/<name>/shutdown")
@blueprint.get("/os-hosts/<name>/startup")
def switch(name: str) -> Body:
    """Refuse to switch a host: its power belongs to the reservation API."""
    _may_administer()
    _known_nodes(name)
    raise NoSuchThing(
        "Compute does not switch hosts: use POST /v1/os-hosts/<id>/power/on or /off of the reservation API."
    )


def _known_nodes(name: str) -> list[Node]:
    """Return the nodes of a service host, or the node of a name; NotFound if there is neither."""
    nodes = [node for node in pools.nodes(compute()) if name in (node.name, node.service_host)]
    if not nodes and not services.listed(compute(), name):
        raise NotFound(f"Host {name[:80]} could not be found.")
    return nodes


def _may_administer() -> None:
    validation.may_administer()
    if since(43):
        raise NotFound("The hosts API ends at 2.42: use os-services and os-hypervisors.")


def _service(name: str) -> Service:
    unreachable_cells.check_is_here(name)
    known = services.listed(compute(), name)
    if not known:
        raise NotFound(f"Compute host {name[:80]} could not be found.")
    return known[0]


def _sums(nodes: Sequence[Node], fields: Mapping[str, str]) -> dict[str, int]:
    return {said: sum(getattr(node, field) for node in nodes) for said, field in fields.items()}
