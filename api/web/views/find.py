"""New lease: a question, offers for it, a hold of one of them, and the lease made of it."""

from collections.abc import Sequence
from uuid import UUID

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue
from structlog.contextvars import bind_contextvars

from api import unreadable_leases
from api.request_context import caller, climate
from api.reservation.ids import path_id
from api.web import (
    code_samples,
    form_fields,
    free_capacity_chart,
    host_search,
    lease_words,
    repetitions,
    search_fields,
    search_query,
)
from api.web.blueprint import PREFIX, page
from api.web.free_capacity_chart import FreeStrip
from api.web.host_search import USUAL, HostSearch
from api.web.search_query import USUAL_LENGTH
from climate.domain.availability.free_counts import Point
from climate.domain.errors import ClimateError, InvalidInput
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.planning.holds import renewable
from climate.service.admission import limits
from climate.service.availability import holds
from climate.service.availability.holds import Details
from climate.service.availability.question import present

FIND, HOLDS, LEASES = (f"{PREFIX}/{word}" for word in ("find", "holds", "leases"))


@page("GET", "/find", "leases:post")
def find() -> ResponseReturnValue:
    """Show the form and, once it is filled in, what fits."""
    now = present(climate())
    given = request.args
    problem, searched, answer, understood, repeat = "", None, None, None, None
    try:
        text = given.get("q", "")
        understood = search_query.read(text, now, form_fields.zone()) if text.strip() else None
        searched = search_fields.read(given, now, understood)
        repeat = repetitions.read(given)
        if given:
            answer = host_search.find_offers(searched)
    except ClimateError as error:
        problem = str(error)
    if searched is None:
        searched = HostSearch(1, USUAL_LENGTH, now, now + USUAL)
    found, reason = answer or (None, None)
    held = holds.rows(climate(), caller(), caller().project_id)
    points = found.free[0] if found else None
    return render_template(
        "find.html",
        searched=searched,
        understood=understood,
        given=given,
        problem=problem,
        found=found,
        reason=reason,
        strip=_drawn(points, searched),
        snippets=code_samples.of_search(searched) if found else {},
        holds=[one for one in held if isinstance(one, Lease)],
        left_out=unreadable_leases.notices(held),
        repeat=repeat,
        choices=repetitions.CHOICES,
        lengths=search_query,
        fields=form_fields,
        kept=search_fields.written(searched),
        wait_until=searched.latest - searched.length,
        now=now,
    ), (400 if problem else 200)


def _drawn(points: Sequence[Point] | None, searched: HostSearch) -> FreeStrip | None:
    if not points:
        return None
    return free_capacity_chart.draw(points, Period(searched.earliest, searched.latest), form_fields.zone())


@page("POST", "/holds", "leases:post")
def hold() -> ResponseReturnValue:
    """Hold an offer."""
    try:
        made = holds.create(climate(), caller(), request.form.get("offer", ""), _name())
    except ClimateError as error:
        flash(f"Nothing was held: {error}"[:400], "error")
        return redirect(FIND, 303)
    return redirect(f"{HOLDS}/{made.id}", 303)


@page("GET", "/holds/<hold_id>", "leases:get")
def show_hold(hold_id: str) -> ResponseReturnValue:
    """Show a hold with the time that is left, and what it takes of the limits."""
    lease = holds.get(climate(), caller(), _id(hold_id))
    now = present(climate())
    return render_template(
        "hold.html",
        lease=lease,
        now=now,
        renewable=renewable(lease),
        limits=[one for one in limits.of(climate(), caller()) if one.value is not None and one.value >= 0],
        words=lease_words,
    )


@page("POST", "/holds/<hold_id>/take", "leases:post")
def take(hold_id: str) -> ResponseReturnValue:
    """Make the lease of a hold."""
    known = _id(hold_id)
    try:
        lease = holds.take(climate(), caller(), known, Details(_name()))
    except InvalidInput as error:
        flash(f"Nothing was changed: {error}"[:400], "error")
        return redirect(f"{HOLDS}/{known}", 303)
    flash(f"{lease.name[:80]} is yours.", "good")
    return redirect(f"{LEASES}/{lease.id}", 303)


@page("POST", "/holds/<hold_id>/renew", "leases:post")
def renew(hold_id: str) -> ResponseReturnValue:
    """Hold for longer, once."""
    known = _id(hold_id)
    holds.renew(climate(), caller(), known)
    flash("The hold was renewed.", "good")
    return redirect(f"{HOLDS}/{known}", 303)


@page("POST", "/holds/<hold_id>/release", "leases:delete")
def release(hold_id: str) -> ResponseReturnValue:
    """Release a hold."""
    holds.release(climate(), caller(), _id(hold_id))
    flash("The hold was released.", "good")
    return redirect(FIND, 303)


def _name() -> str:
    return form_fields.text(request.form, "name") or holds.NAME


def _id(text: str) -> UUID:
    hold_id = path_id(text, f"There is no hold {text[:80]!r}.")
    bind_contextvars(lease_id=str(hold_id))
    return hold_id
