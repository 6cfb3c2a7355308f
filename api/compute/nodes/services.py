"""Compute services, for administrators."""

from typing import Any, NoReturn
from uuid import UUID

from flask import request

from api.audited import audited
from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.cells import lists
from api.compute.microversion import since
from api.request_context import compute, deployment
from climate.compute.cells.state import inventory
from climate.compute.models.node import Service
from climate.compute.nodes import maintenance, services
from climate.domain.errors import InvalidInput, NotFound

Body = dict[str, Any]

BINARY = "nova-compute"
"""Binary name of a compute service."""

STATUSES = {"enabled": True, "disabled": False}
_KEYS = frozenset({"status", "disabled_reason", "forced_down"})

blueprint = compute_blueprint("services")


@blueprint.get("/os-services")
def listing() -> Body:
    """List the compute services with their state; a top cell lists those of all cells."""
    validation.may_administer()
    if request.args.get("binary", BINARY) != BINARY:
        return {"services": []}
    known = inventory.services_of(compute(), request.args.get("host") or None)
    return {"services": [_view(service) for service in known.found]} | lists.unreachable(known.missing)


@blueprint.put("/os-services/<service_id>")
def update(service_id: str) -> Body:
    """Enable, disable or force down a service; before 2.53 the last part of the path names the action."""
    validation.may_administer()
    if not since(53):
        return {"service": _by_form(service_id, read_object())}
    service = _find(service_id)
    return {"service": _view(maintenance.change(audited(), service, **_wanted(read_object())))}


@blueprint.delete("/os-services/<service_id>")
def delete(service_id: str) -> tuple[str, int]:
    """Delete a service that is down and has no servers."""
    validation.may_administer()
    maintenance.remove(audited(), _find(service_id))
    return "", 204


def _wanted(body: Body) -> Body:
    unknown = sorted(set(body) - _KEYS)
    if unknown:
        raise InvalidInput(f"there is no key {unknown[0][:80]!r}; there are {', '.join(sorted(_KEYS))}")
    status, reason = body.get("status"), body.get("disabled_reason")
    if status is None and "forced_down" not in body and reason is None:
        raise InvalidInput("No updates were requested. Fields 'status' or 'forced_down' should be specified.")
    if status is not None and status not in tuple(STATUSES):
        raise InvalidInput(f"status must be enabled or disabled, not {str(status)[:40]!r}")
    if reason is not None and status != "disabled":
        raise InvalidInput("Specifying disabled_reason requires that status is 'disabled'.")
    return {
        "enabled": None if status is None else STATUSES[status],
        "reason": None if reason is None else validation.name(reason, "disabled_reason"),
        "forced_down": validation.flag(body["forced_down"], "forced_down") if "forced_down" in body else None,
    }


def _by_form(form: str, body: Body) -> Body:
    """Return the answer of the forms before 2.53, which has only the requested keys."""
    if form not in ("enable", "disable", "disable-log-reason") and not (form == "force-down" and since(11)):
        raise NotFound(f"services have no action {form[:80]}; use enable, disable, disable-log-reason or force-down")
    service = _of_host(body)
    said: Body = {"host": service.host, "binary": BINARY}
    if form == "force-down":
        down = validation.flag(body.get("forced_down"), "forced_down")
        maintenance.change(audited(), service, forced_down=down)
        return said | {"forced_down": down}
    reason = validation.name(body.get("disabled_reason"), "disabled_reason") if form == "disable-log-reason" else None
    changed = maintenance.change(audited(), service, enabled=form == "enable", reason=reason)
    return said | {"status": _status(changed)} | ({"disabled_reason": reason} if reason else {})


def _of_host(body: Body) -> Service:
    host, binary = validation.name(body.get("host"), "host"), validation.name(body.get("binary"), "binary")
    lists.check_is_here(host)
    found = services.listed(compute(), host) if binary == BINARY else []
    if not found:
        raise NotFound(f"Could not find binary {binary[:80]} on host {host[:80]}.")
    return found[0]


def _find(service_id: str) -> Service:
    """Return a service by its UUID, or before 2.53 by its number."""
    lists.check_is_here(service_id)
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
