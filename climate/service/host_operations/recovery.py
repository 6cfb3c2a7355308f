"""Return of hosts from maintenance or failure: to their lease, to recycling, or to their pool."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from sqlalchemy import Connection

from climate.cloud import FREEPOOL, NotYet
from climate.context import Climate
from climate.domain.facts import HostMoved
from climate.domain.hosts import pools
from climate.domain.hosts.pools import HostPlace, OnEnd, Pool
from climate.domain.lease import Lease
from climate.domain.notifications import Notice
from climate.domain.policy import Caller
from climate.domain.status import EventKind
from climate.service.host_operations.round_settings import HOST_CLAIM_SECONDS
from climate.service.hosts import lease_transitions, reconcile
from climate.service.notifications import delivery
from climate.service.round_steps import RoundSteps
from climate.service.transaction import run
from climate.store import locks
from climate.store.hosts import cleaning, health, maintenance, pool_membership
from climate.store.hosts.health import Running
from climate.store.leases import event_claims, leases

MOST_AT_ONCE = 100
"""Maximum number of hosts that one round returns; the claims of all of them last as long as HANDS_ON."""


@dataclass(frozen=True, slots=True)
class Return:
    """Reason and author of the return, and the kind of notification to admins."""

    author: Caller
    reason: str
    kind: str


LeasePools = Callable[[], frozenset[str]]
"""Ids of the reservations with an aggregate in the cloud, asked for once for all hosts that return together."""


@dataclass(frozen=True, slots=True)
class _Returning:
    """Host on its way back, with its own fencing token."""

    place: HostPlace
    token: int
    running: Running | None
    """Running lease that holds it."""
    last: Lease | None
    """Lease whose servers may be on it."""


def return_hosts(climate: Climate, hosts: Collection[int], back: Return) -> frozenset[int]:
    """Move hosts out of MAINTENANCE or FAILED; return the numbers of those that left.

    A host returns to the running lease that holds it. Otherwise it goes to recycling if it has servers or hosts
    are cleaned after leases, and else to its pool. Hosts in a maintenance window stay until it is over, and hosts
    with a running cleaning hook until that has ended. The next round retries requests that the cloud cannot carry
    out now, and returns hosts beyond MOST_AT_ONCE.
    """
    if not hosts:
        return frozenset()
    # Chosen at random, so that hosts which cannot return yet keep no others back.
    portion = sorted(hosts, key=lambda host: climate.chance())[:MOST_AT_ONCE]
    returning_hosts = run(climate, _find_returning, climate, portion)
    lease_pools = cache(lambda: frozenset(climate.cloud.pools()))
    steps = RoundSteps("host return postponed")
    try:
        return frozenset(
            returning.place.host
            for returning in returning_hosts
            if _return_host(climate, steps, returning, back, lease_pools)
        )
    finally:
        run(climate, pool_membership.release_claims, [returning.place.host for returning in returning_hosts])


def _find_returning(conn: Connection, climate: Climate, hosts: Collection[int]) -> list[_Returning]:
    free = frozenset(hosts) - maintenance.active_on(conn, hosts) - cleaning.alive(conn, hosts).keys()
    mine = pool_membership.claim(conn, free, climate.now(conn), HOST_CLAIM_SECONDS) if free else frozenset()
    present = [
        p
        for p in pool_membership.of(conn, mine).values()
        if p.pool in (Pool.MAINTENANCE, Pool.FAILED) and not p.removed
    ]
    running = health.running_on(conn, mine) if mine else {}
    last = _last(conn, present)
    there = [place for place in present if place.host in last]
    if left := mine - {place.host for place in there}:
        pool_membership.release_claims(conn, left)
    tokens = event_claims.tokens(conn, len(there)) if there else []
    return [
        _Returning(place, token, running.get(place.host), last[place.host])
        for place, token in zip(there, tokens, strict=True)
    ]


def _last(conn: Connection, present: Collection[HostPlace]) -> Mapping[int, Lease | None]:
    """Return the lease after which, or from which, each host came into its pool, without hosts of broken leases."""
    wanted = {place.reservation_id: place.host for place in present if place.reservation_id}
    owners = health.owners(conn, wanted) if wanted else {}
    known = leases.get_readable(conn, sorted(set(owners.values()))) if owners else {}
    by_host = {place.host: owners.get(place.reservation_id) if place.reservation_id else None for place in present}
    return {host: known.get(of) if of else None for host, of in by_host.items() if of is None or of in known}


def _return_host(
    climate: Climate, steps: RoundSteps, returning: _Returning, back: Return, lease_pools: LeasePools
) -> bool:
    """Return whether the host returned. An error does not stop the other hosts."""
    with steps.item(host=returning.place.name):
        if returning.running and not returning.running.shared:
            return _lent(climate, returning, back, lease_pools)
        return _home(climate, returning, back)
    return False


def _lent(climate: Climate, returning: _Returning, back: Return, lease_pools: LeasePools) -> bool:
    """Move the host with its servers to the aggregate of its running lease, unless an event of that is in progress.

    A lease without an aggregate in the cloud, because it never got a host, gets this one by an event. Healing
    plans that event once the host is back in its pool.
    """
    assert returning.running is not None
    pool = returning.running.reservation_id
    if str(pool) not in lease_pools():
        return _home(climate, returning, back)
    if not run(climate, _is_expected, returning.running, returning.place.host):
        return False
    climate.cloud.place(returning.place.name, str(pool), returning.token)
    return run(climate, _record_lent, climate, returning, back, returning.running)


def _record_lent(conn: Connection, climate: Climate, returning: _Returning, back: Return, running: Running) -> bool:
    if not _is_expected(conn, running, returning.place.host):
        return False
    fact = HostMoved(climate.now(conn), Pool.LENT, back.reason, returning.token, running.reservation_id)
    return _record(conn, returning, fact, back)


def _is_expected(conn: Connection, running: Running, host: int) -> bool:
    """Lock the lease, and return whether it still counts on the host; its other hosts are not read."""
    return bool(locks.lock_leases(conn, [running.lease_id])) and health.is_held(conn, running, host)


def _home(climate: Climate, returning: _Returning, back: Return) -> bool:
    """Return the host to its pool; with servers, or not cleaned yet, it is recycled like the others of its lease.

    A shared host is not recycled, because recycling would delete the servers of other leases.
    """
    place = returning.place
    if place.home is Pool.MULTI_TENANT:
        return _moved(climate, returning, back, Pool.MULTI_TENANT)
    cleaned = lease_transitions.cleaning_time(climate.settings) is not None  # zero if only the hook cleans
    if place.reservation_id and cleaned:
        return _moved(climate, returning, back, Pool.RECYCLING)
    try:  # ask the cloud first, because only it knows whether servers without a slot are left
        climate.cloud.place(place.name, FREEPOOL, returning.token)
    except NotYet:
        if returning.running and returning.running.shared:
            raise
        return _moved(climate, returning, back, Pool.RECYCLING)
    return _moved(climate, returning, back, Pool.RESERVATION)


def _moved(climate: Climate, returning: _Returning, back: Return, to: Pool) -> bool:
    if not run(climate, _record_move, climate, returning, back, to):
        return False
    if to is not Pool.RESERVATION:
        reconcile.send_moves(climate, run(climate, pool_membership.of, [returning.place.host]).values())
    return True


def _record_move(conn: Connection, climate: Climate, returning: _Returning, back: Return, to: Pool) -> bool:
    now = climate.now(conn)
    traced = returning.place.reservation_id if to is Pool.RECYCLING else None
    until = _deadline(returning, now) if to is Pool.RECYCLING else None
    return _record(conn, returning, HostMoved(now, to, back.reason, returning.token, traced, until), back)


def _deadline(returning: _Returning, now: datetime) -> datetime | None:
    """Return the time at which remaining servers are deleted: the end of their lease, if they were to end with it."""
    lease, number = returning.last, returning.place.reservation_id
    if lease is None or any(pools.on_end(r) is not OnEnd.TERMINATE for r in lease.reservations if r.id == number):
        return None
    return max(now, lease.event(EventKind.END).due_at)


def _record(conn: Connection, returning: _Returning, fact: HostMoved, back: Return) -> bool:
    """Record the move, unless somebody has moved the host since."""
    present = pool_membership.get(conn, returning.place.host, lock=True)
    if present.version != returning.place.version:
        return False
    pool_membership.record(conn, back.author, [(present, [pools.move(present, fact)])])
    health.doubt(conn, {present.host: None})
    message = f"Host {present.name} is in the pool {fact.pool} again: {back.reason}"
    delivery.notify(conn, fact.at, Notice(back.kind, message, host=present.host, body={"pool": fact.pool}))
    return True
