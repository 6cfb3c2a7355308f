"""The calendar of hosts: rows with spans of leases, maintenance and cleaning, in a window of time and of rows."""

import json
from datetime import UTC, datetime
from hashlib import sha256

from flask import Response, request
from flask.typing import ResponseReturnValue
from marshmallow import RAISE, Schema, fields, validate

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation.dates import Moment, date, out_date
from api.reservation.view_decorator import PREFIX, Operation, Read, Strict, serve
from climate.domain.hosts.pools import Pool
from climate.domain.hosts.timeline import Span, SpanKind
from climate.domain.policy import Caller
from climate.service.hosts import timeline
from climate.service.hosts.timeline import MOST_POINTS, MOST_ROWS, Grouping, Row, Timeline, TimelineWindow

LONGEST_LIST = 8000
LONGEST_SEARCH = 255
LAST_ROW = 10**6

blueprint = Blueprint("timeline", __name__, url_prefix=PREFIX, description="The calendar of hosts.")


class TimelineQuery(Strict):
    """The part of the calendar to show."""

    start = Moment(data_key="from")
    end = Moment(data_key="to")
    group = fields.Enum(Grouping, by_value=True, load_default=Grouping.POOL)
    hosts = fields.String(
        load_default="",
        validate=validate.Length(max=LONGEST_LIST),
        metadata={"description": "Names or ids of hosts, by commas; without it all hosts."},
    )
    search = fields.String(
        load_default="",
        validate=validate.Length(max=LONGEST_SEARCH),
        metadata={"description": "Part of the name of a host."},
    )
    cursor = fields.Integer(
        load_default=0,
        validate=validate.Range(0, LAST_ROW),
        metadata={"description": "Number of the first row; `cursor` of the last answer for the next rows."},
    )
    limit = fields.Integer(
        load_default=100, validate=validate.Range(1, MOST_ROWS), metadata={"description": "Maximum of rows."}
    )
    points = fields.Integer(
        load_default=0,
        validate=validate.Range(0, MOST_POINTS),
        metadata={"description": "Maximum of points of the free count; 0: it is not counted."},
    )


class SpanOut(Schema):
    """Use of a host. Fields that the caller may not know are absent."""

    class Meta:
        unknown = RAISE

    kind = fields.String(required=True, validate=validate.OneOf(list(SpanKind)))
    start = out_date()
    end = out_date()
    id = fields.String(metadata={"description": "Identifies the span while it exists."})
    slots = fields.Integer(metadata={"description": "Slots on a shared host; absent: the whole host."})
    vcpus = fields.Integer()
    memory_mb = fields.Integer()
    reservation_id = fields.UUID()
    lease_id = fields.UUID()
    lease_name = fields.String()
    project_id = fields.String()
    status = fields.String(metadata={"description": "Status of the lease."})
    maintenance_id = fields.UUID()
    reason = fields.String(metadata={"description": "Reason of the maintenance."})


class RowOut(Schema):
    class Meta:
        unknown = RAISE

    host_id = fields.String(required=True)
    name = fields.String(required=True)
    group = fields.String(required=True)
    pool = fields.String(required=True, validate=validate.OneOf(list(Pool)))
    zone = fields.String(required=True)
    rack = fields.String(required=True)
    spans = fields.List(fields.Nested(SpanOut), required=True)


class GroupOut(Schema):
    class Meta:
        unknown = RAISE

    name = fields.String(required=True, metadata={"description": "Empty: hosts without this property."})
    rows = fields.Integer(required=True)


class FreePointOut(Schema):
    class Meta:
        unknown = RAISE

    time = out_date()
    free = fields.Integer(required=True)


class FreeOut(Schema):
    """Whole hosts that are free for the project of the caller, along time."""

    class Meta:
        unknown = RAISE

    hosts = fields.Integer(required=True, metadata={"description": "Hosts that the project may reserve."})
    points = fields.List(fields.Nested(FreePointOut), required=True)


class TimelineOut(Schema):
    class Meta:
        unknown = RAISE

    start = out_date(data_key="from")
    end = out_date(data_key="to")
    group = fields.String(required=True, validate=validate.OneOf(list(Grouping)))
    groups = fields.List(fields.Nested(GroupOut), required=True)
    total = fields.Integer(required=True, metadata={"description": "Number of all rows."})
    first = fields.Integer(required=True, metadata={"description": "Number of the first row of `rows`."})
    rows = fields.List(fields.Nested(RowOut), required=True)
    cursor = fields.Integer(
        required=True, allow_none=True, metadata={"description": "Number of the next row; null: there is none."}
    )
    free = fields.Nested(FreeOut, required=True, allow_none=True)


class TimelineAnswer(Schema):
    timeline = fields.Nested(TimelineOut, required=True)


@serve(blueprint, "GET", "/timeline", Operation("leases:get", {200: TimelineAnswer, 304: None}, query=TimelineQuery))
def show_timeline(query: Read) -> ResponseReturnValue:
    """Show who has which host when, for a window of rows and of time.

    Members see the hosts that they may reserve; leases of other projects are `busy` without anything about them.
    """
    return answer(caller(), query)


def answer(viewer: Caller, query: Read) -> Response:
    """Return the part of the calendar that `query` names, or 304 if the client has it already."""
    wanted = TimelineWindow(
        query.get("start"),
        query.get("end"),
        query["group"],
        frozenset(name for name in query["hosts"].split(",") if name),
        query["search"],
        query["cursor"],
        query["limit"],
        query["points"],
    )
    content = json.dumps({"timeline": _body(timeline.read(climate(), viewer, wanted), wanted)}).encode()
    tag = sha256(content).hexdigest()[:32]
    known = request.if_none_match.contains_weak(tag)
    made = Response(status=304) if known else Response(content, content_type="application/json")
    made.set_etag(tag, weak=True)
    # Asked again each time: what a project may see can change at any moment.
    made.headers["Cache-Control"] = "private, no-cache"
    made.headers["Vary"] = "X-Auth-Token, Cookie"
    return made


def _body(shown: Timeline, window: TimelineWindow) -> Read:
    following = shown.cursor + len(shown.rows)
    free = None
    if shown.free is not None:
        points = [{"time": date(datetime.fromtimestamp(at, UTC)), "free": count} for at, count in shown.free]
        free = {"hosts": shown.bookable, "points": points}
    return {
        "from": date(shown.period.start),
        "to": date(shown.period.end),
        "group": window.group,
        "groups": [{"name": name, "rows": rows} for name, rows in shown.groups.items()],
        "total": shown.total,
        "first": shown.cursor,
        "rows": [_row(row) for row in shown.rows],
        "cursor": following if following < shown.total and shown.rows else None,
        "free": free,
    }


def _row(row: Row) -> Read:
    host = row.host
    own = {"host_id": str(host.id), "name": host.name, "group": row.group}
    return {
        **own,
        "pool": host.pool,
        "zone": host.zone,
        "rack": host.rack,
        "spans": [_span(span) for span in row.spans],
    }


def _span(one: Span) -> Read:
    known: Read = {"kind": one.kind, "start": date(one.start), "end": date(one.end)}
    counts = {"slots": one.slots, "vcpus": one.vcpus, "memory_mb": one.memory_mb}
    texts = {
        "id": one.id,
        "reservation_id": one.reservation_id,
        "lease_id": one.lease_id,
        "lease_name": one.lease_name,
        "project_id": one.project_id,
        "status": one.status,
        "maintenance_id": one.window_id,
        "reason": one.reason,
    }
    known |= {name: value for name, value in counts.items() if value}
    return known | {name: str(value) for name, value in texts.items() if value}
