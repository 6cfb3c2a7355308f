"""Calendar of hosts: the component with its data, the same as a table, and changes of times by dragging."""

from datetime import UTC, datetime, timedelta

from flask import jsonify, render_template, request
from flask.typing import ResponseReturnValue
from marshmallow import ValidationError

from api.errors import describe
from api.request_context import caller, climate
from api.reservation.dates import date
from api.reservation.hosts import timeline as timeline_api
from api.reservation.hosts.timeline import TimelineQuery
from api.reservation.ids import path_id
from api.reservation.leases import event_stream
from api.reservation.leases.event_stream import MEDIA_TYPE, StreamQuery
from api.reservation.view_decorator import Read, Strict
from api.reservation.zone_tree import over_the_tree
from api.web.blueprint import page
from climate.domain.errors import ClimateError, InvalidInput, NotFound
from climate.domain.lease import Lease
from climate.domain.policy import MEMBER
from climate.service.hosts import timeline
from climate.service.hosts.timeline import Grouping, TimelineWindow
from climate.service.lease_tree import leases as tree_leases
from climate.service.leases import dates, leases
from climate.service.leases.update import Changes
from climate.whole_numbers import whole_number

SPANS = (6, 12, 24, 72, 168, 336, 744, 2208)
"""Hours that the calendar shows at once."""

USUAL_SPAN = 168
TABLE_ROWS = 50
JSON = ("application/json",)


@page("GET", "/calendar", "leases:get")
def show() -> ResponseReturnValue:
    """Show the calendar; `kiosk=1` without anything around it, for a screen on a wall."""
    shown = {name: request.args.get(name, "")[:255] for name in ("at", "span", "group", "search")}
    own = caller()
    return render_template(
        "calendar.html",
        shown={name: value for name, value in shown.items() if value},
        kiosk=request.args.get("kiosk") == "1",
        may_change=own.has(MEMBER),
    )


@page("GET", "/calendar/data", "leases:get", answers=JSON)
def data() -> ResponseReturnValue:
    """Answer a part of the calendar, as `GET /v1/timeline` does."""
    return timeline_api.answer(caller(), _query(TimelineQuery()))


@page("GET", "/calendar/table", "leases:get")
def table() -> ResponseReturnValue:
    """Show the calendar as a table, which needs no script."""
    wanted = _window()
    shown = timeline.read(climate(), caller(), wanted)
    following = shown.cursor + len(shown.rows)
    start, length = shown.period.start, shown.period.end - shown.period.start
    return render_template(
        "calendar_table.html",
        timeline=shown,
        free=[(datetime.fromtimestamp(at, UTC), count) for at, count in shown.free or ()],
        wanted=wanted,
        span=int(length.total_seconds() // 3600),
        spans=SPANS,
        groups=list(Grouping),
        before=_at(start - length),
        after=_at(start + length),
        at=_at(start),
        previous=max(0, shown.cursor - TABLE_ROWS) if shown.cursor else None,
        following=following if shown.rows and following < shown.total else None,
    )


@page("GET", "/events", "leases:get", answers=(MEDIA_TYPE,))
def events() -> ResponseReturnValue:
    """Stream changes as they happen, as `GET /v1/events/stream` does."""
    return event_stream.answer(caller(), _query(StreamQuery()))


@page("POST", "/calendar/leases/<lease_id>/times", "leases:put", answers=JSON)
def change_times(lease_id: str) -> ResponseReturnValue:
    """Change the start or the end of a lease, or both; with `dry_run` say whether that would fit."""
    is_trial = request.form.get("dry_run") == "1"
    try:
        known = path_id(lease_id, f"Object with {{'lease_id': '{lease_id[:80]}'}} not found")
        before = leases.get(climate(), caller(), known)
        changes = _times()
        after = tree_leases.update(over_the_tree(), caller(), known, changes, dry_run=is_trial)
    except NotFound as error:
        return jsonify(fits=False, message=str(error)), 404
    except ClimateError as refusal:
        return jsonify(fits=False, message=f"clashes: {refusal}")
    return jsonify(
        fits=True,
        message="fits" if _hosts(before) <= _hosts(after) else "fits, on other hosts",
        start=date(after.period.start),
        end=date(after.period.end),
    )


def _times() -> Changes:
    """Return the new times of the form. Raise InvalidInput without any."""
    given = {name: dates.read(request.form[name]) for name in ("start", "end") if name in request.form}
    if not given:
        raise InvalidInput("start and end are missing: at least one is needed, such as 2030-01-31T18:00Z")
    return Changes(start=given.get("start"), end=given.get("end"))


def _hosts(lease: Lease) -> set[int]:
    return {host for reservation in lease.reservations for host in reservation.hosts}


def _query(schema: Strict) -> Read:
    """Return the query string as the API reads it."""
    try:
        known: Read = schema.load(request.args.to_dict())
    except ValidationError as error:
        raise InvalidInput(describe({"query": error.messages_dict})) from None
    return known


def _window() -> TimelineWindow:
    """Return the part of the calendar that the address of a page names; whatever it misspells is as usual."""
    given = request.args
    try:
        start = dates.read(given.get("at", ""))
    except InvalidInput:
        start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    span = given.get("span", "")
    hours = int(span) if span in map(str, SPANS) else USUAL_SPAN
    group = Grouping(given["group"]) if given.get("group") in list(Grouping) else Grouping.POOL
    first = whole_number(given.get("row", ""), 6) or 0
    end = start + timedelta(hours=hours)
    return TimelineWindow(
        start, end, group, search=given.get("search", "")[:255], cursor=first, limit=TABLE_ROWS, points=48
    )


def _at(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")
