"""First page: own leases, what ends soon, free capacity, and the search box."""

from datetime import datetime, timedelta

from flask import render_template
from flask.typing import ResponseReturnValue

from api import unreadable_leases
from api.request_context import caller, climate
from api.web import form_fields, free_capacity_chart, host_search, lease_words
from api.web.blueprint import SIGNED_IN, page
from api.web.free_capacity_chart import FreeStrip
from api.web.host_search import HostSearch
from climate.domain.errors import ClimateError
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.service.availability.question import present
from climate.service.leases import leases
from climate.service.waiting_list import places
from climate.store.leases.leases import Listing

MOST = 50
"""Leases that the page shows; the list has the others."""
SOON = timedelta(hours=24)
AHEAD = timedelta(days=14)
POINTS = 400


@page("GET", "/", SIGNED_IN)
def show() -> ResponseReturnValue:
    """Show the leases of the project that are not over, and the free capacity of two weeks."""
    who = caller()
    if not who.project_id or not who.has("reader"):
        return render_template("no_project.html")
    now = present(climate())
    wanted = Listing(project_id=who.project_id, ends_after=now, limit=MOST + 1, soonest=True)
    rows = leases.rows(climate(), who, wanted)
    known = [row for row in rows if isinstance(row, Lease)]
    known.sort(key=lambda lease: (lease.period.start > now, lease.period.end))
    strip, problem = _strip(now) if who.has("member") else (None, "")
    return render_template(
        "home.html",
        leases=known[:MOST],
        left_out=unreadable_leases.notices(rows),
        more=len(rows) > MOST,
        ending=[lease for lease in known if now < lease.period.end <= now + SOON and lease_words.can_change(lease)],
        now=now,
        strip=strip,
        problem=problem,
        lines=places.of(climate(), known[:MOST]),
        words=lease_words,
    )


def _strip(now: datetime) -> tuple[FreeStrip | None, str]:
    """Return the free hosts of the next two weeks, or why they are not known."""
    period = Period(now, now + AHEAD)
    any_host = HostSearch(1, timedelta(minutes=1), period.start, period.end)
    try:
        found, _ = host_search.find_offers(any_host, offers=0, points=POINTS)
    except ClimateError as error:
        return None, str(error)
    return free_capacity_chart.draw(found.free[0] or (), period, form_fields.zone()), ""
