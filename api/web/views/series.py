"""Series: the dates of a lease that repeats, with those that clash, before it is created and afterwards."""

from collections.abc import Mapping
from uuid import UUID

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue
from structlog.contextvars import bind_contextvars

from api.request_context import caller, climate
from api.reservation.ids import marker_id, path_id
from api.reservation.leases import reservation_specs
from api.reservation.leases.repeat_schema import LONGEST_NAME
from api.web import form_fields, lease_words, preferences, repetitions, search_fields
from api.web.blueprint import PREFIX, page
from api.web.form_fields import Form
from climate.domain.errors import ClimateError, InvalidInput
from climate.domain.planning.series import Make
from climate.service.availability.question import present
from climate.service.leases.leases import LeaseRequest
from climate.service.series import change, create
from climate.service.series.create import SeriesOrder
from climate.store.leases.series import SeriesListing

LIST = f"{PREFIX}/series"
ON_A_PAGE = 50


@page("GET", "/series", "leases:get")
def list_all() -> ResponseReturnValue:
    """List the series of the project, by pages."""
    wanted = SeriesListing(
        project_id=caller().project_id, marker=marker_id(request.args.get("marker")), limit=ON_A_PAGE + 1
    )
    known = change.listed(climate(), caller(), wanted)
    following = known[ON_A_PAGE - 1][0].id if len(known) > ON_A_PAGE else None
    return render_template("series_list.html", series=known[:ON_A_PAGE], following=following)


@page("GET", "/series/new", "leases:post")
def preview() -> ResponseReturnValue:
    """Show each date of a lease that would repeat: whether it fits, and what would fit instead."""
    return _preview(request.args, "")


@page("POST", "/series", "leases:post")
def make() -> ResponseReturnValue:
    """Create all leases of a series, or those that fit."""
    name, wish = form_fields.text(request.form, "name", LONGEST_NAME), request.form.get("make", "")
    try:
        if not name:
            raise InvalidInput("name is missing: the leases are named by it and their dates")
        if wish not in set(Make):
            raise InvalidInput(f"make is {wish[:20]!r}: expected is one of {', '.join(Make)}")
        made = create.create(climate(), caller(), _order(request.form, name, Make(wish)))
    except ClimateError as error:
        return _preview(request.form, str(error)), 409
    flash(f"{name} was created.", "good")
    return redirect(f"{LIST}/{made.series.id}", 303)


def _preview(form: Form, problem: str) -> str:
    order = _order(form, "preview", Make.FITTING)
    shown = create.create(climate(), caller(), order, dry_run=True)
    return render_template(
        "series_new.html",
        occurrences=shown.occurrences,
        fitting=sum(occurrence.lease is not None for occurrence in shown.occurrences),
        rule=order.rule,
        series_zone=order.zone,
        kept=_kept(form),
        name=form.get("name", "")[:LONGEST_NAME],
        longest=LONGEST_NAME,
        problem=problem,
    )


def _order(form: Form, name: str, make: Make) -> SeriesOrder:
    """Return the series of the fields of a form."""
    now = present(climate())
    searched, repeat = search_fields.read(form, now), repetitions.read(form)
    if repeat is None:
        raise InvalidInput(f"every is missing: expected is one of {', '.join(repetitions.CHOICES)}")
    order = LeaseRequest(
        name=name,
        start=searched.earliest,
        end=searched.earliest + searched.length,
        reservations=[reservation_specs.read_new(climate().plugins, searched.reservation)],
    )
    return SeriesOrder(order, repeat.rule, preferences.zone() or "UTC", make)


def _kept(form: Form) -> Mapping[str, object]:
    names = ("hosts", "length", "requirements", "earliest", "preemptible", "every", "times", "rule")
    return {name: form[name] for name in names if form.get(name)}


@page("GET", "/series/<series_id>", "leases:get")
def show(series_id: str) -> ResponseReturnValue:
    """Show a series with its leases, and the dates that did not fit."""
    return _shown(series_id, asks=False)


@page("GET", "/series/<series_id>/delete", "leases:delete")
def ask_delete(series_id: str) -> ResponseReturnValue:
    """Ask whether a series is to be deleted."""
    return _shown(series_id, asks=True)


def _shown(series_id: str, *, asks: bool) -> str:
    found = change.get(climate(), caller(), _id(series_id))
    return render_template(
        "series.html", series=found.series, occurrences=found.occurrences, words=lease_words, asks=asks
    )


@page("POST", "/series/<series_id>/delete", "leases:delete")
def delete(series_id: str) -> ResponseReturnValue:
    """Delete a series, and its leases that have not begun."""
    change.delete(climate(), caller(), _id(series_id))
    flash("The series was deleted. Leases that have begun go on until their end.", "good")
    return redirect(LIST, 303)


def _id(text: str) -> UUID:
    series_id = path_id(text, f"There is no series {text[:80]!r}.")
    bind_contextvars(series_id=str(series_id))
    return series_id
