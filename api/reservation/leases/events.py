"""Events of all leases, for operators: list them, and retry those that failed."""

from flask.typing import ResponseReturnValue
from marshmallow import RAISE, Schema, fields, validate

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation import pages
from api.reservation.dates import DATE, date, maybe, out_date
from api.reservation.ids import marker_id, path_id
from api.reservation.leases.schema import LinkOut
from api.reservation.view_decorator import PREFIX, Operation, Read, serve
from climate.domain.events.event import Event
from climate.domain.lease import Lease
from climate.domain.status import EventStatus
from climate.service.events import events

blueprint = Blueprint("events", __name__, url_prefix=PREFIX, description="Events of leases.")


class EventQuery(pages.Paged):
    status = fields.String(validate=validate.OneOf([str(status) for status in EventStatus]))


class EventInList(Schema):
    class Meta:
        unknown = RAISE

    id = fields.UUID(required=True)
    lease_id = fields.UUID(required=True)
    project_id = fields.String(required=True)
    event_type = fields.String(required=True)
    status = fields.String(required=True)
    outcome = fields.String(required=True, allow_none=True)
    reason = fields.String(required=True, allow_none=True)
    attempts = fields.Integer(required=True)
    due_at = out_date()
    run_at = out_date()
    updated_at = fields.String(required=True, allow_none=True, validate=validate.Regexp(DATE))


class EventsAnswer(Schema):
    events = fields.List(fields.Nested(EventInList), required=True)
    events_links = fields.List(fields.Nested(LinkOut))


class EventAnswer(Schema):
    event = fields.Nested(EventInList, required=True)


@serve(blueprint, "GET", "/events", Operation("events:get", {200: EventsAnswer}, query=EventQuery))
def list_events(query: Read) -> ResponseReturnValue:
    """List the events of all leases by due time; `?status=ERROR` lists those that failed.

    Events of a lease whose rows this release cannot read are left out, and the lease is named in the header Warning.
    """
    part = pages.requested()
    after = marker_id(part.marker)
    rows = events.rows(climate(), caller(), query.get("status"), part.fetch, after)
    return pages.readable_listing("events", rows, part, lambda number, lease: _body(lease, lease.event(number)))


@serve(
    blueprint,
    "POST",
    "/events/<event_id>/requeue",
    Operation("events:requeue", {200: EventAnswer}, refuses=(404, 409)),
)
def requeue_event(event_id: str, query: Read) -> ResponseReturnValue:
    """Retry a failed event."""
    known = path_id(event_id, f"no event {event_id[:80]}")
    lease = events.requeue(climate(), caller(), known)
    return {"event": _body(lease, lease.event(known))}


def _body(lease: Lease, event: Event) -> dict[str, object]:
    return {
        "id": str(event.id),
        "lease_id": str(lease.id),
        "project_id": lease.project_id,
        "event_type": event.type,
        "status": event.status,
        "outcome": event.outcome,
        "reason": event.reason,
        "attempts": event.attempts,
        "due_at": date(event.due_at),
        "run_at": date(event.run_at),
        "updated_at": maybe(date, event.updated_at),
    }
