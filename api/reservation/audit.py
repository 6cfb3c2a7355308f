"""Audit trail for administrators: changes of limits, pools, hosts, users and more, with their authors."""

from flask.typing import ResponseReturnValue
from marshmallow import RAISE, Schema, fields, validate

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation import pages
from api.reservation.dates import Moment, date, out_date
from api.reservation.ids import marker_number
from api.reservation.leases.schema import LinkOut
from api.reservation.view_decorator import PREFIX, Operation, Read, serve
from climate.domain.audit_trail import Action, AuditKind
from climate.service.journal import audit_trail
from climate.service.journal.audit_trail import AuditEntry, AuditQuery

LONGEST = 255
KINDS = [str(kind) for kind in AuditKind]

blueprint = Blueprint("audit", __name__, url_prefix=PREFIX, description="Changes with their authors.")


def _text(description: str) -> fields.String:
    return fields.String(validate=validate.Length(1, LONGEST), metadata={"description": description})


class AuditListQuery(pages.Paged):
    """Conditions for changes to list: all must hold."""

    kind = fields.String(validate=validate.OneOf(KINDS), metadata={"description": "Kind of the object."})
    object = _text("Id of the object; of hosts also the name.")
    author = _text("User id of the author.")
    project = _text("Id of the project that the object belongs to.")
    since = Moment()
    until = Moment()


class AuditEntryOut(Schema):
    class Meta:
        unknown = RAISE

    id = fields.String(required=True)
    at = out_date()
    author = fields.String(required=True, metadata={"description": "A user id, or `climate:…` for climate itself."})
    author_project_id = fields.String(required=True)
    request_id = fields.String(required=True)
    kind = fields.String(required=True, validate=validate.OneOf(KINDS))
    object_id = fields.String(required=True)
    name = fields.String(required=True)
    project_id = fields.String(
        required=True, allow_none=True, metadata={"description": "The project that the object belongs to."}
    )
    action = fields.String(required=True, validate=validate.OneOf([str(action) for action in Action]))
    before = fields.Dict(required=True, allow_none=True, metadata={"description": "null: the object is new."})
    after = fields.Dict(required=True, allow_none=True, metadata={"description": "null: the object was deleted."})


class AuditAnswer(Schema):
    audit = fields.List(fields.Nested(AuditEntryOut), required=True)
    audit_links = fields.List(
        fields.Nested(LinkOut), metadata={"description": "Link to the next page, if there is one."}
    )


@serve(blueprint, "GET", "/audit", Operation("audit:get", {200: AuditAnswer}, query=AuditListQuery))
def list_audit(query: Read) -> ResponseReturnValue:
    """List changes with their authors, before and after, newest first."""
    part = pages.requested()
    kind = query.get("kind")
    wanted = AuditQuery(
        kind=AuditKind(kind) if kind else None,
        object_id=query.get("object"),
        author=query.get("author"),
        project_id=query.get("project"),
        since=query.get("since"),
        until=query.get("until"),
        marker=marker_number(part.marker),
        limit=part.fetch,
    )
    return pages.listing("audit", audit_trail.listed(climate(), caller(), wanted), part, _body)


def _body(entry: AuditEntry) -> dict[str, object]:
    change = entry.change
    return {
        "id": str(entry.position),
        "at": date(entry.recorded_at),
        "author": entry.author,
        "author_project_id": entry.author_project,
        "request_id": entry.request_id,
        "kind": str(change.kind),
        "object_id": change.object_id,
        "name": change.name,
        "project_id": change.project_id,
        "action": str(change.action),
        "before": change.before,
        "after": change.after,
    }
