"""Availability zones: labels of nodes."""

from typing import Any

from api.compute import asked
from api.compute.blueprint import compute_blueprint
from api.compute.servers import compute
from api.compute.services import BINARY
from climate.compute import lending
from climate.compute.host import DEFAULT_ZONE, Node
from climate.compute.store import services

Body = dict[str, Any]

blueprint = compute_blueprint("zones")


@blueprint.get("/os-availability-zone")
def listing() -> Body:
    """The zones, and whether any of their nodes is up."""
    asked.may_read()
    return {"availabilityZoneInfo": [_zone(name, nodes) | {"hosts": None} for name, nodes in _zones().items()]}


@blueprint.get("/os-availability-zone/detail")
def detailed() -> Body:
    """The zones with the services behind them, for administrators."""
    asked.may_administer()
    with compute().engine.connect() as conn:
        beats = {service.host: service.beat_at for service in services.listed(conn, compute().now(conn))}
    zones = []
    for name, nodes in _zones().items():
        hosts = {
            node.service_host: {
                BINARY: {
                    "available": node.up,
                    "active": node.enabled,
                    "updated_at": f"{beats[node.service_host]:%Y-%m-%dT%H:%M:%S.%f}",
                }
            }
            for node in nodes
        }
        zones.append(_zone(name, nodes) | {"hosts": hosts})
    return {"availabilityZoneInfo": zones}


def _zones() -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {DEFAULT_ZONE: []}
    for node in lending.nodes(compute()):
        found.setdefault(node.zone or DEFAULT_ZONE, []).append(node)
    return found


def _zone(name: str, nodes: list[Node]) -> Body:
    return {"zoneName": name, "zoneState": {"available": any(node.up and node.enabled for node in nodes)}}
