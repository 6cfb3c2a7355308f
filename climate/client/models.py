"""Values of the client: offers, holds, leases and servers, with aware datetimes.

`body` is the JSON object of the answer, which may have further keys.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from climate.cli.dates import read

Body = Mapping[str, Any]


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
    body: Body = field(repr=False)

    @classmethod
    def of(cls, body: Body) -> "Offer":
        """Return the offer of an answer."""
        start, end, expires_at = (read(body[name]) for name in ("start_date", "end_date", "expires_at"))
        counts, free = ([one[name] for one in body["reservations"]] for name in ("count", "free"))
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
    def of(cls, body: Body) -> "Availability":
        """Return the answer of a search."""
        binding = body["binding"]
        return cls(
            [Offer.of(one) for one in body["offers"]],
            Binding(binding["name"], binding["message"]) if binding else None,
            [(one["message"], Offer.of(one["offer"])) for one in body["alternatives"]],
            [points and [(read(point["time"]), point["free"]) for point in points] for points in body["free"]],
        )


@dataclass(frozen=True, slots=True)
class Hold:
    """Resources that are held until `expires_at`; a lease can be made of it until then."""

    id: str
    name: str
    expires_at: datetime
    body: Body = field(repr=False)

    @classmethod
    def of(cls, body: Body) -> "Hold":
        """Return the hold of an answer."""
        return cls(body["id"], body["name"], read(body["expires_at"]), body)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Reservation of a lease. `id` is the value of the scheduler hint `reservation`."""

    id: str
    resource_type: str
    status: str
    body: Body = field(repr=False)

    @classmethod
    def of(cls, body: Body) -> "Reservation":
        """Return the reservation of an answer."""
        return cls(body["id"], body["resource_type"], body["status"], body)


@dataclass(frozen=True, slots=True)
class Lease:
    """Lease as it was when the answer came; `Client.lease` reads it again."""

    id: str
    name: str
    status: str
    start: datetime
    end: datetime
    degraded: bool
    reservations: Sequence[Reservation]
    body: Body = field(repr=False)

    @classmethod
    def of(cls, body: Body) -> "Lease":
        """Return the lease of an answer."""
        period = (read(body["start_date"]), read(body["end_date"]))
        reservations = [Reservation.of(one) for one in body["reservations"]]
        return cls(body["id"], body["name"], body["status"], *period, body["degraded"], reservations, body)


@dataclass(frozen=True, slots=True)
class Server:
    """Server as it was when the answer came; `Client.server` reads it again."""

    id: str
    name: str
    status: str
    addresses: Sequence[str]
    body: Body = field(repr=False)

    @classmethod
    def of(cls, body: Body) -> "Server":
        """Return the server of an answer."""
        addresses = [one["addr"] for entries in body["addresses"].values() for one in entries]
        return cls(body["id"], body["name"], body["status"], addresses, body)
