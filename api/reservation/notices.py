"""Notifications of owners about their leases, and of administrators about their hosts."""

from uuid import UUID

from flask.typing import ResponseReturnValue
from marshmallow import RAISE, Schema, fields

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation import pages
from api.reservation.dates import Moment, date, out_date
from api.reservation.ids import marker_number
from api.reservation.leases.schema import LinkOut
from api.reservation.view_decorator import PREFIX, Operation, Read, serve
from climate.domain.errors import NotFound
from climate.service.notifications import delivery
from climate.service.notifications.delivery import Listing
from climate.store.notices.notifications import Kept
from climate.whole_numbers import whole_number

blueprint = Blueprint("notices", __name__, url_prefix=PREFIX, description="Notifications of owners and administrators.")


class NoticeQuery(pages.Paged):
    """Filters of notifications: all conditions must hold."""

    since = Moment()
    kind = fields.String(metadata={"description": "Such as lease.before_end or host.failed."})
    lease_id = fields.UUID()
    dead = fields.Boolean(
        load_default=False, metadata={"description": "Only those whose delivery by mail or webhook was given up."}
    )


class NoticeOut(Schema):
    class Meta:
        unknown = RAISE

    id = fields.String(required=True)
    at = out_date()
    kind = fields.String(required=True)
    message = fields.String(required=True)
    project_id = fields.String(
        required=True, allow_none=True, metadata={"description": "null: only for administrators."}
    )
    user_id = fields.String(required=True, allow_none=True)
    lease_id = fields.UUID(required=True, allow_none=True)
    host_id = fields.String(required=True, allow_none=True)
    details = fields.Dict(required=True)
    audience = fields.String(metadata={"description": "With dead=true: people, hook, enforcement or mail."})
    attempts = fields.Integer(metadata={"description": "With dead=true: tries of delivery."})
    error = fields.String(metadata={"description": "With dead=true: result of the last try."})


class NoticeAnswer(Schema):
    notice = fields.Nested(NoticeOut, required=True)


class NoticesAnswer(Schema):
    notices = fields.List(fields.Nested(NoticeOut), required=True)
    notices_links = fields.List(
        fields.Nested(LinkOut), metadata={"description": "Link to the next page, if there is one."}
    )


@serve(blueprint, "GET", "/notices", Operation("notices:get", {200: NoticesAnswer}, query=NoticeQuery))
def list_notices(query: Read) -> ResponseReturnValue:
    """List notifications, oldest first.

    Users see those of their project; administrators see all, also those for administrators only.
    """
    part = pages.requested()
    wanted = Listing(
        since=query.get("since"),
        kind=query.get("kind"),
        lease_id=query.get("lease_id"),
        marker=marker_number(part.marker),
        limit=part.fetch,
        dead=query["dead"],
    )
    kept = delivery.listed(climate(), caller(), wanted)
    return pages.listing("notices", kept, part, _dead_body if query["dead"] else _body)


@serve(
    blueprint,
    "POST",
    "/notices/<notice_id>/resend",
    Operation("notices:resend", {200: NoticeAnswer}, refuses=(404,)),
)
def resend_notice(notice_id: str, query: Read) -> ResponseReturnValue:
    """Send a notification again whose delivery was given up."""
    number = whole_number(notice_id)
    if number is None:
        raise NotFound(f"Object with {{'notice_id': '{notice_id[:80]}'}} not found")
    return {"notice": _body(delivery.resend(climate(), caller(), number))}


def _dead_body(kept: Kept) -> dict[str, object]:
    return {**_body(kept), "audience": str(kept.notice.audience), "attempts": kept.attempts, "error": kept.error}


def _body(kept: Kept) -> dict[str, object]:
    notice = kept.notice
    return {
        "id": str(kept.id),
        "at": date(kept.at),
        "kind": notice.kind,
        "message": notice.message,
        "project_id": notice.project_id,
        "user_id": notice.user_id,
        "lease_id": _text(notice.lease_id),
        "host_id": _text(notice.host),
        "details": dict(notice.body),
    }


def _text(value: UUID | int | None) -> str | None:
    return None if value is None else str(value)
