"""Servers on leases: admission to boot on a reservation, and RESERVED servers that wait for their lease."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import structlog
from sqlalchemy import Connection

from climate.cloud import CloudError, CloudServer, Fenced, NotYet
from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput, Undecided
from climate.domain.events import event_transitions
from climate.domain.events.event_transitions import EVENT_NAME, EVENT_NAME_RULE, MOST_EVENTS, AdditionalEvent
from climate.domain.facts import ReservationChanged
from climate.domain.lease import Lease
from climate.domain.policy import Caller, require
from climate.domain.status import EventKind, EventStatus, LeaseStatus, ReservationStatus
from climate.plugin.schema_fields import GIVEN_UP
from climate.service.events import unbegun_claims
from climate.service.leases import leases
from climate.service.leases.dates import read as read_date
from climate.service.leases.leases import LeaseRequest
from climate.service.transaction import run
from climate.store.leases import leases as stored

log = structlog.get_logger(__name__)

LEASE_PARAMS = {"name", "start", "end", "before_end", "start_date", "end_date", "before_end_date", "on_end", "events"}
"""Keys of lease_params: the historic words and those of the API."""

ORPHAN_AFTER = timedelta(seconds=60)

_UNUSABLE = re.compile("[\0\ud800-\udfff]")
"""Characters that the database does not store, and that JSON in a text can contain."""


def admit(climate: Climate, caller: Caller, reservation_id: str) -> Lease:
    """Return the lease of a reservation on which the caller wants to boot.

    Raises InvalidInput for an invalid id, and NotFound for an unknown one or one of another project. Raises
    Conflict if the lease has not started, or is over or ending, and if the hosts are in another cloud.
    """
    require(caller, "servers:write")
    _check_here(climate)
    known = _id(reservation_id)
    lease = leases.of_reservation(climate, caller, known)
    _refuse_over(lease)
    # In a lease with several types, each reservation is usable once its own start is done.
    begun = lease.status_of(lease.reservation(known)) is ReservationStatus.ACTIVE
    if lease.status is not LeaseStatus.ACTIVE and not begun:
        start = lease.event(EventKind.START)
        raise Conflict(f"The lease {lease.id} is {lease.status}: it starts at {start.due_at:%Y-%m-%d %H:%M:%S} UTC")
    return lease


def _id(reservation_id: str) -> UUID:
    """Return the id of a reservation from a hint, which must have the form of the name of its aggregate."""
    try:
        known: UUID | None = UUID(reservation_id)
    except ValueError:
        known = None
    if known is None or str(known) != reservation_id:
        raise InvalidInput(f"reservation {reservation_id[:80]!r} is not a UUID in the form in which it is shown")
    return known


def _refuse_over(lease: Lease) -> None:
    """Raise Conflict if the lease is over, is ending, or is in its grace period."""
    if lease.gone or lease.deleting or lease.event(EventKind.END).status is not EventStatus.UNDONE:
        raise Conflict(
            f"The lease {lease.id} is {'over' if lease.gone else lease.status}: nothing can boot on it any more"
        )
    if any(event.kind is EventKind.CLOSE and event.token for event in lease.events):
        until = lease.event(EventKind.END).due_at
        raise Conflict(
            f"The lease {lease.id} is over and in its grace period until {until:%Y-%m-%d %H:%M:%S} UTC: "
            "nothing can boot on it unless it is prolonged"
        )


def reserve(
    climate: Climate, caller: Caller, lease_params: object, make: Callable[[str], None], server_id: str | None = None
) -> Lease:
    """Create a RESERVED server and the lease that will start it; both or neither.

    `server_id`: an id that was issued already; None: a new one. `make(server_id)` schedules the server and
    assigns its addresses. If the process dies in between, or the commit fails, `sweep` finds the server without a
    lease.
    """
    require(caller, "leases:post")
    _check_here(climate)
    order, on_end = _order(lease_params)
    server_id = server_id or str(uuid4())
    leases.check_dates(climate, order)
    make(server_id)
    spec = {"resource_type": "virtual:instance", "resource_id": server_id, **on_end}
    try:
        return leases.create(climate, caller, replace(order, reservations=(spec,)))
    except Undecided:  # a lease may hold the server
        raise
    except BaseException:
        _drop(climate, server_id)
        raise


def end_reservation(climate: Climate, caller: Caller, server_id: str) -> Lease | None:
    """End the lease of a RESERVED server to be deleted, or its reservation if the lease has others.

    Returns the lease after that; None if no lease waits to start the server. Raises Busy while a worker runs one
    of its events.
    """
    lease = leases.of_resource(climate, server_id)
    if lease is None or lease.gone or lease.deleting or lease.event(EventKind.START).carried_out:
        return None
    left = [r for r in lease.reservations if r.resource_id != server_id and not r.spec.get(GIVEN_UP)]
    if not left:
        return leases.delete(climate, caller, lease.id)
    require(caller, "leases:put")
    return run(climate, _end_reservation, climate, caller, server_id, lease)


def _end_reservation(conn: Connection, climate: Climate, caller: Caller, server_id: str, lease: Lease) -> Lease:
    present = stored.get(conn, lease.id, project_id=leases.scope(caller), lock=True)
    now = climate.now(conn)
    present = unbegun_claims.take_back(conn, caller, present, now)
    event_transitions.refuse_while_running(present)
    own = next(r for r in present.reservations if r.resource_id == server_id)
    spec = {**own.spec, GIVEN_UP: True}
    present = stored.record(conn, caller, present, ReservationChanged(now, own.id, spec, own.holds))
    leases.wake_if_soon(conn, climate, present, now)
    return present


def _check_here(climate: Climate) -> None:
    if climate.settings.cloud != "bundled":
        raise Conflict("The leases of this deployment are in another cloud: boot their servers there")


def sweep(climate: Climate) -> list[str]:
    """Delete servers that have been RESERVED for a while without a lease; return their ids."""
    sleeping = climate.cloud.sleeping()
    if not sleeping:
        return []
    known, now = run(climate, _with_lease, climate, sleeping)
    # A young one may be waiting for a lease that is about to be recorded.
    settled = [server for server in sleeping if server.created_at is None or now - server.created_at > ORPHAN_AFTER]
    orphans = [server.id for server in settled if server.id not in known]
    for server_id in orphans:
        log.warning("deleting orphaned reserved server", server_id=server_id)
        _drop(climate, server_id)
    return orphans


def _with_lease(conn: Connection, climate: Climate, servers: Sequence[CloudServer]) -> tuple[frozenset[str], datetime]:
    return stored.with_resource(conn, [server.id for server in servers]), climate.now(conn)


def _drop(climate: Climate, server_id: str) -> None:
    """Request a server's deletion; the sweep retries it if it fails."""
    try:
        climate.cloud.delete_server(server_id, 0)
    except (CloudError, Fenced, NotYet) as error:
        log.warning("orphaned server not deleted", server_id=server_id, error=str(error))


def _order(lease_params: object) -> tuple[LeaseRequest, Mapping[str, object]]:
    params = _object(lease_params)
    unknown = sorted(set(params) - LEASE_PARAMS)
    if unknown:
        raise InvalidInput(
            f"lease_params: {', '.join(unknown)} cannot be set; known are {', '.join(sorted(LEASE_PARAMS))}"
        )
    name = params.get("name", f"lease-{uuid4().hex[:6]}")
    if not isinstance(name, str) or not name.strip() or len(name) > 80 or _UNUSABLE.search(name):
        raise InvalidInput("lease_params: name must be a text of 1 to 80 characters that are not only blanks")
    end = _date(params, "end")
    if end is None:
        raise InvalidInput("lease_params: Missing parameter end")
    on_end = {"on_end": params["on_end"]} if "on_end" in params else {}
    order = LeaseRequest(name, _date(params, "start"), end, _date(params, "before_end"), events=_events(params))
    return order, on_end


def _object(lease_params: object) -> Mapping[str, object]:
    try:
        params = json.loads(lease_params) if isinstance(lease_params, str) else lease_params
    except (ValueError, RecursionError):
        params = None
    if not isinstance(params, dict):
        raise InvalidInput('lease_params must be a JSON object like {"start": "now", "end": "2030-01-31 16:00"}')
    return params


def _events(params: Mapping[str, object]) -> list[AdditionalEvent]:
    """Return the additional events of lease_params, as for other leases."""
    asked = params.get("events", [])
    if not isinstance(asked, list) or len(asked) > MOST_EVENTS:
        raise InvalidInput(f"lease_params: events must be a list of {MOST_EVENTS} events at most")
    for event in asked:
        if not isinstance(event, dict) or set(event) != {"event_type", "event_date"}:
            raise InvalidInput(
                'lease_params: an event must be an object like {"event_type": "notification", "event_date": '
                '"2030-01-31 16:00"}'
            )
        if not isinstance(event["event_type"], str) or not EVENT_NAME.fullmatch(event["event_type"]):
            raise InvalidInput(f"lease_params: event_type must be {EVENT_NAME_RULE}")
    return [AdditionalEvent(event["event_type"], read_date(event["event_date"])) for event in asked]


def _date(params: Mapping[str, object], word: str) -> datetime | None:
    given = params.get(word, params.get(f"{word}_date"))
    if given is None or (word == "start" and given == "now"):
        return None
    return read_date(given)
