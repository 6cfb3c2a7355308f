"""A place in the waiting list, for a search of which nothing fits."""

from flask import flash, redirect, request
from flask.typing import ResponseReturnValue

from api.request_context import caller, climate
from api.reservation.leases import reservation_specs
from api.web import form_fields, search_fields
from api.web.blueprint import PREFIX, page
from climate.domain.errors import ClimateError, InvalidInput
from climate.domain.planning.waiting_list import Wait
from climate.service.availability.question import present
from climate.service.leases.leases import LeaseRequest
from climate.service.waiting_list import entries

NAME = "waiting"


@page("POST", "/waiting", "leases:post")
def stand_in_line() -> ResponseReturnValue:
    """Create a lease that waits for its hosts, or that has them at once if they are free by now."""
    now = present(climate())
    searched, until = search_fields.read(request.form, now), form_fields.moment(request.form, "until")
    if until is None:
        raise InvalidInput("until is missing: a time such as 2030-01-31T18:00 is expected")
    order = LeaseRequest(
        name=form_fields.text(request.form, "name") or NAME,
        start=searched.earliest if searched.earliest > now else None,
        end=searched.earliest + searched.length,
        reservations=[reservation_specs.read_new(climate().plugins, searched.reservation)],
    )
    try:
        made = entries.create(climate(), caller(), order, Wait(until))
    except ClimateError as error:
        flash(f"It cannot stand in line: {error}"[:400], "error")
        return redirect(f"{PREFIX}/find", 303)
    flash(f"{made.name[:80]} " + ("stands in line." if made.waits else "is yours: hosts are free."), "good")
    return redirect(f"{PREFIX}/leases/{made.id}", 303)
