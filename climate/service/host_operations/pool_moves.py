"""Moves of hosts between pools by admins: all of the hosts or none, and away from leases only with `force`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.cloud import FREEPOOL, CloudError, Fenced, NotYet
from climate.context import Climate
from climate.domain.errors import Busy, ClimateError, Conflict, InvalidInput, NotFound
from climate.domain.facts import HostMoved
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.hosts.pools import move as checked
from climate.domain.policy import Caller, require
from climate.service.host_operations import maintenance
from climate.service.hosts import move_checks, reconcile
from climate.service.hosts.move_checks import MOST_LISTED, MoveRequest, RequestedMove
from climate.service.leases import healing, shortages
from climate.service.leases.reallocation import Case, Outcome, can_reallocate, reallocate_hosts
from climate.service.transaction import run
from climate.store.hosts import cleaning, pool_membership, pools
from climate.store.hosts.pools import Promise
from climate.store.leases import event_claims, leases, row_consistency
from climate.whole_numbers import whole_number

log = structlog.get_logger(__name__)

ADMIN_TARGETS = (Pool.MULTI_TENANT, Pool.DRAINING, Pool.RESERVATION, Pool.MAINTENANCE, Pool.FAILED)
"""Pools into which an admin can move a host; it enters the others through its leases."""

MOST_HOSTS = 1000
LONGEST_REASON = 255

DEFAULT_REASON = "moved by an admin"
WHY = "one of its hosts was taken out"


@dataclass(frozen=True, slots=True)
class Moved:
    """Host before and after its move, and the allocations of leases that it lost or would lose."""

    before: HostPlace
    after: HostPlace
    lost: Sequence[Promise] = ()


def move(climate: Climate, caller: Caller, order: RequestedMove, *, dry_run: bool = False) -> list[Moved]:
    """Move all of the hosts, or none; a dry run returns the effects.

    Raises Conflict with the leases that would lose a host, or for a host that still has servers or was moved by
    somebody else meanwhile. A host that is in the pool already stays as it is.
    """
    require(caller, "pools:put")
    _check(order)
    seen, token = run(climate, _hosts_and_token, order)
    asked = MoveRequest(order, caller, token, tuple(seen))
    run(climate, move_checks.precheck, asked)
    if order.to is Pool.MAINTENANCE:
        return _maintain(climate, asked, dry_run)
    try:
        if order.to is Pool.RESERVATION:  # ask the cloud first, because only it knows whether they are empty
            _empty_out(climate, asked, dry_run)
        done, reallocated = run(climate, _record, climate, asked, keep=not dry_run)
    except ClimateError:
        if order.to is Pool.RESERVATION and not dry_run:
            _undo(climate, asked)
        raise
    if not dry_run:
        _follow(climate, order, done, reallocated)
    return done


def _check(order: RequestedMove) -> None:
    if order.to not in ADMIN_TARGETS:
        raise InvalidInput(
            f"Hosts cannot be moved to the pool {order.to} by an admin; allowed are {', '.join(ADMIN_TARGETS)}"
        )
    if not 1 <= len(order.hosts) <= MOST_HOSTS:
        raise InvalidInput(f"hosts must name 1 to {MOST_HOSTS} hosts")
    if len(order.reason) > LONGEST_REASON:
        raise InvalidInput(f"reason must be a text of {LONGEST_REASON} characters at most")


def _hosts_and_token(conn: Connection, order: RequestedMove) -> tuple[list[HostPlace], int]:
    return _requested_hosts(conn, order), event_claims.tokens(conn, 1)[0]


def _requested_hosts(conn: Connection, order: RequestedMove) -> list[HostPlace]:
    """Return the requested hosts in the order of their numbers, each once."""
    read = {name: whole_number(name) for name in order.hosts}
    numbers = {name: number for name, number in read.items() if number is not None}
    numbers |= pools.numbers_of(conn, [name for name in order.hosts if name not in numbers])
    listed = pool_membership.of(conn, numbers.values())
    present = {number: place for number, place in listed.items() if not place.removed}
    _refuse_unknown([name for name in order.hosts if numbers.get(name) not in present])
    if order.source is not None:
        _refuse_outside(order.source, present.values())
    return [present[number] for number in sorted(present)]


def _refuse_outside(pool: Pool, places: Iterable[HostPlace]) -> None:
    away = [place for place in places if place.pool is not pool]
    if away:
        message = ", ".join(f"{place.name} ({place.pool})" for place in away[:MOST_LISTED])
        raise Conflict(f"Not all of the hosts are in the pool {pool}: {message}")


def _refuse_unknown(unknown: Sequence[str]) -> None:
    """Raise NotFound with the first of these names, if there are any."""
    if unknown:
        more = f" and {len(unknown) - MOST_LISTED} others" if len(unknown) > MOST_LISTED else ""
        raise NotFound(f"No host {', '.join(repr(name[:80]) for name in unknown[:MOST_LISTED])}{more} is registered")


def _empty_out(climate: Climate, request: MoveRequest, dry_run: bool) -> None:
    """Have the cloud add the hosts to its reservation pool; raise Conflict if one has servers."""
    for place in request.moving:
        try:
            with shortages.of_the_cloud():
                _check_empty(climate, place) if dry_run else climate.cloud.place(place.name, FREEPOOL, request.token)
        except NotYet as error:
            raise Conflict(
                f"Host {place.name} cannot go to the pool {Pool.RESERVATION} yet: {error}; from the pool"
                f" {Pool.DRAINING} it goes there by itself when they are gone"
            ) from error
        except Fenced as error:
            raise move_checks.clash([place]) from error


def _check_empty(climate: Climate, place: HostPlace) -> None:
    if servers := climate.cloud.servers_on(place.name):
        raise NotYet(f"{len(servers)} servers are still on {place.name}")


def _undo(climate: Climate, request: MoveRequest) -> None:
    """Undo the requests to the cloud; if that fails, the reconciliation does it."""
    present = run(climate, pool_membership.of, request.numbers)
    for place in present.values():
        try:
            climate.cloud.place(place.name, reconcile.aggregate_of(place), request.token)
        except (CloudError, NotYet, Fenced) as error:
            log.warning("host move not undone", host=place.name, pool=place.pool, error=str(error))


def _record(conn: Connection, climate: Climate, request: MoveRequest) -> tuple[list[Moved], list[HostPlace]]:
    """Record the moves, and the allocations that leases lost.

    Locks in the engine's order: leases, pool lock, hosts. Every allocation locks the host's row first, so none
    can be added in between.
    """
    now = climate.now(conn)
    if not request.moving:
        return [Moved(place, place) for place in request.seen], []
    move_checks.refuse_moved(request.moving, pool_membership.of(conn, request.numbers))
    lost = move_checks.lost_by(conn, request)
    move_checks.refuse(request, lost)
    move_checks.refuse_busy(conn, request.numbers)
    dropped = _taken_out(conn, climate, request, lost)
    locked = _lock(conn, request, dropped)
    changes = [(place, [checked(place, _fact(request, place, now))]) for place in locked.values()]
    after = {place.host: place for place in pool_membership.record(conn, request.caller, changes)}
    cleaning.free(conn, [place.host for place in request.moving if place.pool is Pool.CLEANING])
    event_claims.wake_rounds(conn)
    others = [place for number, place in dropped.items() if number not in after]
    return [_moved(place, after.get(place.host, place), lost) for place in request.seen], others


def _moved(before: HostPlace, after: HostPlace, lost: Sequence[Promise]) -> Moved:
    return Moved(before, after, [one for one in lost if one.host == before.host])


def _lock(conn: Connection, request: MoveRequest, dropped: Mapping[int, HostPlace]) -> Mapping[int, HostPlace]:
    """Lock the hosts and check them again; `dropped`: the memberships of those that leases have just lost."""
    locked = pool_membership.of(conn, request.numbers, lock=True)
    move_checks.refuse_moved([dropped.get(place.host, place) for place in request.moving], locked)
    left = move_checks.lost_by(conn, request, locked)
    move_checks.refuse(request, left)
    if left and request.order.to is not Pool.FAILED:
        raise Busy("A host is being allocated right now; try again shortly")
    move_checks.refuse_maintained(conn, request)
    move_checks.refuse_cleaned(conn, request)
    if request.order.to is Pool.MULTI_TENANT:
        move_checks.refuse_asleep(conn, [locked[number] for number in request.numbers])
    row_consistency.refuse_places(conn, locked.values())
    return locked


def _fact(request: MoveRequest, place: HostPlace, now: datetime) -> HostMoved:
    """Return the fact of the move; a failed host keeps the reservation of its servers."""
    traced = place.reservation_id if request.order.to is Pool.FAILED else None
    return HostMoved(now, request.order.to, request.order.reason or DEFAULT_REASON, request.token, traced)


def _taken_out(
    conn: Connection, climate: Climate, request: MoveRequest, lost: Sequence[Promise]
) -> Mapping[int, HostPlace]:
    """Allocate other hosts to leases that lose some; return the hosts that were taken out of running ones.

    Leases keep failed hosts until they are healed.
    """
    if not lost or request.order.to is Pool.FAILED:
        return {}
    outcomes = _reallocate(conn, climate, request, lost)
    return {place.host: place for outcome in outcomes for place in outcome.moved}


def _reallocate(conn: Connection, climate: Climate, request: MoveRequest, lost: Sequence[Promise]) -> list[Outcome]:
    """Allocate other hosts to the leases that lose theirs; raise Busy if a lease cannot be changed now."""
    by_lease: dict[UUID, set[int]] = {}
    for one in lost:
        assert one.lease_id is not None
        by_lease.setdefault(one.lease_id, set()).add(one.host)
    outcomes = []
    for lease in leases.lock(conn, by_lease):
        now = climate.now(conn)
        if not can_reallocate(lease, now):
            raise Busy(f"Lease {lease.id} ({lease.name}) cannot be moved now: it is {lease.status}")
        gone = frozenset(by_lease[lease.id])
        outcomes.append(
            reallocate_hosts(
                conn, climate, Case(lease, now, request.caller, WHY, given_up=gone, without=frozenset(request.numbers))
            )
        )
    return outcomes


def _follow(climate: Climate, order: RequestedMove, done: Sequence[Moved], reallocated: Sequence[HostPlace]) -> None:
    reconcile.send_moves(climate, reallocated)
    if order.to is not Pool.RESERVATION:
        reconcile.send_moves(climate, [one.after for one in done if one.after != one.before])
    if order.to is Pool.FAILED and any(one.lost for one in done):
        healing.heal_all(climate)


def _maintain(climate: Climate, request: MoveRequest, dry_run: bool) -> list[Moved]:
    """Create a window for each host, from now on and without an end."""
    lost = run(climate, move_checks.lost_by, request)
    reason, force = request.order.reason or DEFAULT_REASON, request.order.force
    wanted = [maintenance.WindowRequest(str(p.host), None, None, reason, force, p.version) for p in request.moving]
    maintenance.plan_all(climate, request.caller, wanted, dry_run=dry_run)
    if not dry_run:
        maintenance.run_round(climate)
    after = run(climate, pool_membership.of, [place.host for place in request.seen])
    return [Moved(one, after[one.host], [of for of in lost if of.host == one.host]) for one in request.seen]
