"""Usage: host hours of leases by project, user, host, pool or property, in JSON and CSV."""

import csv
import io
from datetime import timedelta

from flask import Response, jsonify, request
from flask.typing import ResponseReturnValue
from marshmallow import RAISE, Schema, fields, validate

from api.openapi import Blueprint
from api.request_checks import answers
from api.request_context import caller, climate
from api.reservation.dates import Moment, date, maybe, out_date
from api.reservation.view_decorator import PREFIX, Operation, Read, Strict, serve
from climate.service.usage import reports
from climate.service.usage.reports import UsageReport, UsageRequest
from climate.store.usage.reports import GroupBy, ReportInterval, UsageLine

JSON, CSV = "json", "csv"
TEXT_CSV = "text/csv"
HOUR = timedelta(hours=1)

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters by which spreadsheets take a text for a formula."""

blueprint = Blueprint("usage", __name__, url_prefix=PREFIX, description="Host hours of leases.")


class UsageReportQuery(Strict):
    """Period, key and parts of a report."""

    start = Moment()
    end = Moment()
    by = fields.String(
        load_default=str(GroupBy.PROJECT),
        validate=validate.Length(1, 300),
        metadata={"description": "project, user, host, pool, or property:NAME."},
    )
    per = fields.String(
        load_default=str(ReportInterval.DAY),
        validate=validate.OneOf([str(per) for per in ReportInterval]),
        metadata={"description": "Part of the period that a line is about, in UTC; weeks begin on Monday."},
    )
    project_id = fields.String(
        data_key="project",
        validate=validate.Length(1, 255),
        metadata={"description": "Only this project (administrator)."},
    )
    format = fields.String(
        validate=validate.OneOf((JSON, CSV)), metadata={"description": "By default as Accept says, otherwise json."}
    )


class UsageLineOut(Schema):
    class Meta:
        unknown = RAISE

    start = out_date(metadata={"description": "Beginning of the part, or of the period."})
    key = fields.String(required=True, metadata={"description": "Empty for hosts without the property."})
    reserved_hours = fields.Float(required=True, metadata={"description": "Hours of whole hosts."})
    used_hours = fields.Float(
        required=True, metadata={"description": "Part of the reserved hours in which a server ran on the host."}
    )
    idle_hours = fields.Float(required=True)
    slot_hours = fields.Float(required=True, metadata={"description": "Hours of slots on shared hosts."})


class UsageAnswer(Schema):
    start = out_date()
    end = out_date()
    by = fields.String(required=True)
    per = fields.String(required=True)
    measured_since = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "Time from which on used hours are known; null: none are."},
    )
    usage = fields.List(fields.Nested(UsageLineOut), required=True)


@serve(blueprint, "GET", "/usage", Operation("usage:get", {200: UsageAnswer}, query=UsageReportQuery))
@answers("application/json", TEXT_CSV)
def report_usage(query: Read) -> ResponseReturnValue:
    """Report the host hours of leases: reserved, used by running servers, idle.

    Members see their project, administrators all. Without `start` the report begins 30 days before its end.
    """
    form = query.pop("format", None) or (CSV if _prefers_csv() else JSON)
    per = ReportInterval(query.pop("per"))
    report = reports.report(climate(), caller(), UsageRequest(**query, per=per))
    return _table(report) if form == CSV else jsonify(_body(report, query["by"]))


def _prefers_csv() -> bool:
    return request.accept_mimetypes.best_match(("application/json", TEXT_CSV)) == TEXT_CSV


def _body(report: UsageReport, by: str) -> dict[str, object]:
    return {
        "start": date(report.period.start),
        "end": date(report.period.end),
        "by": by,
        "per": str(report.per),
        "measured_since": maybe(date, report.measured_since),
        "usage": [_line(line) for line in report.lines],
    }


def _line(line: UsageLine) -> dict[str, object]:
    return {
        "start": date(line.start),
        "key": line.key,
        "reserved_hours": _hours(line.reserved),
        "used_hours": _hours(line.used),
        "idle_hours": _hours(line.idle),
        "slot_hours": _hours(line.slots),
    }


def _hours(time: timedelta) -> float:
    return round(time / HOUR, 4)


def _table(report: UsageReport) -> Response:
    """Return the lines as CSV; a key that a spreadsheet would take for a formula gets an apostrophe."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(UsageLineOut().fields), lineterminator="\r\n")
    writer.writeheader()
    for line in report.lines:
        row = _line(line)
        writer.writerow({**row, "key": f"'{line.key}" if line.key.startswith(FORMULA) else line.key})
    return Response(out.getvalue(), content_type=f"{TEXT_CSV}; charset=utf-8")
