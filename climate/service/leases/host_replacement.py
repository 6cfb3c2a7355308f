"""Replacement of one host of a lease by an admin."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import Busy, Conflict, InvalidInput, NotFound
from climate.domain.events.event_transitions import is_active
from climate.domain.facts import Hold
from climate.domain.hosts.pools import BOOKABLE, HostPlace, Pool
from climate.domain.hosts.requirements import ANYTHING
from climate.domain.lease import Lease, Reservation
from climate.domain.policy import Caller, require
from climate.service.events import unbegun_claims
from climate.service.hosts import reconcile
from climate.service.hosts.inventory import number
from climate.service.leases.reallocation import Case, Outcome, can_reallocate, reallocate_hosts
from climate.service.transaction import run
from climate.store import locks
from climate.store.allocation import hosts
from climate.store.allocation.hosts import HostRequest
from climate.store.hosts import pool_membership
from climate.store.leases import leases

WHY = "an operator gave it another host"


@dataclass(frozen=True, slots=True)
class ReplacementRequest:
    """Host that a lease, or one reservation of it, loses; `to` is the new one, None: any.

    With `force`, the new host need not match the requirements.
    """

    host_id: str
    lease_id: UUID | None = None
    reservation_id: UUID | None = None
    to: str | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class Reallocated:
    """Lease after the change, and its new host."""

    lease: Lease
    reservation_id: UUID
    host: int
    to: int


def reallocate(climate: Climate, caller: Caller, order: ReplacementRequest, *, dry_run: bool = False) -> Reallocated:
    """Replace a host of a lease that has not ended.

    Servers on the old host stay there until the lease ends. Raises Conflict if the new host is not free, does not
    match, or cannot be handed over now. Raises Busy while an event of the lease is in progress.
    """
    require(caller, "oshosts:reallocate")
    if (order.lease_id is None) == (order.reservation_id is None):
        raise InvalidInput("Give either lease_id or reservation_id")
    done, outcome = run(climate, _reallocate, climate, caller, order, keep=not dry_run)
    if not dry_run:
        reconcile.send_moves(climate, outcome.moved)
    return done


def _reallocate(
    conn: Connection, climate: Climate, caller: Caller, order: ReplacementRequest
) -> tuple[Reallocated, Outcome]:
    host = pool_membership.get(conn, number(order.host_id))
    now = climate.now(conn)
    lease = unbegun_claims.take_back(conn, caller, _lease(conn, order), now)
    reservation = _holder(lease, order, host)
    if not can_reallocate(lease, now):
        raise Busy("The lease has ended, or one of its events is in progress")
    to = None if order.to is None else _target(conn, order.to, lease, host)
    others = frozenset(p.host for p in pool_membership.listed(conn) if to and p.host != to.host)
    given = ((reservation.id, _seized(conn, reservation, host, to)),) if to and order.force else ()
    case = Case(lease, now, caller, WHY, given_up=frozenset({host.host}), without=others, given=given)
    outcome = reallocate_hosts(conn, climate, case)
    got = {hold.host for hold in outcome.lease.reservation(reservation.id).holds if hold not in reservation.holds}
    if not got or outcome.short > sum(r.missing for r in lease.reservations):
        raise Conflict(_nothing(to))
    return Reallocated(outcome.lease, reservation.id, host.host, min(got)), outcome


def _lease(conn: Connection, order: ReplacementRequest) -> Lease:
    """Return the lease, locked."""
    lease_id = order.lease_id
    if order.reservation_id is not None:
        result = leases.of_reservation(conn, order.reservation_id)
        if result is None:
            raise NotFound(f"Object with {{'reservation_id': '{order.reservation_id}'}} not found")
        lease_id = result.id
    assert lease_id is not None
    return leases.get(conn, lease_id, lock=True)


def _holder(lease: Lease, order: ReplacementRequest, host: HostPlace) -> Reservation:
    for reservation in lease.reservations:
        if host.host in reservation.hosts and order.reservation_id in (None, reservation.id):
            return reservation
    raise Conflict(f"Host {host.name} is not held by lease {lease.id}")


def _target(conn: Connection, host_id: str, lease: Lease, instead_of: HostPlace) -> HostPlace:
    to = pool_membership.get(conn, number(host_id))
    if to.host == instead_of.host or any(to.host in r.hosts for r in lease.reservations):
        raise Conflict(f"Host {to.name} is held by the lease already")
    if is_active(lease) and to.pool is not Pool.RESERVATION:
        raise Conflict(f"Host {to.name} is in the pool {to.pool}: only one of the reservation pool can be handed over")
    if to.pool not in BOOKABLE:
        raise Conflict(f"Host {to.name} is in the pool {to.pool} and cannot be allocated")
    return to


def _seized(conn: Connection, reservation: Reservation, host: HostPlace, to: HostPlace) -> Hold:
    """Return the hold on a host that need not match; no other lease has it then, or gets it in this transaction."""
    hold = next(hold for hold in reservation.holds if hold.host == host.host)
    if hold.slots:
        raise InvalidInput(
            "force is only supported for physical:host reservations; on shared hosts capacity cannot be overridden"
        )
    locks.lock_host_allocation(conn)
    pool_membership.get(conn, to.host, lock=True)
    wanted = HostRequest(ANYTHING, hold.during, 1, 1, own=frozenset((reservation.id,)))
    if conflict := hosts.first_conflict(conn, [to.host], wanted):
        raise Conflict(f"Host {to.name} is allocated to others from {conflict:%Y-%m-%d %H:%M:%S} UTC")
    return Hold(to.host, hold.during)


def _nothing(to: HostPlace | None) -> str:
    if to is None:
        return "Not enough hosts available: no other host matches and is free for the time of the lease"
    return f"Host {to.name} is not free for the time of the lease, or does not match the requirements"
