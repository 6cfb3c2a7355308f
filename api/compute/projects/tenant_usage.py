"""Usage of projects over a period: the hours that their servers ran."""

from datetime import UTC, datetime

from flask import request
from werkzeug.exceptions import NotImplemented as NoSuchThing

from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.paging import next_links, page
from api.request_context import caller, compute, here
from climate.compute.models.server import VM_STATES
from climate.compute.projects import usage
from climate.compute.projects.usage import Period, ProjectUsage, ServerUsage
from climate.domain.errors import Forbidden, InvalidInput

Body = dict[str, object]

FORMATS = ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f")
SHOWN = "%Y-%m-%dT%H:%M:%S.%f"
IN_CELLS = "A top cell does not record how long servers ran: ask each cell"

blueprint = compute_blueprint("tenant-usage")


@blueprint.get("/os-simple-tenant-usage", strict_slashes=True)
def listing() -> Body:
    """List the usage of all projects that had servers in a period; with `detailed=1`, by servers."""
    validation.may_administer()
    period = _period()
    detailed = request.args.get("detailed", "0") == "1"
    found = usage.of_projects(compute(), period)
    return {"tenant_usages": [_view(one, period, detailed=detailed) for one in found]} | _links(found, period, "s")


@blueprint.get("/os-simple-tenant-usage/<project_id>")
def show(project_id: str) -> Body:
    """Show the usage of a project in a period, by servers; it is empty if none ran."""
    validation.may_read()
    if project_id != caller().project_id and not caller().is_admin:
        raise Forbidden("Policy doesn't allow os_compute_api:os-simple-tenant-usage:show to be performed.")
    period = _period()
    found = usage.of_projects(compute(), period, project_id)
    shown = _view(found[0], period, detailed=True) if found else {}
    return {"tenant_usage": shown} | _links(found, period, "")


def _period() -> Period:
    """Return the period and the page of a request; both times default to now."""
    if compute().cells.is_api:
        raise NoSuchThing(IN_CELLS)
    start, stop = _time("start"), _time("end")
    if not start < stop:
        raise InvalidInput("Invalid start time. The start time cannot occur after the end time.")
    if not since(40):
        return Period(start, stop)
    wanted = page()
    marker = None if wanted.marker is None else validation.uuid(wanted.marker, "marker")
    return Period(start, stop, marker, wanted.limit)


def _time(key: str) -> datetime:
    value = request.args.get(key)
    if value is None:
        return datetime.now(UTC)
    for form in FORMATS:
        try:
            return datetime.strptime(value, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise InvalidInput(f"{key} must be a time like 2026-11-23T21:00:00, not {value[:40]!r}")


def _links(found: list[ProjectUsage], period: Period, many: str) -> Body:
    """Return the link to the next page, since 2.40."""
    servers = [server.server_id for one in found for server in one.servers]
    if period.limit is None or len(servers) < period.limit:
        return {}
    return {f"tenant_usage{many}_links": next_links(here(), max(servers), page())}


def _view(one: ProjectUsage, period: Period, *, detailed: bool) -> Body:
    shown: Body = {
        "tenant_id": one.project_id,
        "start": period.start.strftime(SHOWN),
        "stop": period.stop.strftime(SHOWN),
        "total_hours": one.hours,
        "total_vcpus_usage": one.vcpu_hours,
        "total_memory_mb_usage": one.mb_hours,
        "total_local_gb_usage": one.gb_hours,
    }
    return shown | ({"server_usages": [_server(server) for server in one.servers]} if detailed else {})


def _server(one: ServerUsage) -> Body:
    return {
        "instance_id": one.server_id,
        "tenant_id": one.project_id,
        "name": one.name,
        "flavor": one.flavor,
        "vcpus": one.vcpus,
        "memory_mb": one.ram_mb,
        "local_gb": one.disk_gb,
        "started_at": one.started_at.astimezone(UTC).strftime(SHOWN),
        "ended_at": None if one.ended_at is None else one.ended_at.astimezone(UTC).strftime(SHOWN),
        "state": "terminated" if one.status is None else VM_STATES[one.status],
        "hours": one.hours,
        "uptime": one.uptime,
    }
