"""Health of hosts: failures declared by administrators, recovery, and reallocation by hand."""

from flask.typing import ResponseReturnValue
from marshmallow import RAISE, Schema, fields, validate

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation.dates import DATE, date, maybe, out_date
from api.reservation.hosts.schema import StrictBoolean
from api.reservation.leases.request_options import DryRun
from api.reservation.view_decorator import PREFIX, Operation, Read, Strict, serve
from climate.domain.hosts.pools import HostPlace, Pool
from climate.service.host_operations import failures
from climate.service.host_operations.failures import LONGEST_REASON, Report
from climate.service.leases import host_replacement
from climate.service.leases.host_replacement import ReplacementRequest

blueprint = Blueprint("health", __name__, url_prefix=PREFIX, description="Health of hosts.")


class StateOut(Schema):
    class Meta:
        unknown = RAISE

    host_id = fields.String(required=True)
    host = fields.String(required=True)
    pool = fields.String(required=True, validate=validate.OneOf(list(Pool)))
    since = out_date()
    until = fields.String(required=True, allow_none=True, validate=validate.Regexp(DATE))
    reason = fields.String(required=True)


class StateAnswer(Schema):
    place = fields.Nested(StateOut, required=True)


class HostServerOut(Schema):
    class Meta:
        unknown = RAISE

    id = fields.String(required=True)
    name = fields.String(required=True)
    project_id = fields.String(required=True)
    status = fields.String(required=True)


class HealthOut(StateOut):
    on = fields.Boolean(required=True, metadata={"description": "Last power action, on or off."})
    trouble = fields.String(
        required=True, allow_none=True, metadata={"description": "Reason why it is unhealthy; null: it is healthy."}
    )
    doubted_since = fields.String(
        required=True,
        allow_none=True,
        validate=validate.Regexp(DATE),
        metadata={"description": "Time since which it is unhealthy, or healthy again after a failure."},
    )
    servers = fields.List(fields.Nested(HostServerOut), required=True)
    leases = fields.List(
        fields.UUID(), required=True, metadata={"description": "Leases with current or future allocations of it."}
    )


class HealthAnswer(Schema):
    health = fields.Nested(HealthOut, required=True)


class HostFailure(Strict):
    """The reason why a host cannot be used."""

    reason = fields.String(required=True, validate=[validate.Length(1, LONGEST_REASON), validate.Regexp(r"\s*\S")])


class Reallocation(Strict):
    """The lease or the reservation that gets another host; `to` null or absent: any host that matches."""

    lease_id = fields.UUID()
    reservation_id = fields.UUID()
    to = fields.String(allow_none=True, load_default=None, validate=validate.Regexp(r"^[0-9]{1,18}$"))
    force = StrictBoolean(load_default=False, metadata={"description": "Accept a host that does not match."})


class ReallocatedOut(Schema):
    class Meta:
        unknown = RAISE

    lease_id = fields.UUID(required=True)
    reservation_id = fields.UUID(required=True)
    source = fields.String(required=True, data_key="from")
    to = fields.String(required=True)


class ReallocationAnswer(Schema):
    reallocation = fields.Nested(ReallocatedOut, required=True)


@serve(
    blueprint, "GET", "/os-hosts/<host_id>/health", Operation("oshosts:health", {200: HealthAnswer}, refuses=(404, 409))
)
def show_health(host_id: str, query: Read) -> ResponseReturnValue:
    """Show the health of a host: its state in the cloud, its servers, and the leases that need it."""
    return {"health": _health(failures.report(climate(), caller(), host_id))}


@serve(
    blueprint,
    "POST",
    "/os-hosts/<host_id>/fail",
    Operation(
        "oshosts:fail",
        {200: StateAnswer},
        query=DryRun,
        body=HostFailure,
        refuses=(404, 409),
        example={"reason": "smells of smoke"},
    ),
)
def fail_host(host_id: str, query: Read, body: Read) -> ResponseReturnValue:
    """Declare a host failed: its leases get other hosts, and it stays out of use until it is declared healthy."""
    return {"place": _place(failures.fail(climate(), caller(), host_id, body["reason"], dry_run=query["dry_run"]))}


@serve(
    blueprint,
    "POST",
    "/os-hosts/<host_id>/heal",
    Operation("oshosts:heal", {200: StateAnswer}, query=DryRun, refuses=(404, 409)),
)
def heal_host(host_id: str, query: Read) -> ResponseReturnValue:
    """Declare a failed host healthy, unless the cloud reports otherwise."""
    return {"place": _place(failures.heal(climate(), caller(), host_id, dry_run=query["dry_run"]))}


@serve(
    blueprint,
    "PUT",
    "/os-hosts/<host_id>/allocation",
    Operation(
        "oshosts:reallocate",
        {200: ReallocationAnswer},
        query=DryRun,
        body=Reallocation,
        refuses=(404, 409),
        example={"lease_id": "7d1f0a3e-8c39-4c1b-9d9a-0f6f2f1f8a11", "to": "2"},
    ),
)
def reallocate_host(host_id: str, query: Read, body: Read) -> ResponseReturnValue:
    """Give a lease another host instead of this one."""
    order = ReplacementRequest(host_id, body.get("lease_id"), body.get("reservation_id"), body["to"], body["force"])
    done = host_replacement.reallocate(climate(), caller(), order, dry_run=query["dry_run"])
    details = {"lease_id": str(done.lease.id), "reservation_id": str(done.reservation_id)}
    return {"reallocation": {**details, "from": str(done.host), "to": str(done.to)}}


def _place(place: HostPlace) -> dict[str, object]:
    return {
        "host_id": str(place.host),
        "host": place.name,
        "pool": place.pool,
        "since": date(place.since),
        "until": maybe(date, place.until),
        "reason": place.reason,
    }


def _health(report: Report) -> dict[str, object]:
    servers = [{"id": s.id, "name": s.name, "project_id": s.project_id, "status": s.status} for s in report.servers]
    return {
        **_place(report.place),
        "on": report.place.on,
        "trouble": report.trouble,
        "doubted_since": maybe(date, report.doubted_since),
        "servers": servers,
        "leases": [str(lease) for lease in report.leases],
    }
