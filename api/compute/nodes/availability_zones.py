"""Availability zones: labels of nodes, set by the metadata of their aggregates or by the nodes themselves."""

from collections.abc import Mapping

from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.nodes.services import BINARY
from api.request_context import compute, deployment
from climate.compute.models.aggregate import INTERNAL
from climate.compute.models.node import Node, Service
from climate.compute.nodes import services
from climate.compute.reservations import pools

Body = dict[str, object]

SCHEDULER = "nova-scheduler"
"""Name of the scheduler, which runs in the web process."""

blueprint = compute_blueprint("zones")


@blueprint.get("/os-availability-zone")
def listing() -> Body:
    """List the zones; a zone is available if any of its nodes takes servers."""
    validation.may_read()
    return {"availabilityZoneInfo": [_zone(name, nodes) | {"hosts": None} for name, nodes in _zones().items()]}


@blueprint.get("/os-availability-zone/detail")
def detailed() -> Body:
    """List the zones with their services, for administrators; the scheduler is in the zone `internal`."""
    validation.may_administer()
    known = {service.host: service for service in services.listed(compute())}
    zones = [_zone(name, nodes) | {"hosts": _hosts(nodes, known)} for name, nodes in _zones().items()]
    return {"availabilityZoneInfo": [*zones, _internal()]}


def _zones() -> Mapping[str, list[Node]]:
    result: dict[str, list[Node]] = {}
    for node in pools.nodes(compute()):
        result.setdefault(node.zone or deployment().settings.default_availability_zone, []).append(node)
    return dict(sorted(result.items()))


def _zone(name: str, nodes: list[Node]) -> Body:
    available = any(node.up and node.enabled and node.maintenance is None for node in nodes)
    return {"zoneName": name, "zoneState": {"available": available}}


def _hosts(nodes: list[Node], known: Mapping[str, Service]) -> Body:
    there = [known[host] for host in sorted({node.service_host for node in nodes}) if host in known]
    return {
        service.host: {
            BINARY: {
                "available": service.up,
                "active": service.enabled,
                "updated_at": f"{service.beat_at:%Y-%m-%dT%H:%M:%S.%f}",
            }
        }
        for service in there
    }


def _internal() -> Body:
    now = services.database_now(compute())
    scheduler = {"available": True, "active": True, "updated_at": f"{now:%Y-%m-%dT%H:%M:%S.%f}"}
    hosts = {deployment().settings.service_host: {SCHEDULER: scheduler}}
    return {"zoneName": INTERNAL, "zoneState": {"available": True}, "hosts": hosts}
