"""JSON views of leases: Blazar's keys, and a few of climate. `LeaseOut` in `schema` declares those of a lease."""

from dataclasses import dataclass

from api.reservation.dates import date, maybe, stamp
from climate.domain.events import event_transitions
from climate.domain.events.event import Event
from climate.domain.lease import Lease, Reservation
from climate.domain.lease_part import Part
from climate.domain.status import DONE, LeaseStatus, ReservationStatus
from climate.service.leases.host_visibility import LeaseHost
from climate.service.waiting_list import places
from climate.service.waiting_list.places import Place
from climate.store.journal import fact_codec
from climate.store.journal.journal import Entry

Body = dict[str, object]

HAVE_POOLS = frozenset({ReservationStatus.PENDING, ReservationStatus.ACTIVE})
"""Statuses of reservations that may have a pool in the cloud."""

UNWELL = frozenset({LeaseStatus.ERROR, LeaseStatus.DELETING})


@dataclass(frozen=True, slots=True)
class _Shown:
    """Values of a lease that its reservations and events repeat, formatted once: lists have many leases."""

    lease_id: str
    created_at: str
    updated_at: str | None


def lease_body(lease: Lease, place: Place | None = None, *, alone: bool = False) -> Body:
    """Return a lease as Blazar shows it.

    It has `status_reason` if its state differs from what its dates imply, `hold_until` while it is held, and `waiting`
    in the waiting list; the estimate of its start only if it is shown alone.
    """
    shown = _Shown(str(lease.id), stamp(lease.created_at), maybe(stamp, lease.updated_at))
    body: Body = {
        "id": shown.lease_id,
        "name": lease.name,
        "user_id": lease.user_id,
        "project_id": lease.project_id,
        "start_date": date(lease.period.start),
        "end_date": date(lease.period.end),
        "trust_id": None,
        "status": lease.status,
        "degraded": lease.degraded,
        "created_at": shown.created_at,
        "updated_at": shown.updated_at,
        "reservations": [_reservation(lease, reservation, shown) for reservation in lease.reservations],
        "events": [_event(event, shown) for event in lease.events],
    }
    if lease.hold_until is not None:
        body["hold_until"] = date(lease.hold_until)
    if lease.wait_until is not None:
        body["waiting"] = {"until": date(lease.wait_until), **_place(place, alone=alone)}
    if lease.series_id is not None:
        body["series_id"] = str(lease.series_id)
    if lease.sharing:
        body["sharing"] = fact_codec.encode(lease.sharing)
    if lease.parent is not None:
        body["parent"] = {"lease_id": str(lease.parent.lease_id), "project_id": lease.parent.project_id}
    if given := event_transitions.open_subleases(lease):
        body["subleases"] = [{"id": str(number), "hosts": hosts} for number, hosts in given.items()]
    reason = _reason(lease)
    return body if reason is None else {**body, "status_reason": reason}


def _place(place: Place | None, *, alone: bool) -> Body:
    if place is None:
        return {}
    if not alone:
        return {"place": place.number}
    body: Body = {"place": place.number, "estimate": maybe(date, place.estimate)}
    if place.estimate is not None:
        return body
    if place.fits_from is None:
        return {**body, "reason": f"No time at which it would fit is known within {places.AHEAD.days} days."}
    late = f"It would fit from {place.fits_from:%Y-%m-%d %H:%M:%S} UTC on, and can only start before."
    return {
        **body,
        "reason": f"{late} It gets its resources if others are released sooner.",
        "fits_from": date(place.fits_from),
    }


INVENTORY = frozenset({"host", "to_take", "number", "zone_id", "needed_by", "replaced"})
"""Keys of facts with ids of hosts, addresses and child zones of the deployment, and of leases of other projects."""


def entry_body(entry: Entry, *, inventory: bool = True) -> Body:
    """Return one entry of the history of a lease or host.

    Without `inventory`, for owners of leases, the ids of hosts, addresses, child zones and others' leases are left out.
    """
    body = fact_codec.encode(entry.fact)
    return {
        "version": entry.version,
        "kind": type(entry.fact).__name__,
        "at": date(entry.fact.at),
        "actor": entry.actor,
        "request_id": entry.request_id,
        "body": body if inventory else _without_inventory(body),
    }


def host_body(host: LeaseHost) -> Body:
    """Return a host of a lease by its name, with the properties that the caller may know."""
    servers = [{"id": one.id, "name": one.name, "status": one.status} for one in host.servers or ()]
    return {
        "name": host.name,
        "reservation_id": str(host.reservation_id),
        "properties": dict(host.properties),
        "servers": None if host.servers is None else servers,
    }


def _without_inventory(body: object) -> object:
    if isinstance(body, dict):
        # The owner's own request is shown whole, whatever its keys are.
        return {
            key: value if key == "spec" else _without_inventory(value)
            for key, value in body.items()
            if key not in INVENTORY
        }
    return [_without_inventory(one) for one in body] if isinstance(body, list) else body


def _reason(lease: Lease) -> str | None:
    trouble = any(event.reason and event.status is not DONE for event in lease.events)
    return lease.reason if trouble or lease.status in UNWELL else None


def _reservation(lease: Lease, one: Reservation, shown: _Shown) -> Body:
    """Return a reservation; keys of its plugin never replace the common keys."""
    status, reservation_id = lease.status_of(one), str(one.id)
    return {
        **fact_codec.encode(one.spec),
        **_of_some_reservations(lease, one, status),
        "id": reservation_id,
        "lease_id": shown.lease_id,
        "resource_id": one.resource_id or reservation_id,
        "resource_type": one.resource_type,
        "status": status,
        "missing_resources": one.missing_resources,
        "resources_changed": one.resources_changed,
        "created_at": shown.created_at,
        "updated_at": shown.updated_at,
    }


def _of_some_reservations(lease: Lease, one: Reservation, status: ReservationStatus) -> Body:
    """Return the common keys that only some reservations have."""
    body: Body = {}
    if one.addresses:
        body["allocated_floatingips"] = [hold.address for hold in one.addresses]
    if lease.held:
        body["held_hosts"] = len(one.holds) + sum(part.counted for part in one.parts)
    if one.parts:
        body["parts"] = [_part(part) for part in one.parts]
    if one.aggregate_id is not None and status in HAVE_POOLS:
        body["aggregate_id"] = one.aggregate_id
    if one.preemptions:
        body["preemption_at"] = date(min(plan.take_at for plan in one.preemptions))
    return body


def _part(one: Part) -> Body:
    return {
        **({"cell": one.cell} if one.cell else {"zone": one.zone}),
        "state": one.state,
        "hosts": one.hosts,
        "lease_id": str(one.lease_id) if one.lease_id else None,
        "reservation_id": str(one.reservation_id) if one.reservation_id else None,
    }


def _event(one: Event, shown: _Shown) -> Body:
    return {
        "id": str(one.id),
        "lease_id": shown.lease_id,
        "event_type": one.type,
        "time": date(one.due_at),
        "status": one.status,
        "created_at": shown.created_at,
        "updated_at": maybe(stamp, one.updated_at),
    }
