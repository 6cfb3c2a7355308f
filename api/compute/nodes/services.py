"""Compute services, for administrators."""

from typing import NoReturn
from uuid import UUID

from flask import request

from api.audited import audited
from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.cells import unreachable_cells
from api.compute.microversion import since
from api.compute.nodes import service_bodies
from api.request_context import compute, deployment
from climate.compute.cells.state import inventory
from climate.compute.models.node import Service
from climate.compute.nodes import maintenance, services
from climate.domain.errors import NotFound

Body = dict[str, object]

BINARY = "nova-compute"
"""Binary name of a compute service."""

FORCE_DOWN = "force-down"
FORMS = {
    "enable": service_bodies.NAMED_SERVICE,
    "disable": service_bodies.NAMED_SERVICE,
    "disable-log-reason": service_bodies.DISABLED_SERVICE,
    FORCE_DOWN: service_bodies.DOWN_SERVICE,
}
"""Last part of the path before 2.53 -> the schema of the body."""

blueprint = compute_blueprint("services")


@blueprint.get("/os-services")
def listing() -> Body:
    """List the compute services with their state; a top cell lists those of all cells."""
    validation.may_administer()
    if request.args.get("binary", BINARY) != BINARY:
        return {"services": []}
    known = inventory.services_of(compute(), request.args.get("host") or None)
    return {"services": [_view(service) for service in known.items]} | unreachable_cells.unreachable(known.missing)


@blueprint.put("/os-services/<service_id>")
def update(service_id: str) -> Body:
    """Enable, disable or force down a service; before 2.53 the last part of the path names the action."""
    validation.may_administer()
    if not since(53):
        return {"service": _by_form(service_id, read_object())}
    service = _find(service_id)
    return {"service": _view(maintenance.change(audited(), service, **service_bodies.service(read_object())))}


@blueprint.delete("/os-services/<service_id>")
def delete(service_id: str) -> tuple[str, int]:
    """Delete a service that is down and has no servers."""
    validation.may_administer()
    maintenance.remove(audited(), _find(service_id))
    return "", 204


def _by_form(form: str, body: Body) -> Body:
    """Return the answer of the forms before 2.53, which has only the requested keys."""
    if form not in FORMS or (form == FORCE_DOWN and not since(11)):
        raise NotFound(f"services have no action {form[:80]}; use enable, disable, disable-log-reason or force-down")
    given = FORMS[form].read(body)
    service = _of_host(given["host"], given["binary"])
    said: Body = {"host": service.host, "binary": BINARY}
    if form == FORCE_DOWN:
        maintenance.change(audited(), service, forced_down=given["forced_down"])
        return said | {"forced_down": given["forced_down"]}
    reason = given.get("disabled_reason")
    changed = maintenance.change(audited(), service, enabled=form == "enable", reason=reason)
    return said | {"status": _status(changed)} | ({"disabled_reason": reason} if reason else {})


def _of_host(host: str, binary: str) -> Service:
    unreachable_cells.check_is_here(host)
    known = services.listed(compute(), host) if binary == BINARY else []
    if not known:
        raise NotFound(f"Could not find binary {binary[:80]} on host {host[:80]}.")
    return known[0]


def _find(service_id: str) -> Service:
    """Return a service by its UUID, or before 2.53 by its number."""
    unreachable_cells.check_is_here(service_id)
    if since(53):
        service_id = _uuid(service_id)
    for service in services.listed(compute()):
        if _id(service) == service_id:
            return service
    return _nobody(service_id)


def _uuid(text: str) -> str:
    try:
        return str(UUID(text)) if len(text) == 36 else _nobody(text)
    except ValueError:
        return _nobody(text)


def _nobody(service_id: str) -> NoReturn:
    raise NotFound(f"Service {service_id[:80]} could not be found.")


def _id(service: Service) -> str:
    return str(_shown_id(service))


def _shown_id(service: Service) -> str | int:
    return service.uuid if since(53) or inventory.is_foreign(service.uuid) else service.id


def _status(service: Service) -> str:
    return "enabled" if service.enabled else "disabled"


def _view(service: Service) -> Body:
    seen: Body = {
        "id": _shown_id(service),
        "binary": BINARY,
        "host": service.host,
        "zone": service.zone or deployment().settings.default_availability_zone,
        "status": _status(service),
        "state": "up" if service.up else "down",
        "updated_at": f"{service.beat_at:%Y-%m-%dT%H:%M:%S.%f}",
        "disabled_reason": service.disabled_reason,
    }
    return seen | ({"forced_down": service.forced_down} if since(11) else {})
