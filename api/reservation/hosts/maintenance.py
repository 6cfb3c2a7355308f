"""Maintenance windows: periods in which a host is allocated to nobody."""

from typing import Any
from uuid import UUID

from flask.typing import ResponseReturnValue
from marshmallow import RAISE, Schema, fields, validate

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation import pages
from api.reservation.dates import DATE, NOW, Moment, date, maybe, out_date
from api.reservation.hosts.schema import StrictBoolean
from api.reservation.ids import marker_id, path_id
from api.reservation.leases.lease_view import entry_body
from api.reservation.leases.request_options import DryRun
from api.reservation.leases.schema import HistoryAnswer, LeaseAt, LinkOut
from api.reservation.unchanged_fields import Update
from api.reservation.view_decorator import PREFIX, Operation, Read, Strict, serve
from climate.domain.errors import InvalidInput
from climate.service.host_operations import maintenance
from climate.service.host_operations.maintenance import LONGEST_REASON, Changes, Planned, WindowRequest
from climate.service.leases.reallocation import Outcome
from climate.store.hosts.maintenance import ACTIVE, PLANNED, Window, WindowFilter, WindowState

blueprint = Blueprint("maintenances", __name__, url_prefix=PREFIX, description="Maintenance windows of hosts.")

HOST_ID = r"^[0-9]{1,18}$"
MOVE = "Move servers on the host to other hosts during the window, if any accepts them."
FORCE = "Reallocate leases of the host to other hosts, or leave them degraded; otherwise they cause a conflict."


def _reason(**more: Any) -> fields.String:
    return fields.String(validate=[validate.Length(1, LONGEST_REASON), validate.Regexp(r"\s*\S")], **more)


class MaintenanceOrder(Strict):
    """A window; without `start_date` it starts now, without `end_date` it lasts until it is ended."""

    host_id = fields.String(required=True, validate=validate.Regexp(HOST_ID))
    start_date = Moment(now=True)
    end_date = Moment(allow_none=True)
    reason = _reason(required=True)
    force = StrictBoolean(load_default=False, metadata={"description": FORCE})
    move_servers = StrictBoolean(load_default=False, metadata={"description": MOVE})


class MaintenanceQuery(pages.Paged):
    host_id = fields.String(validate=validate.Regexp(HOST_ID))
    state = fields.String(
        validate=validate.OneOf([*WindowState, "all"]),
        metadata={"description": "Windows in this state; by default planned and active ones."},
    )


class MaintenanceOut(Schema):
    class Meta:
        unknown = RAISE

    id = fields.UUID(required=True)
    host_id = fields.String(required=True, validate=validate.Regexp(HOST_ID))
    host = fields.String(required=True)
    start_date = out_date()
    end_date = fields.String(required=True, allow_none=True, validate=validate.Regexp(DATE))
    reason = fields.String(required=True)
    state = fields.String(required=True, validate=validate.OneOf(list(WindowState)))
    move_servers = fields.Boolean(required=True, metadata={"description": MOVE})
    created_by = fields.String(required=True)
    created_at = out_date()
    updated_at = fields.String(required=True, allow_none=True, validate=validate.Regexp(DATE))


class MaintenanceChanges(Update, Strict):
    """Changes of a window; an `end_date` of null makes it open-ended."""

    answer_key = "maintenance"
    answer_schema = MaintenanceOut

    start_date = Moment(now=True)
    end_date = Moment(allow_none=True)
    reason = _reason()
    force = StrictBoolean(load_default=False, metadata={"description": FORCE})
    move_servers = StrictBoolean(metadata={"description": MOVE})


class InTheWayOut(Schema):
    class Meta:
        unknown = RAISE

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    project_id = fields.String(required=True)
    start_date = out_date()
    end_date = out_date()
    replaced = fields.Boolean(required=True, metadata={"description": "Whether it got another host."})
    missing = fields.Integer(required=True, metadata={"description": "Number of missing hosts."})


class MaintenanceAnswer(Schema):
    maintenance = fields.Nested(MaintenanceOut, required=True)


class PlannedAnswer(MaintenanceAnswer):
    leases = fields.List(
        fields.Nested(InTheWayOut), required=True, metadata={"description": "Leases that were reallocated."}
    )


class MaintenancesAnswer(Schema):
    maintenances = fields.List(fields.Nested(MaintenanceOut), required=True)
    maintenances_links = fields.List(fields.Nested(LinkOut))


@serve(
    blueprint,
    "GET",
    "/maintenances",
    Operation("maintenances:get", {200: MaintenancesAnswer}, query=MaintenanceQuery),
)
def list_maintenances(query: Read) -> ResponseReturnValue:
    """List maintenance windows in the order of their creation."""
    part = pages.requested()
    asked = query.get("state")
    states = tuple(WindowState) if asked == "all" else (WindowState(asked),) if asked else (PLANNED, ACTIVE)
    host = int(query["host_id"]) if "host_id" in query else None
    after = marker_id(part.marker)
    result = maintenance.listed(climate(), caller(), WindowFilter(host, states, after, part.fetch))
    return pages.listing("maintenances", result, part, _body)


@serve(
    blueprint,
    "POST",
    "/maintenances",
    Operation(
        "maintenances:post",
        {201: PlannedAnswer, 200: PlannedAnswer},
        query=DryRun,
        body=MaintenanceOrder,
        refuses=(404, 409),
        example={
            "host_id": "1",
            "start_date": "2031-01-31 09:00",
            "end_date": "2031-01-31 12:00",
            "reason": "new memory",
        },
    ),
)
def plan_maintenance(query: Read, body: Read) -> ResponseReturnValue:
    """Create a maintenance window of a host.

    A dry run answers 200 instead of 201.
    """
    start = None if body.get("start_date") == NOW else body.get("start_date")
    order = WindowRequest(
        body["host_id"], start, body.get("end_date"), body["reason"], body["force"], move_servers=body["move_servers"]
    )
    planned = maintenance.plan(climate(), caller(), order, dry_run=query["dry_run"])
    return _planned(planned), 200 if query["dry_run"] else 201


@serve(
    blueprint,
    "GET",
    "/maintenances/<maintenance_id>",
    Operation("maintenances:get", {200: MaintenanceAnswer}, query=LeaseAt, refuses=(404,)),
)
def show_maintenance(maintenance_id: str, query: Read) -> ResponseReturnValue:
    """Show a maintenance window, as it is or as it was."""
    return {"maintenance": _body(maintenance.get(climate(), caller(), _id(maintenance_id), query.get("at")))}


@serve(
    blueprint,
    "GET",
    "/maintenances/<maintenance_id>/history",
    Operation("maintenances:get", {200: HistoryAnswer}, refuses=(404,)),
)
def maintenance_history(maintenance_id: str, query: Read) -> ResponseReturnValue:
    """List the changes of a maintenance window with their authors."""
    result = maintenance.history(climate(), caller(), _id(maintenance_id))
    return {"history": [entry_body(entry) for entry in result]}


def _unmoved(maintenance_id: str) -> Read:
    return {"maintenance": _body(maintenance.get(climate(), caller(), _id(maintenance_id))), "leases": []}


@serve(
    blueprint,
    "PUT",
    "/maintenances/<maintenance_id>",
    Operation(
        "maintenances:put",
        {200: PlannedAnswer},
        query=DryRun,
        body=MaintenanceChanges,
        refuses=(404, 409),
        example={"end_date": "2031-01-31 15:00"},
        shows=_unmoved,
    ),
)
def change_maintenance(maintenance_id: str, query: Read, body: Read) -> ResponseReturnValue:
    """Update a maintenance window that is not over: its dates or its reason."""
    if not set(body) - {"force"}:
        raise InvalidInput("No data to update")
    open_end = "end_date" in body and body["end_date"] is None
    changes = Changes(
        start=None if body.get("start_date") == NOW else body.get("start_date"),
        start_now=body.get("start_date") == NOW,
        end=body.get("end_date"),
        open_end=open_end,
        reason=body.get("reason"),
        force=body["force"],
        move_servers=body.get("move_servers"),
    )
    return _planned(maintenance.change(climate(), caller(), _id(maintenance_id), changes, dry_run=query["dry_run"]))


@serve(
    blueprint,
    "DELETE",
    "/maintenances/<maintenance_id>",
    Operation("maintenances:delete", {200: MaintenanceAnswer}, query=DryRun, refuses=(404,)),
)
def end_maintenance(maintenance_id: str, query: Read) -> ResponseReturnValue:
    """End a maintenance window, or cancel one that has not started; the host is free again."""
    ended = maintenance.end(climate(), caller(), _id(maintenance_id), dry_run=query["dry_run"])
    return {"maintenance": _body(ended)}


def _id(maintenance_id: str) -> UUID:
    return path_id(maintenance_id, f"Object with {{'maintenance_id': '{maintenance_id[:80]}'}} not found")


def _planned(planned: Planned) -> dict[str, object]:
    return {"maintenance": _body(planned.window), "leases": [_moved(outcome) for outcome in planned.moved]}


def _moved(outcome: Outcome) -> dict[str, object]:
    lease = outcome.lease
    return {
        "id": str(lease.id),
        "name": lease.name,
        "project_id": lease.project_id,
        "start_date": date(lease.period.start),
        "end_date": date(lease.period.end),
        "replaced": outcome.replaced,
        "missing": outcome.short,
    }


def _body(window: Window) -> dict[str, object]:
    return {
        "id": str(window.id),
        "host_id": str(window.host),
        "host": window.name,
        "start_date": date(window.during.start),
        "end_date": maybe(date, window.end),
        "reason": window.reason,
        "state": window.state,
        "move_servers": window.move_servers,
        "created_by": window.created_by,
        "created_at": date(window.created_at),
        "updated_at": maybe(date, window.updated_at),
    }
