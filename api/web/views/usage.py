"""Limits and usage of the project, and its notices."""

from datetime import timedelta

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from api.request_context import caller, climate
from api.reservation.ids import marker_number
from api.web import form_fields
from api.web.blueprint import HOME, PREFIX, page, safe_redirect_path
from climate.domain.errors import InvalidInput, NotFound
from climate.service.admission import limits
from climate.service.notifications import delivery
from climate.service.usage import reports
from climate.service.usage.reports import UsageRequest
from climate.store.notices.notifications import Listing
from climate.store.usage.reports import ReportInterval
from climate.whole_numbers import whole_number

ON_A_PAGE = 50
HOUR = timedelta(hours=1)
KEYS = ("project", "user")
PERIODS = tuple(str(per) for per in ReportInterval)


@page("GET", "/usage", "usage:get")
def show() -> ResponseReturnValue:
    """Show the limits of the project with their use, and its host hours."""
    given = request.args
    by, per = given.get("by") or KEYS[0], given.get("per") or str(ReportInterval.WEEK)
    if by not in KEYS:
        raise InvalidInput(f"by is {by[:20]!r}: expected is one of {', '.join(KEYS)}")
    if per not in PERIODS:
        raise InvalidInput(f"per is {per[:20]!r}: expected is one of {', '.join(PERIODS)}")
    start, end = form_fields.moment(given, "start"), form_fields.moment(given, "end")
    wanted = UsageRequest(start, end, by, ReportInterval(per), caller().project_id)
    report = reports.report(climate(), caller(), wanted)
    return render_template(
        "usage.html",
        limits=limits.of(climate(), caller()),
        report=report,
        most=max((line.reserved / HOUR for line in report.lines), default=0),
        given={"by": by, "per": per, "start": given.get("start", ""), "end": given.get("end", "")},
        keys=KEYS,
        periods=PERIODS,
        hour=HOUR,
    )


@page("GET", "/notices", "notices:get")
def notices() -> ResponseReturnValue:
    """List the notices of the project, oldest first, by pages.

    Administrators also list those of all projects and of nobody, such as those about hosts.
    """
    given = request.args
    kind = form_fields.text(given, "kind", 64)
    flags = {name: given.get(name) == "1" for name in ("all", "failed")}
    everybody = caller().is_admin and flags["all"]
    wanted = Listing(
        project_id=None if everybody else caller().project_id,
        kind=kind or None,
        since=form_fields.moment(given, "since"),
        marker=marker_number(given.get("marker") or None),
        limit=ON_A_PAGE + 1,
        dead=flags["failed"],
    )
    known = delivery.listed(climate(), caller(), wanted)
    more = len(known) > ON_A_PAGE
    kept = {"kind": kind, "since": given.get("since", ""), **{name: "1" for name, chosen in flags.items() if chosen}}
    following = {**kept, "marker": known[ON_A_PAGE - 1].id} if more else None
    return render_template("notices.html", notices=known[:ON_A_PAGE], given=given, following=following)


@page("POST", "/notices/<notice_id>/resend", "notices:resend")
def resend(notice_id: str) -> ResponseReturnValue:
    """Send a notice again whose delivery was given up, and return to the page that the form names."""
    number = whole_number(notice_id)
    if number is None:
        raise NotFound(f"There is no notice {notice_id[:80]!r}.")
    back = safe_redirect_path(request.form.get("next", ""))
    try:
        delivery.resend(climate(), caller(), number)
    except NotFound:
        flash(f"There is no notice {notice_id} whose delivery was given up: perhaps it is sent again already.", "error")
    else:
        flash(f"Notice {notice_id} is sent again, from its first try on.", "good")
    return redirect(f"{PREFIX}/notices" if back == HOME else back, 303)
