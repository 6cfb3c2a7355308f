"""Searches for times at which a lease fits, holds, and series of leases."""

from typing import NotRequired, TypedDict

from climate.cli.response_types.leases import HeldReservation, Lease


class Offered(TypedDict):
    """The number of resources that a reservation gets; null where nothing is counted."""

    resource_type: str
    count: int | None
    free: int | None


class Offer(TypedDict):
    """A time at which everything fits."""

    id: str
    start_date: str
    end_date: str
    expires_at: str
    cost: float
    reservations: list[Offered]


class Point(TypedDict):
    """The free number from a time on."""

    time: str
    free: int


class Binding(TypedDict):
    """The limit that binds, and the index of the reservation that it is about."""

    name: str
    message: str
    reservation: int | None


class Alternative(TypedDict):
    """An offer near the request, and what would have to change for it."""

    kind: str
    message: str
    offer: Offer


class Availability(TypedDict):
    """Offers, best first; without any, the reason and what would fit."""

    offers: list[Offer]
    free: list[list[Point] | None]
    binding: Binding | None
    alternatives: list[Alternative]


class Hold(TypedDict):
    """A hold of resources, of which a lease can be made."""

    id: str
    name: str
    project_id: str
    user_id: str
    start_date: str
    end_date: str
    expires_at: str
    renewable: bool
    created_at: str
    reservations: list[HeldReservation]


class Occurrence(TypedDict):
    """An occurrence of a series: its lease, or the reason why there is none."""

    lease_id: str | None
    name: str
    start_date: str
    end_date: str
    fits: bool
    status: str | None
    reason: str | None
    binding: Binding | None
    alternatives: list[Alternative]


class Series(TypedDict):
    """A series; lists leave its occurrences out, which are in the order of their starts."""

    id: str
    name: str
    project_id: str
    user_id: str
    rule: str
    zone: str
    make: str
    start_date: str
    end_date: str
    leases: int
    created_at: str
    updated_at: str | None
    occurrences: NotRequired[list[Occurrence]]


class CreatedSeries(TypedDict):
    """The first lease of a new series, null if a dry run finds none that fits, and the series."""

    lease: Lease | None
    series: Series
