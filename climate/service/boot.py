"""Servers and leases together: who may boot on what is lent, and servers that wait for their lease."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import structlog

from climate.cloud import CloudError
from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput
from climate.domain.lease import EventKind, EventStatus, Lease, LeaseStatus
from climate.domain.policy import Caller, require
from climate.service import leases
from climate.service.dates import read as read_date
from climate.service.leases import Order
from climate.service.unit import work
from climate.store import leases as stored

log = structlog.get_logger(__name__)

LEASE_PARAMS = {"name", "start", "end", "before_end", "start_date", "end_date", "before_end_date", "on_end", "events"}
"""What a client may say of the lease it wants a server for: the historic words and those of the API."""

ORPHAN_AFTER = timedelta(seconds=60)


def admit(climate: Climate, caller: Caller, reservation_id: str) -> Lease:
    """The lease of a reservation that the caller wants to boot on.

    InvalidInput for what is no id; NotFound where it is nobody's or another
    project's; Conflict where the lease has not started, or is over or ending.
    """
    require(caller, "servers:write")
    try:
        known = UUID(reservation_id)
    except ValueError:
        raise InvalidInput(f"reservation {reservation_id[:80]!r} is not a UUID") from None
    lease = leases.of_reservation(climate, caller, known)
    start = lease.event(EventKind.START)
    if lease.gone or lease.deleting or lease.event(EventKind.END).status is not EventStatus.UNDONE:
        raise Conflict(
            f"The lease {lease.id} is {'over' if lease.gone else lease.status}: nothing can boot on it any more"
        )
    if lease.status is not LeaseStatus.ACTIVE:
        raise Conflict(f"The lease {lease.id} is {lease.status}: it starts at {start.due_at:%Y-%m-%d %H:%M:%S} UTC")
    return lease


def reserve(climate: Climate, caller: Caller, lease_params: object, make: Callable[[str], None]) -> Lease:
    """Make a server that sleeps, and the lease that will wake it; both or neither.

    `make(server_id)` schedules the server and gives it its addresses.  Should
    the process die between the two, `sweep` finds the server without a lease.
    """
    require(caller, "leases:post")
    order, on_end = _order(lease_params)
    server_id = str(uuid4())
    leases.check_dates(climate, order)
    make(server_id)
    spec = {"resource_type": "virtual:instance", "resource_id": server_id, **on_end}
    try:
        return leases.create(climate, caller, replace(order, reservations=(spec,)))
    except BaseException:
        climate.cloud.delete_server(server_id, 0)
        raise


def sweep(climate: Climate, by: str) -> int:
    """Delete servers that have slept for a while without any lease to wake them; how many those were."""
    sleeping = climate.cloud.sleeping()
    if not sleeping:
        return 0
    ids = [server.id for server in sleeping]
    wanted = work(climate, lambda conn, patient: stored.with_resource(conn, ids))
    orphans = [server_id for server_id in ids if server_id not in wanted]
    for server_id in orphans:
        try:
            climate.cloud.delete_server(server_id, 0)
        except CloudError as error:
            log.warning("orphan could not be deleted", server_id=server_id, error=str(error))
    if orphans:
        log.warning("servers slept without a lease", by=by, servers=orphans)
    return len(orphans)


def _order(lease_params: object) -> tuple[Order, Mapping[str, Any]]:
    params = _object(lease_params)
    unknown = sorted(set(params) - LEASE_PARAMS)
    if unknown:
        raise InvalidInput(
            f"lease_params: {', '.join(unknown)} cannot be set; known are {', '.join(sorted(LEASE_PARAMS))}"
        )
    name = params.get("name", f"lease-{uuid4().hex[:6]}")
    if not isinstance(name, str) or not 1 <= len(name) <= 80 or "\0" in name:
        raise InvalidInput("lease_params: name must be a text of 1 to 80 characters")
    end = _date(params, "end")
    if end is None:
        raise InvalidInput("lease_params: Missing parameter end")
    on_end = {"on_end": params["on_end"]} if "on_end" in params else {}
    return Order(name, _date(params, "start"), end, _date(params, "before_end")), on_end


def _object(lease_params: object) -> Mapping[str, Any]:
    try:
        params = json.loads(lease_params) if isinstance(lease_params, str) else lease_params
    except (ValueError, RecursionError):
        params = None
    if not isinstance(params, dict):
        raise InvalidInput('lease_params must be a JSON object like {"start": "now", "end": "2030-01-31 16:00"}')
    return params


def _date(params: Mapping[str, Any], word: str) -> datetime | None:
    given = params.get(word, params.get(f"{word}_date"))
    if given is None or (word == "start" and given == "now"):
        return None
    return read_date(given)
