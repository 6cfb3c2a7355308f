"""Search for free times, and holds of what was offered."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from flask.typing import ResponseReturnValue
from structlog.contextvars import bind_contextvars

from api import unreadable_leases
from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation.dates import NOW, date
from api.reservation.ids import path_id
from api.reservation.leases import reservation_specs
from api.reservation.leases.availability_schema import (
    EXAMPLE,
    AvailabilityAnswer,
    AvailabilityQuestion,
    HoldAnswer,
    HoldOrder,
    HoldsAnswer,
    local_time,
)
from api.reservation.leases.lease_view import lease_body
from api.reservation.view_decorator import PREFIX, Operation, Read, nothing, serve
from climate.domain.availability.daily_windows import DAYS, Window, zone
from climate.domain.availability.free_counts import Point
from climate.domain.availability.search import Mode
from climate.domain.lease import Lease
from climate.domain.planning.holds import renewable
from climate.service.availability import holds, reasons, search
from climate.service.availability.offers import Offer
from climate.service.availability.question import SearchRequest, present
from climate.service.availability.reasons import Reason

USUAL = timedelta(days=7)
"""Time from the earliest start in which is searched, if no latest end is given."""

SHOWN = ("id", "name", "project_id", "user_id", "start_date", "end_date", "created_at", "reservations")
"""Keys that a hold shares with leases."""

blueprint = Blueprint("availability", __name__, url_prefix=PREFIX, description="Free times, offers and holds.")


@serve(
    blueprint,
    "POST",
    "/availability",
    Operation("leases:post", {200: AvailabilityAnswer}, body=AvailabilityQuestion, refuses=(404, 409), example=EXAMPLE),
)
def find_times(query: Read, body: Read) -> ResponseReturnValue:
    """Search for times at which a lease fits.

    Each offer can be held by its id until it expires.  Without offers, `binding` names the limit that binds,
    and `alternatives` are offers for less.
    """
    inquiry = search.prepare(climate(), caller(), _search_request(body))
    found = search.find(inquiry)
    reason = None if found.offers else reasons.explain(inquiry, found)
    return {
        "offers": [_offer(offer) for offer in found.offers],
        "free": [None if one is None else _points(one) for one in found.free],
        "binding": None if reason is None else binding_body(reason),
        "alternatives": [] if reason is None else alternatives_body(reason),
    }


def _search_request(body: Read) -> SearchRequest:
    earliest = present(climate()) if body["earliest"] == NOW else body["earliest"]
    mode, length = Mode(body["mode"]), body["duration"]
    usual = earliest + (length if mode is Mode.AT else max(USUAL, 2 * length))
    return SearchRequest(
        reservations=[reservation_specs.read_new(climate().plugins, given) for given in body["reservations"]],
        length=length,
        earliest=earliest,
        latest=usual if body["latest"] is None or mode is Mode.AT else body["latest"],
        windows=[_window(given) for given in body["between"]],
        step=timedelta(seconds=body["step"]),
        mode=mode,
        offers=body["offers"],
        points=body["points"],
    )


def _window(given: Read) -> Window:
    days = frozenset(DAYS.index(day) for day in given["days"])
    return Window(days, local_time(given["begin"]), local_time(given["end"]), zone(given["zone"]))


def _offer(offer: Offer) -> Read:
    return {
        "id": offer.id,
        "start_date": date(offer.start),
        "end_date": date(offer.end),
        "expires_at": date(offer.expires_at),
        "cost": offer.cost,
        "reservations": [
            {"resource_type": reservation.resource_type, "count": reservation.count, "free": reservation.free}
            for reservation in offer.reservations
        ],
    }


def _points(points: Sequence[Point]) -> list[Read]:
    return [{"time": date(datetime.fromtimestamp(at, UTC)), "free": free} for at, free in points]


def binding_body(reason: Reason) -> Read:
    """Return the limit that binds as answers show it."""
    one = reason.binding
    return {"name": one.name, "message": one.message, "reservation": one.reservation}


def alternatives_body(reason: Reason) -> list[Read]:
    """Return the offers for other requests as answers show them."""
    return [
        {"kind": alternative.kind, "message": alternative.message, "offer": _offer(alternative.offer)}
        for alternative in reason.alternatives
    ]


@serve(blueprint, "GET", "/holds", Operation("leases:get", {200: HoldsAnswer}))
def list_holds(query: Read) -> ResponseReturnValue:
    """List the holds of the project, or of all projects for administrators."""
    found = holds.rows(climate(), caller())
    unreadable_leases.warn(found)
    return {"holds": [_hold(one) for one in found if isinstance(one, Lease)]}


@serve(
    blueprint,
    "POST",
    "/holds",
    Operation("leases:post", {201: HoldAnswer}, body=HoldOrder, refuses=(404, 409), example={"offer": "gAAAAABn…"}),
)
def create_hold(query: Read, body: Read) -> ResponseReturnValue:
    """Hold what an offer has, for CLIMATE_HOLD_SECONDS at most.

    Repeated for the same offer, the answer is the same hold.
    """
    made = holds.create(climate(), caller(), body["offer"], body["name"])
    bind_contextvars(lease_id=str(made.id))
    return {"hold": _hold(made)}, 201


@serve(blueprint, "GET", "/holds/<hold_id>", Operation("leases:get", {200: HoldAnswer}, refuses=(404,)))
def show_hold(hold_id: str, query: Read) -> ResponseReturnValue:
    """Show a hold."""
    return {"hold": _hold(holds.get(climate(), caller(), _id(hold_id)))}


@serve(
    blueprint,
    "POST",
    "/holds/<hold_id>/renew",
    Operation("leases:post", {200: HoldAnswer}, refuses=(404, 409)),
)
def renew_hold(hold_id: str, query: Read) -> ResponseReturnValue:
    """Hold for CLIMATE_HOLD_SECONDS from now on; possible once."""
    return {"hold": _hold(holds.renew(climate(), caller(), _id(hold_id)))}


@serve(blueprint, "DELETE", "/holds/<hold_id>", Operation("leases:delete", {204: None}, refuses=(404, 409)))
def delete_hold(hold_id: str, query: Read) -> ResponseReturnValue:
    """Release a hold."""
    holds.release(climate(), caller(), _id(hold_id))
    return nothing()


def _hold(lease: Lease) -> Read:
    shown = lease_body(lease)
    return {
        **{name: shown[name] for name in SHOWN},
        "expires_at": shown["hold_until"],
        "renewable": renewable(lease),
    }


def _id(text: str) -> UUID:
    hold_id = path_id(text, f"Object with {{'hold_id': '{text[:80]}'}} not found")
    bind_contextvars(lease_id=str(hold_id))
    return hold_id
