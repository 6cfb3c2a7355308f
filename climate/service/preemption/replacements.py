"""Other hosts for preemptible leases, among those that are really free."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import ClimateError
from climate.domain.events import event_transitions
from climate.domain.events.event_transitions import started
from climate.domain.facts import Hold
from climate.domain.hosts.requirements import ANYTHING
from climate.domain.lease import Lease, Reservation
from climate.domain.policy import ADMIN, Caller
from climate.plugin import ResourceRequest
from climate.store import locks
from climate.store.allocation import hosts
from climate.store.allocation.hosts import HostRequest
from climate.store.hosts import health

AUTHOR = Caller("climate:preemption", "", frozenset({ADMIN}))


def _resource_request(climate: Climate, lease: Lease, r: Reservation, without: Collection[int]) -> ResourceRequest:
    return ResourceRequest(
        spec={**r.spec, "min": 1, "max": 1},
        period=lease.period,
        caller=AUTHOR,
        settings=climate.settings,
        patient=True,
        taken=tuple(sorted(without)),
        grace_of_lease=event_transitions.grace(reservation.spec for reservation in lease.reservations),
        project_id=lease.project_id,
    )


def another(conn: Connection, climate: Climate, lease: Lease, r: Reservation, without: Collection[int]) -> Hold | None:
    """Return a hold on a free host for the whole period, apart from these; None if there is none.

    Waits for concurrent allocations. A running lease gets none that cannot be handed over now.
    """
    plugin = climate.plugins.get(r.resource_type)
    if plugin is None:
        return None
    locks.lock_host_allocation(conn)
    unfit = health.unfit(conn)
    avoided = unfit.unwell | (unfit.busy | unfit.off if started(lease) else frozenset())
    try:
        return plugin.reserve(conn, _resource_request(climate, lease, r, avoided.union(without))).holds[0]
    except ClimateError:
        return None


def for_longer(
    conn: Connection, climate: Climate, lease: Lease, r: Reservation, hold: Hold, now: datetime
) -> Hold | None:
    """Return the hold on the same host for as long as possible; None if that is no longer than now."""
    window = _resource_request(climate, lease, r, ()).window
    if window.end <= hold.during.end:
        return None
    locks.lock_host_allocation(conn)
    locks.lock_hosts(conn, [hold.host])
    wanted = HostRequest(ANYTHING, replace(window, start=hold.during.end), 1, 1, own=frozenset({r.id}))
    until = hosts.first_conflict(conn, [hold.host], wanted) or window.end
    if until <= max(hold.during.end, now):
        return None
    # The hold of a host that is needed since before the lease is an instant before its start.
    return Hold(hold.host, replace(window, end=until))
