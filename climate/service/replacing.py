"""Another host for a lease whose own is not given back: the promise outlives a failed end of somebody else's lease."""

from datetime import timedelta
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import Conflict, NotFound
from climate.domain.facts import Hold, ReservationChanged
from climate.domain.lease import Lease, Reservation
from climate.domain.policy import ADMIN, Caller
from climate.plugin import Ask
from climate.service.leases import wake_if_soon
from climate.service.unit import work
from climate.store import leases, quarantine

log = structlog.get_logger(__name__)

AHEAD = timedelta(minutes=10)
"""How long before its start a lease is given another host: until then the end may still be mended."""


def replace_hosts(climate: Climate) -> list[UUID]:
    """Give the leases that wait for a host of a failed end other hosts that match; the ids of those that got them.

    Where nothing else is free the lease goes on waiting; it is tried again.
    """

    def look(conn: Connection, patient: bool) -> tuple[tuple[int, ...], list[UUID]]:
        now, kept = climate.now(conn), quarantine.hosts(conn)
        return kept, quarantine.waiting(conn, kept, now + AHEAD, now) if kept else []

    kept, waiting = work(climate, look)
    return [lease_id for lease_id in waiting if _moved(climate, lease_id, kept)]


def _moved(climate: Climate, lease_id: UUID, kept: tuple[int, ...]) -> bool:
    def act(conn: Connection, patient: bool) -> Lease | None:
        lease = leases.get(conn, lease_id, lock=True)
        stuck = [r for r in lease.reservations if set(r.hosts) & set(kept)]
        if lease.touched or not stuck:
            return None
        now = climate.now(conn)
        facts = [ReservationChanged(now, r.id, r.spec, _other(climate, conn, lease, r, kept, patient)) for r in stuck]
        lease = leases.record(conn, _author(lease), lease, *facts)
        wake_if_soon(climate, conn, lease, now)
        return lease

    try:
        moved = work(climate, act)
    except (Conflict, NotFound) as error:
        log.warning("no other host for a lease that waits", lease_id=str(lease_id), reason=str(error))
        return False
    if moved:
        log.warning("a lease was given other hosts: the end of another one had failed", lease_id=str(lease_id))
    return moved is not None


def _other(
    climate: Climate, conn: Connection, lease: Lease, present: Reservation, kept: tuple[int, ...], patient: bool
) -> tuple[Hold, ...]:
    """What the reservation can hold instead; those of its hosts that can be used it keeps."""
    ask = Ask(
        present.spec, lease.period, _author(lease), climate.settings, present=present, patient=patient, taken=kept
    )
    return climate.plugins[present.resource_type].reserve(conn, ask).holds


def _author(lease: Lease) -> Caller:
    return Caller("climate:poller", lease.project_id, frozenset({ADMIN}))
