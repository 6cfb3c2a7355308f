"""Allocations of registered resources: lists and views."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar
from uuid import UUID

from flask.typing import ResponseReturnValue

from api.reservation import pages
from api.reservation.dates import date


class Registered(Protocol):
    """A resource that can be reserved."""

    @property
    def id(self) -> UUID: ...


class Held(Protocol):
    """A reservation of the resource; the dates are its lease's."""

    @property
    def reservation_id(self) -> UUID: ...
    @property
    def lease_id(self) -> UUID: ...
    @property
    def start(self) -> datetime: ...
    @property
    def end(self) -> datetime: ...


Thing = TypeVar("Thing", bound=Registered)
Holding = TypeVar("Holding", bound=Held)


def listing(
    find: Callable[[str | None, int], Sequence[tuple[Thing, Sequence[Holding]]]],
    body: Callable[[Thing, Sequence[Holding]], dict[str, object]],
) -> ResponseReturnValue:
    """Return the requested page of resources, which `find` reads after a marker, with their reservations."""
    part = pages.requested()
    return pages.listing("allocations", find(part.marker, part.fetch), part, lambda row: body(row[0], row[1]))


def chosen(held: Iterable[Holding], query: Mapping[str, object]) -> list[tuple[Holding, dict[str, object]]]:
    """Return the reservations that the query selects by lease or by reservation id, each with the common keys."""
    wanted = (query.get("lease_id"), query.get("reservation_id"))
    return [
        (
            one,
            {
                "id": str(one.reservation_id),
                "lease_id": str(one.lease_id),
                "start_date": date(one.start),
                "end_date": date(one.end),
            },
        )
        for one in held
        if wanted[0] in (None, str(one.lease_id)) and wanted[1] in (None, str(one.reservation_id))
    ]
