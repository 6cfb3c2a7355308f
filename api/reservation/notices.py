"""Notifications of owners about their leases, and of administrators about their hosts."""

from typing import Any
from uuid import UUID

from flask.typing import ResponseReturnValue
from marshmallow import RAISE, Schema, fields

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation import pages
from api.reservation.dates import Moment, date, out_date
from api.reservation.ids import marker_number
from api.reservation.leases.schema import LinkOut
from api.reservation.operations import PREFIX, Operation, serve
from climate.service.notifications import delivery
from climate.service.notifications.delivery import Listing
from climate.store.notifications import Kept

Read = dict[str, Any]

blueprint = Blueprint("notices", __name__, url_prefix=PREFIX, description="Notifications of owners and administrators.")


class NoticeQuery(pages.Paged):
    """Filters of notifications: all conditions must hold."""

    since = Moment()
    kind = fields.String(metadata={"description": "Such as lease.before_end or host.failed."})
    lease_id = fields.UUID()


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
    )
    return pages.listing("notices", delivery.listed(climate(), caller(), wanted), part, _body)


def _body(kept: Kept) -> dict[str, Any]:
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
