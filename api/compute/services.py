"""Compute services, for administrators."""

from typing import Any

from flask import request

from api.compute import asked
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.servers import compute
from climate.compute.host import DEFAULT_ZONE, Service
from climate.compute.store import services

Body = dict[str, Any]

BINARY = "nova-compute"
"""What clients call a compute service."""

blueprint = compute_blueprint("services")


@blueprint.get("/os-services")
def listing() -> Body:
    """The compute services, and whether they were heard of lately."""
    asked.may_administer()
    if request.args.get("binary", BINARY) != BINARY:
        return {"services": []}
    with compute().engine.connect() as conn:
        found = services.listed(conn, compute().now(conn), request.args.get("host") or None)
    return {"services": [_view(service) for service in found]}


def _view(service: Service) -> Body:
    seen: Body = {
        "id": service.uuid if since(53) else service.id,
        "binary": BINARY,
        "host": service.host,
        "zone": DEFAULT_ZONE,
        "status": "enabled" if service.enabled else "disabled",
        "state": "up" if service.up else "down",
        "updated_at": f"{service.beat_at:%Y-%m-%dT%H:%M:%S.%f}",
        "disabled_reason": service.disabled_reason,
    }
    return seen | ({"forced_down": False} if since(11) else {})
