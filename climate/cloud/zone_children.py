"""Parts of leases in child zones: requests over the reservation API, and the parsing of answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NotRequired, TypedDict, cast
from uuid import UUID

from climate.cloud import CloudError
from climate.cloud.children import (
    Child,
    Confirm,
    Hold,
    Look,
    Offer,
    Outcome,
    PartAnswer,
    PartLease,
    PartOrder,
    PartRequest,
    Prolong,
    Release,
    Verdict,
)
from climate.cloud.zones import ChildZones, ZoneAnswer, ZoneRequest

GONE = 404
BROKEN = 500
"""First status that leaves it unknown whether the child has carried out the request."""

OVER = frozenset({"DELETING", "TERMINATING", "TERMINATED", "ERROR"})


@dataclass(frozen=True, slots=True)
class ZoneChildren:
    """Child zones, asked over HTTP."""

    zones: ChildZones

    def active(self) -> Sequence[Child]:
        return self.zones.active()

    def silent(self) -> Sequence[Child]:
        return self.zones.silent()

    def send_all(self, requests: Sequence[PartRequest]) -> list[Outcome]:
        return [_read(outcome) for outcome in self.zones.send_all([written(request) for request in requests])]


def written(request: PartRequest) -> ZoneRequest:
    """Return the request of the reservation API for an action."""
    zone_id, role = request.child.id, request.asker.role
    match request.action:
        case Offer(order):
            body = lease_body(order, 1)
            return ZoneRequest(zone_id, "POST", "/leases", body, {"dry_run": "true"}, role=role)
        case Hold(order, key, seconds):
            return ZoneRequest(zone_id, "POST", "/leases", lease_body(order, seconds), key=key, role=role)
        case Confirm(lease_id, key):
            return ZoneRequest(zone_id, "POST", f"/leases/{lease_id}/confirm", key=key, role=role)
        case Look(lease_id):
            return ZoneRequest(zone_id, "GET", f"/leases/{lease_id}", role=role)
        case Prolong(lease_id, end, _, dry_run):
            query = {"dry_run": "true"} if dry_run else None
            return ZoneRequest(zone_id, "PUT", f"/leases/{lease_id}", {"end_date": _date(end)}, query, role=role)
        case Release(lease_id):
            return ZoneRequest(zone_id, "DELETE", f"/leases/{lease_id}", role=role)


class _ReservationBody(TypedDict):
    id: str
    held_hosts: NotRequired[int | None]


class _LeaseBody(TypedDict):
    """The parts of a lease that are read from an answer."""

    id: str
    status: str
    end_date: str
    reservations: list[_ReservationBody]


def lease_body(order: PartOrder, seconds: int) -> dict[str, object]:
    """Return the body of a lease that is held for the given number of seconds."""
    return {
        "name": order.name,
        "start_date": "now" if order.start is None else _date(order.start),
        "end_date": _date(order.end),
        "before_end_date": None,
        "events": [],
        "hold_seconds": seconds,
        "reservations": [{"resource_type": "physical:host", **order.spec}],
    }


def _read(outcome: ZoneAnswer | CloudError) -> Outcome:
    if isinstance(outcome, CloudError):
        return outcome
    if outcome.status >= BROKEN:
        return CloudError(f"HTTP {outcome.status}")
    if outcome.status == GONE:
        return PartAnswer(Verdict.GONE, reason=f"HTTP {GONE}")
    if not outcome.is_good:
        return PartAnswer(Verdict.REFUSED, reason=f"HTTP {outcome.status}")
    return PartAnswer(Verdict.DONE, _lease(outcome.body))


def _lease(body: object) -> PartLease | None:
    """Return the lease of a successful answer, or None if it is unreadable."""
    shown = body.get("lease") if isinstance(body, dict) else None
    try:
        return _read_lease(cast(_LeaseBody, shown)) if isinstance(shown, dict) else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _read_lease(shown: _LeaseBody) -> PartLease:
    (one,) = shown["reservations"]
    hosts = one.get("held_hosts")
    return PartLease(
        id=UUID(shown["id"]),
        reservation_id=UUID(one["id"]),
        hosts=None if hosts is None else int(hosts),
        end=datetime.fromisoformat(shown["end_date"]).replace(tzinfo=UTC),
        is_over=shown["status"] in OVER,
    )


def _date(moment: datetime) -> str:
    """Return a date in the format that a child reads."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
