"""Moves of hosts that follow from transitions of leases, recorded in the same transaction."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.hosts import pools
from climate.domain.hosts.pools import HostPlace, Move, OnEnd, Pool, Transition
from climate.domain.lease import Lease
from climate.domain.policy import Caller
from climate.domain.status import EventKind
from climate.settings import Settings
from climate.store.hosts import cleaning, next_leases, pool_membership
from climate.store.leases import event_claims

FOR_THE_ROUNDS = frozenset({Pool.RECYCLING, Pool.CLEANING, Pool.MULTI_TENANT})
"""Pools whose hosts need an action of a round at once."""


def cleaning_time(settings: Settings) -> timedelta | None:
    """Return the time of cleaning after a lease; None if hosts are not cleaned."""
    return timedelta(seconds=settings.cleaning_time) if settings.cleaning_time or settings.cleaning_hook else None


def lead(settings: Settings) -> timedelta:
    """Return the time before its next lease at which servers on a recycling host are moved or deleted."""
    return timedelta(seconds=settings.recycle_lead + settings.cleaning_time)


def follow(conn: Connection, climate: Climate, author: Caller, transition: Transition) -> Sequence[Move]:
    """Move the hosts of a lease after its transition; without any possible move, nothing is read."""
    return follow_all(conn, climate, author, [transition])[0]


def follow_all(
    conn: Connection, climate: Climate, author: Caller, transitions: Sequence[Transition]
) -> Sequence[Sequence[Move]]:
    """Move the hosts of several leases; return the moves of each.

    The number of statements is constant, plus one for each end that releases hosts. No host may move for two of them.
    """
    wanted = [_hosts_that_may_move(transition) for transition in transitions]
    numbers = {host for own in wanted for host in own}
    if not numbers:
        return [() for _ in transitions]
    held = pool_membership.of(conn, numbers, lock=True)
    pairs = zip(transitions, wanted, strict=True)
    moves = [list(_moves(conn, climate, one, held)) if own else [] for one, own in pairs]
    _record(conn, author, transitions[0].at, [move for own in moves for move in own])
    return moves


def _record(conn: Connection, author: Caller, now: datetime, moves: Sequence[Move]) -> None:
    pool_membership.record(conn, author, [(place, [fact]) for place, fact in moves])
    cleaned = {place.host: fact.until for place, fact in moves if fact.pool == Pool.CLEANING and fact.until}
    cleaning.reserve(conn, now, cleaned)
    if any(fact.pool in FOR_THE_ROUNDS for _, fact in moves):
        event_claims.wake_rounds(conn)


def _hosts_that_may_move(transition: Transition) -> frozenset[int]:
    before, after = transition.before, transition.after
    if before.events == after.events and before.reservations == after.reservations:
        return frozenset()
    return frozenset(host for lease in (before, after) for r in lease.reservations for host in r.hosts)


def _moves(conn: Connection, climate: Climate, transition: Transition, held: Mapping[int, HostPlace]) -> Iterator[Move]:
    promised = promised_on(conn, transition.after) if transition.did_for_some(EventKind.END) else ()
    return pools.follow(transition, held, cleaning_time(climate.settings), promised)


def promised_on(conn: Connection, lease: Lease) -> frozenset[int]:
    """Return those of the hosts released at the end of the lease that are allocated to another lease."""
    released = {host for r in lease.reservations if pools.on_end(r) is OnEnd.RELEASE for host in r.hosts}
    return frozenset(next_leases.starts(conn, released, {r.id for r in lease.reservations}, owed=True))
