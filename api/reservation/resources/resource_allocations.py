"""Who holds what: allocations of things that are registered, as they are shown and listed."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar
from uuid import UUID

from flask.typing import ResponseReturnValue

from api.reservation import pages
from api.reservation.dates import date


class Registered(Protocol):
    """A thing that can be held."""

    @property
    def id(self) -> UUID: ...


class Held(Protocol):
    """A reservation that holds it; the dates are its lease's."""

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
    body: Callable[[Thing, Sequence[Holding]], dict[str, Any]],
) -> ResponseReturnValue:
    """The page that is asked for of what `find` gives after a marker, each thing with who holds it."""
    part = pages.wanted()
    return pages.listing("allocations", find(part.marker, part.fetch), part, lambda row: body(row[0], row[1]))


def chosen(held: Iterable[Holding], query: Mapping[str, Any]) -> list[tuple[Holding, dict[str, Any]]]:
    """The reservations that the query asks for, by lease or by their own id, each with the body that all have."""
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
