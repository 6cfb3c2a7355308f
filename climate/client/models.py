"""Values of the client: offers, holds, leases, series and servers, with aware datetimes.

`body` is the JSON object of the answer, which may have further keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from climate.cli.dates import read

if TYPE_CHECKING:
    from climate.cli.response_types import availability, leases, servers


@dataclass(frozen=True, slots=True)
class Offer:
    """A period in which the reservations fit, with the number that each of them would get."""

    id: str = field(repr=False)
    start: datetime
    end: datetime
    expires_at: datetime
    counts: Sequence[int | None]
    """One for each reservation; None for a resource type that is not counted."""
    free: Sequence[int | None]
    """Number that is free throughout the period, for each reservation."""
    body: "availability.Offer" = field(repr=False)

    @classmethod
    def of(cls, body: "availability.Offer") -> "Offer":
        """Return the offer of an answer."""
        start, end, expires_at = read(body["start_date"]), read(body["end_date"]), read(body["expires_at"])
        counts = [one["count"] for one in body["reservations"]]
        free = [one["free"] for one in body["reservations"]]
        return cls(body["id"], start, end, expires_at, counts, free, body)


@dataclass(frozen=True, slots=True)
class Binding:
    """Cause for which nothing fits: `name` is `hosts`, `property`, `maintenance`, a limit of the project and so on."""

    name: str
    message: str


@dataclass(frozen=True, slots=True)
class Availability:
    """Answer of a search. Without offers, `binding` says why, and `alternatives` are near the request."""

    offers: Sequence[Offer]
    binding: Binding | None
    alternatives: Sequence[tuple[str, Offer]]
    """What would have to change, and the offer that follows."""
    free: Sequence[Sequence[tuple[datetime, int]] | None]
    """Free number of each reservation along time: the number from each time on."""

    @classmethod
    def of(cls, body: "availability.Availability") -> "Availability":
        """Return the answer of a search."""
        binding = body["binding"]
        return cls(
            [Offer.of(one) for one in body["offers"]],
            Binding(binding["name"], binding["message"]) if binding else None,
            [(one["message"], Offer.of(one["offer"])) for one in body["alternatives"]],
            [
                None if points is None else [(read(point["time"]), point["free"]) for point in points]
                for points in body["free"]
            ],
        )


@dataclass(frozen=True, slots=True)
class Hold:
    """Resources that are held until `expires_at`; a lease can be made of it until then."""

    id: str
    name: str
    expires_at: datetime
    body: "availability.Hold" = field(repr=False)

    @classmethod
    def of(cls, body: "availability.Hold") -> "Hold":
        """Return the hold of an answer."""
        return cls(body["id"], body["name"], read(body["expires_at"]), body)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Reservation of a lease. `id` is the value of the scheduler hint `reservation`."""

    id: str
    resource_type: str
    status: str
    body: "leases.HeldReservation" = field(repr=False)

    @classmethod
    def of(cls, body: "leases.HeldReservation") -> "Reservation":
        """Return the reservation of an answer."""
        return cls(body["id"], body["resource_type"], body["status"], body)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Place of a lease in the waiting list, until its wait ends."""

    place: int
    until: datetime
    estimate: datetime | None
    """Start at which it would get its resources as things stand now; None if it gets none in time, and in lists."""
    reason: str | None
    """Reason why there is no estimate."""

    @classmethod
    def of(cls, body: "leases.Waiting") -> "Waiting":
        """Return the place of an answer."""
        estimate = body.get("estimate")
        return cls(body["place"], read(body["until"]), read(estimate) if estimate else None, body.get("reason"))


@dataclass(frozen=True, slots=True)
class Lease:
    """Lease as it was when the answer came; `Client.lease` reads it again."""

    id: str
    name: str
    status: str
    start: datetime
    end: datetime
    degraded: bool
    waiting: Waiting | None
    """Place in the waiting list; None for a lease that has its resources."""
    reservations: Sequence[Reservation]
    body: "leases.Lease" = field(repr=False)

    @classmethod
    def of(cls, body: "leases.Lease") -> "Lease":
        """Return the lease of an answer."""
        period = (read(body["start_date"]), read(body["end_date"]))
        waiting = Waiting.of(body["waiting"]) if body.get("waiting") else None
        reservations = [Reservation.of(one) for one in body["reservations"]]
        return cls(body["id"], body["name"], body["status"], *period, body["degraded"], waiting, reservations, body)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Lease of a series, or a date of its rule without a lease."""

    name: str
    start: datetime
    end: datetime
    lease_id: str | None
    """None for a date at which the lease does not fit. Of a dry run there is no such lease."""
    fits: bool
    reason: str | None
    """Reason why the lease does not fit."""
    alternatives: Sequence[tuple[str, Offer]]
    """What would have to change, and the offer that follows."""
    body: "availability.Occurrence" = field(repr=False)

    @classmethod
    def of(cls, body: "availability.Occurrence") -> "Occurrence":
        """Return the occurrence of an answer."""
        others = [(one["message"], Offer.of(one["offer"])) for one in body["alternatives"]]
        start, end = read(body["start_date"]), read(body["end_date"])
        return cls(body["name"], start, end, body["lease_id"], body["fits"], body["reason"], others, body)


@dataclass(frozen=True, slots=True)
class Series:
    """Leases that repeat by a rule, as they were when the answer came; `Client.series` reads them again."""

    id: str
    name: str
    rule: str
    zone: str
    leases: int
    """Number of leases that are not deleted."""
    occurrences: Sequence[Occurrence]
    """Empty in lists."""
    body: "availability.Series" = field(repr=False)

    @classmethod
    def of(cls, body: "availability.Series") -> "Series":
        """Return the series of an answer."""
        occurrences = [Occurrence.of(one) for one in body.get("occurrences", ())]
        return cls(body["id"], body["name"], body["rule"], body["zone"], body["leases"], occurrences, body)


@dataclass(frozen=True, slots=True)
class Server:
    """Server as it was when the answer came; `Client.server` reads it again."""

    id: str
    name: str
    status: str
    addresses: Sequence[str]
    body: "servers.Server" = field(repr=False)

    @classmethod
    def of(cls, body: "servers.Server") -> "Server":
        """Return the server of an answer."""
        addresses = [entry["addr"] for entries in body["addresses"].values() for entry in entries]
        return cls(body["id"], body["name"], body["status"], addresses, body)
