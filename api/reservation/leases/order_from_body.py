"""Orders of leases and series, from bodies that were validated."""

from datetime import timedelta

from api.request_context import climate
from api.reservation.dates import NOW
from api.reservation.leases import reservation_specs
from api.reservation.view_decorator import Read
from climate.domain.events.event_transitions import AdditionalEvent
from climate.domain.planning.series import Make
from climate.domain.sharing.sharing import Sharing
from climate.service.leases.leases import LeaseRequest
from climate.service.series.create import SeriesOrder


def order(body: Read) -> LeaseRequest:
    """Return the order of a lease, its reservations in the types of their plugins."""
    seconds = body.get("hold_seconds")
    return LeaseRequest(
        name=body["name"],
        start=None if body["start_date"] == NOW else body["start_date"],
        end=body["end_date"],
        before_end=body["before_end_date"],
        reservations=[reservation_specs.read_new(climate().plugins, given) for given in body["reservations"]],
        events=events(body),
        hold=None if seconds is None else timedelta(seconds=seconds),
        sharing=sharing(body.get("sharing")),
    )


def sharing(given: Read | None) -> Sharing:
    """Return the further projects and users of a lease; none for null."""
    return Sharing(**{name: tuple(ids) for name, ids in (given or {}).items()})


def events(body: Read) -> list[AdditionalEvent]:
    """Return the additional events."""
    return [AdditionalEvent(event["event_type"], event["event_date"]) for event in body["events"]]


def series(body: Read) -> SeriesOrder:
    """Return the order of a series: that of a lease, and its rule."""
    repeat = body["repeat"]
    return SeriesOrder(order(body), repeat["rule"], repeat["zone"], Make(repeat["make"]))
