"""Execution of the plan that adapts the reservation pool to its backlog: adds, drains, undrains and releases hosts.

The plan comes from the database; the cloud is asked only for the number of servers on hosts that may be
added. Before a host is released its row is locked and checked again. Every allocation locks the host's row
first, so none can be added in between.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog
from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import NotFound
from climate.domain.facts import HostMoved
from climate.domain.hosts import pool_scaling
from climate.domain.hosts.pool_scaling import Candidate, HostsState, Member, Plan, Rules, Step
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.period import Period
from climate.domain.policy import Caller, require
from climate.service.host_operations import pool_top_up
from climate.service.host_operations.pool_enrolment import Enrolment, take
from climate.service.host_operations.round_settings import AUTHOR
from climate.service.hosts import move_checks, reconcile, unregistered_hosts
from climate.service.transaction import run
from climate.store.hosts import backlog, maintenance, next_leases, pool_membership, pool_settings
from climate.store.leases import event_claims

log = structlog.get_logger(__name__)

GOES_TO = {Step.DRAIN: Pool.DRAINING, Step.REOPEN: Pool.MULTI_TENANT, Step.RELEASE: Pool.MULTI_TENANT}
"""Pools for moves that the database alone decides; hosts to be added wait for the cloud."""

PROMISED, ASLEEP, WORKED_ON = "promised to a lease", "switched off, or about to be", "worked on"


@dataclass(frozen=True, slots=True)
class Explained:
    """Plan, its input, and the memberships of the hosts that it names."""

    rules: Rules
    there: HostsState
    plan: Plan
    places: Mapping[int, HostPlace]


def explain(climate: Climate, caller: Caller, pool: Pool) -> Explained:
    """Return the actions of the next round with their reasons, without changes.

    Raises NotFound for any other pool than the reservation pool, which alone has a plan.
    """
    require(caller, "pools:get")
    if pool is not Pool.RESERVATION:
        raise NotFound(f"The pool {pool} has no plan; the pool {Pool.RESERVATION} has one")
    return plan_moves(climate)


def run_round(climate: Climate) -> int:
    """Carry out the plan; return the number of moved hosts. Without a horizon the pool is filled to its target."""
    rules = run(climate, pool_settings.of, climate.settings).filling
    if not rules.horizon:
        return pool_top_up.top_up(climate)
    result = plan_moves(climate)
    moved = run(climate, apply, climate, result)
    reconcile.send_moves(climate, moved)
    empty = [result.places[move.host] for move in result.plan.moves if move.step is Step.TAKE]
    reason = next((move.reason for move in result.plan.moves if move.step is Step.TAKE), "")
    return len(moved) + (take(climate, _enrolment, empty, reason) if empty else 0)


def _enrolment(conn: Connection, empty: Sequence[HostPlace], reason: str) -> Enrolment:
    return Enrolment(len(empty), reason, empty)


def plan_moves(climate: Climate) -> Explained:
    """Make the plan for the present state."""
    known = unregistered_hosts.server_counts(climate)
    return run(climate, _explain, climate, known)


def _explain(conn: Connection, climate: Climate, known: Mapping[str, int]) -> Explained:
    rules, now = pool_settings.of(conn, climate.settings).filling, climate.now(conn)
    result = {place.host: place for place in pool_membership.listed(conn)}
    there = _situation(conn, rules, now, list(result.values()), known)
    return Explained(rules, there, pool_scaling.plan(there, rules), result)


def _situation(
    conn: Connection, rules: Rules, now: datetime, hosts: Sequence[HostPlace], known: Mapping[str, int]
) -> HostsState:
    open_ones = [place for place in hosts if place.reservable]
    members = _members(conn, [place for place in open_ones if place.pool is Pool.RESERVATION])
    levels = backlog.levels(conn, Period(now, now + rules.horizon)) if rules.horizon else []
    return HostsState(
        now,
        size=sum(place.home is Pool.RESERVATION and place.pool is not Pool.FAILED for place in open_ones),
        backlog=levels,
        members=members,
        draining=[place.host for place in open_ones if place.pool is Pool.DRAINING],
        candidates=[
            Candidate(place.host, known.get(place.name)) for place in open_ones if place.pool is Pool.MULTI_TENANT
        ],
    )


def _members(conn: Connection, hosts: Sequence[HostPlace]) -> list[Member]:
    """Return the hosts of the pool, each with the reason that keeps it there, if there is one."""
    bound = _bound(conn, hosts)
    return [Member(place.host, place.since, bound.get(place.host, "")) for place in hosts]


def _bound(conn: Connection, hosts: Sequence[HostPlace]) -> Mapping[int, str]:
    """Return the reasons that keep hosts in the pool, by number: promises, their power, and current work on them."""
    numbers = [place.host for place in hosts]
    bound = dict.fromkeys(maintenance.active_on(conn, numbers), WORKED_ON) if numbers else {}
    bound |= {place.host: ASLEEP for place in move_checks.asleep(conn, hosts)}
    return bound | dict.fromkeys(next_leases.starts(conn, numbers, owed=True), PROMISED)


def apply(conn: Connection, climate: Climate, explained: Explained) -> list[HostPlace]:
    """Record the moves of hosts that are unchanged and still free to move."""
    chosen = {move.host: move for move in explained.plan.moves if move.step in GOES_TO}
    if not chosen:
        return []
    free = _still_free(conn, explained, chosen)
    now, tokens = climate.now(conn), event_claims.tokens(conn, len(free)) if free else []
    changes = [
        (place, [HostMoved(now, GOES_TO[chosen[place.host].step], chosen[place.host].reason, token)])
        for place, token in zip(free, tokens, strict=True)
    ]
    for place in free:
        log.info("reservation pool resized", host=place.name, step=chosen[place.host].step)
    return pool_membership.record(conn, AUTHOR, changes)


def _still_free(conn: Connection, explained: Explained, numbers: Collection[int]) -> list[HostPlace]:
    """Lock these hosts; return those that are unchanged since the plan was made, and not bound to the pool."""
    present = pool_membership.of(conn, numbers, lock=True)
    same = [place for place in present.values() if place.version == explained.places[place.host].version]
    bound = _bound(conn, [place for place in same if place.pool is Pool.RESERVATION])
    return [place for place in same if place.host not in bound]
