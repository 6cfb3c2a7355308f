"""Reconciliation of the cloud's aggregates with the pools in the database; reports what cannot be corrected."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.cloud import FREEPOOL, KEPT, CloudError, Fenced, NotYet, Refused
from climate.context import Climate
from climate.domain.facts import HostMoved
from climate.domain.hosts.pools import READY, HostPlace, Pool
from climate.domain.notifications import Notice
from climate.domain.status import EventKind, EventStatus
from climate.plugin import CLOUD_POOLS
from climate.service.host_operations.round_settings import AUTHOR, HOST_CLAIM_SECONDS
from climate.service.notifications import delivery
from climate.service.transaction import run
from climate.store import locks
from climate.store.hosts import drift, pool_membership
from climate.store.hosts.drift import BegunEvent
from climate.store.hosts.pool_membership import HostColumns
from climate.store.leases import event_claims

log = structlog.get_logger(__name__)

Seen = Mapping[str, frozenset[str]]
"""Host -> aggregates of the cloud that it is in."""


def aggregate_of(place: HostPlace) -> str | None:
    """Return the aggregate in which the host should be; None: in none."""
    return _cloud_pool(place.pool, place.reservation_id)


def _cloud_pool(pool: Pool, reservation_id: UUID | None) -> str | None:
    return CLOUD_POOLS[pool] if pool in CLOUD_POOLS else str(reservation_id)


def send_moves(climate: Climate, moved: Iterable[HostPlace]) -> None:
    """Send moves that were just recorded to the cloud; `correct` retries those that fail."""
    for place in moved:
        try:
            climate.cloud.place(place.name, aggregate_of(place), place.token)
        except (CloudError, NotYet, Fenced) as error:
            log.warning("aggregate update postponed", host=place.name, pool=place.pool, error=str(error))


def correct(climate: Climate) -> int:
    """Retry every host whose aggregates differ from the database; return the number of corrected hosts.

    Unregistered hosts are removed from the engine's aggregates. The aggregates are read before the database: a
    host that is registered or moved meanwhile is then added twice, which is harmless.
    """
    seen = _read_aggregates(climate.cloud.pools())
    comparison = run(climate, _compare, climate, seen)
    try:
        _report(climate, comparison, _correct(climate, seen, comparison.astray))
    finally:
        if comparison.astray:
            run(climate, pool_membership.release_claims, [place.host for place in comparison.astray])
    _remove_unregistered(climate, {name for name, pools in seen.items() if pools & KEPT} - comparison.known, seen)
    return len(comparison.astray)


@dataclass(frozen=True, slots=True)
class _Comparison:
    known: frozenset[str]
    """Names of all registered hosts."""
    astray: Sequence[HostPlace]
    """Hosts in wrong aggregates that this worker has claimed."""
    settled: frozenset[int]
    """Hosts in the right aggregates."""
    noted: Mapping[int, str]


def _read_aggregates(pools: Mapping[str, frozenset[str]]) -> Seen:
    by_host: dict[str, set[str]] = defaultdict(set)
    for pool, names in pools.items():
        for name in names:
            by_host[name].add(pool)
    return {name: frozenset(comparison) for name, comparison in by_host.items()}


def _compare(conn: Connection, climate: Climate, seen: Seen) -> _Comparison:
    glance = pool_membership.list_columns(conn)
    if not glance.is_noted and _all_there(glance, seen):
        return _Comparison(frozenset(glance.names), [], frozenset(glance.numbers), {})
    known = pool_membership.listed(conn)
    astray = [place for place in known if _is_astray(place, seen.get(place.name, frozenset()))]
    numbers = frozenset(place.host for place in astray)
    idle = numbers - _at_work(conn, astray, seen)
    mine = pool_membership.claim(conn, idle, climate.now(conn), HOST_CLAIM_SECONDS) if idle else idle
    return _Comparison(
        known=frozenset(place.name for place in known),
        astray=[place for place in astray if place.host in mine],
        settled=frozenset(place.host for place in known) - numbers,
        noted=drift.noted(conn),
    )


def _all_there(glance: HostColumns, seen: Seen) -> bool:
    """Return whether all hosts are in the right aggregates."""
    columns = zip(glance.names, glance.pools, glance.reservations, strict=True)
    nowhere: frozenset[str] = frozenset()
    return not any(
        _is_elsewhere(_cloud_pool(Pool(pool), reservation), seen.get(name, nowhere))
        for name, pool, reservation in columns
    )


def _is_astray(place: HostPlace, pools: frozenset[str]) -> bool:
    return _is_elsewhere(aggregate_of(place), pools)


def _is_elsewhere(target: str | None, pools: frozenset[str]) -> bool:
    """Return whether a host is elsewhere; one of the reservation pool may also be in aggregates of shared capacity."""
    if target == FREEPOOL:
        return pools & KEPT != {FREEPOOL}
    return pools != ({target} if target else frozenset())


def _at_work(conn: Connection, astray: Sequence[HostPlace], seen: Seen) -> set[int]:
    """Return hosts with an event in progress, whose aggregates may be ahead of the database.

    A start that waits for a missing host waits for this very round. A host that was taken out for failure or
    maintenance was moved regardless of the event.
    """
    pools = {place.host: seen.get(place.name, frozenset()) for place in astray}
    ready = {place.host for place in astray if place.pool in READY}
    return {
        one.host
        for one in drift.begun(conn, pools)
        if one.status == EventStatus.IN_PROGRESS or (one.host in ready and _is_ahead(one, pools[one.host]))
    }


def _is_ahead(one: BegunEvent, pools: frozenset[str]) -> bool:
    """Return whether an event to be retried may have moved the host without a record."""
    lends = one.kind in (EventKind.START, EventKind.ADJUST)
    return one.kind == EventKind.END or (lends and str(one.reservation_id) in pools)


def _correct(climate: Climate, seen: Seen, astray: Sequence[HostPlace]) -> dict[int, str]:
    """Move the hosts; return the error of each, "" for success. Hosts without a result are left out."""
    troubles: dict[int, str] = {}
    outdated = [place for place in astray if not _placed(climate, place, troubles)]
    for place in _renewed(climate, seen, outdated) if outdated else ():
        _placed(climate, place, troubles)
    return troubles


def _placed(climate: Climate, place: HostPlace, troubles: dict[int, str]) -> bool:
    """Return False if the cloud knows a later token than the database."""
    try:
        climate.cloud.place(place.name, aggregate_of(place), place.token)
    except Fenced:
        return False
    except (Refused, NotYet) as error:
        troubles[place.host] = str(error) or type(error).__name__
    except CloudError as error:
        log.warning("cloud unreachable", host=place.name, error=str(error))
    else:
        troubles[place.host] = ""
        log.info("host aggregate corrected", host=place.name, pool=place.pool)
    return True


def _renewed(climate: Climate, seen: Seen, outdated: Sequence[HostPlace]) -> list[HostPlace]:
    """Return the memberships under new tokens, unless the hosts have moved since or an event is working on them.

    The cloud has a later token than the database if a process sent a request and stopped before recording it.
    """
    return run(climate, _renew, climate, seen, outdated)


def _renew(conn: Connection, climate: Climate, seen: Seen, outdated: Sequence[HostPlace]) -> list[HostPlace]:
    numbers = {place.host for place in outdated}
    present = pool_membership.of(conn, numbers, lock=True)
    kept = numbers - _at_work(conn, outdated, seen)
    same = [place for place in outdated if place.host in kept and present[place.host].version == place.version]
    now, tokens = climate.now(conn), event_claims.tokens(conn, len(same))
    moves = [(place, [_again(place, now, token)]) for place, token in zip(same, tokens, strict=True)]
    return pool_membership.record(conn, AUTHOR, moves)


def _again(place: HostPlace, now: datetime, token: int) -> HostMoved:
    return HostMoved(now, place.pool, place.reason, token, place.reservation_id, place.until, place.cause)


def _report(climate: Climate, comparison: _Comparison, troubles: Mapping[int, str]) -> None:
    """Record new and resolved errors; admins are notified once of each."""
    gone = {number: "" for number in comparison.noted if number in comparison.settled}
    changed = {**gone, **{host: said for host, said in troubles.items() if said != comparison.noted.get(host, "")}}
    if not changed:
        return
    names = {place.host: place for place in comparison.astray}
    notices = [_notice(names[host], said) for host, said in changed.items() if said]
    run(climate, _notify, climate, changed, notices)
    for notice in notices:
        log.warning(notice.message, host=notice.host)


def _notify(conn: Connection, climate: Climate, changed: Mapping[int, str], notices: Sequence[Notice]) -> None:
    locks.lock_hosts(conn, changed)
    drift.note(conn, changed)
    delivery.notify(conn, climate.now(conn), *notices)


def _notice(place: HostPlace, said: str) -> Notice:
    where = f"The cloud does not have host {place.name} in the pool {place.pool}"
    return Notice("pool.drift", f"{where}: {said}", host=place.host, body={"pool": place.pool, "reason": said})


def _remove_unregistered(climate: Climate, names: set[str], seen: Seen) -> None:
    """Remove hosts that are not registered, nor were meanwhile, from the engine's aggregates."""
    if not names:
        return
    strangers, tokens = run(climate, _unregistered, names)
    for name, token in zip(sorted(strangers), tokens, strict=False):
        try:
            if FREEPOOL in seen[name]:
                climate.cloud.withdraw(name, token)
            else:
                climate.cloud.place(name, None, token)
        except (CloudError, NotYet, Fenced) as error:
            log.warning("unregistered host left in an aggregate", host=name, error=str(error))


def _unregistered(conn: Connection, names: set[str]) -> tuple[set[str], Sequence[int]]:
    return names - {place.name for place in pool_membership.listed(conn)}, event_claims.tokens(conn, len(names))
