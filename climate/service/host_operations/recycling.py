"""Recycling of hosts whose lease is over and whose servers still run.

A host leaves the pool when its last server is gone. Until then it takes no new servers, and nothing is moved
or deleted before the deadline. The deadline is the agreed end of the servers, or shortly before the next
lease that holds the host. The lead leaves time for that and for cleaning, so that lease starts on time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.cloud import CloudError, CloudServer, Fenced, NotYet
from climate.context import Climate
from climate.domain.facts import HostMoved
from climate.domain.hosts import pools, recycling
from climate.domain.hosts.pools import MULTI_TENANT, RECYCLING, DeadlineAction, HostPlace, OnEnd, Pool
from climate.domain.hosts.recycling import NextAction, RecyclingHost
from climate.domain.notifications import Notice
from climate.plugin import CLOUD_POOLS
from climate.service.host_operations import server_moves
from climate.service.host_operations.round_settings import AUTHOR, HOST_CLAIM_SECONDS
from climate.service.host_operations.server_moves import Leaving
from climate.service.hosts import lease_transitions, reconcile
from climate.service.hosts.lease_transitions import lead
from climate.service.leases import healing
from climate.service.notifications import delivery
from climate.service.transaction import run
from climate.settings import Settings
from climate.store.hosts import cleaning, next_leases, pool_membership
from climate.store.hosts.next_leases import LastReservation
from climate.store.leases import event_claims

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Case:
    """Recycling host, and the fencing token of actions on it."""

    stay: RecyclingHost
    left: LastReservation | None
    token: int

    @property
    def place(self) -> HostPlace:
        return self.stay.place


def run_round(climate: Climate) -> int:
    """Process every recycling host; return the number that left the pool.

    The number of statements is constant for hosts before their deadline.
    """
    cases, now = run(climate, _cases, climate)
    try:
        gone = [(case, to) for case in cases if (to := _next(climate, case, now))]
        return _record(climate, gone) if gone else 0
    finally:
        if cases:
            run(climate, pool_membership.release_claims, [case.place.host for case in cases])


def _cases(conn: Connection, climate: Climate) -> tuple[list[_Case], datetime]:
    now = climate.now(conn)
    result = pool_membership.listed(conn, RECYCLING)
    mine = (
        pool_membership.claim(conn, [place.host for place in result], now, HOST_CLAIM_SECONDS)
        if result
        else frozenset()
    )
    stays = _stays(conn, [place for place in result if place.host in mine])
    tokens = event_claims.tokens(conn, len(stays)) if stays else []
    return [_Case(stay, left, token) for (stay, left), token in zip(stays, tokens, strict=True)], now


def _stays(conn: Connection, hosts: Sequence[HostPlace]) -> list[tuple[RecyclingHost, LastReservation | None]]:
    needed = next_leases.starts(conn, [place.host for place in hosts])
    left_by = next_leases.last_reservations(conn, {place.reservation_id for place in hosts if place.reservation_id})
    found = (_readable_stay(place, needed.get(place.host), left_by) for place in hosts)
    return [stay for stay in found if stay]


def _readable_stay(
    place: HostPlace, needed_at: datetime | None, left_by: Mapping[UUID, LastReservation]
) -> tuple[RecyclingHost, LastReservation | None] | None:
    """Return the stay; None if its lease has terms that this release does not know, which keeps no other host here."""
    try:
        return _stay(place, needed_at, left_by)
    except ValueError as error:
        log.warning("recycling postponed", host=place.name, reason=str(error))
        return None


def _stay(
    place: HostPlace, needed_at: datetime | None, left_by: Mapping[UUID, LastReservation]
) -> tuple[RecyclingHost, LastReservation | None]:
    """Return the stay of a host's servers. A host without a lease behind it waits until its servers leave."""
    left = left_by.get(place.reservation_id) if place.reservation_id else None
    if left is None:
        return RecyclingHost(place, on_end=OnEnd.RECYCLE, needed_at=needed_at), None
    policy = DeadlineAction(left.spec.get("recycle_deadline") or DeadlineAction.TERMINATE)
    on_end = OnEnd(left.spec.get("on_end") or OnEnd.TERMINATE)
    return RecyclingHost(place, on_end, policy, left.over, needed_at), left


def _next(climate: Climate, case: _Case, now: datetime) -> Pool | None:
    """Carry out the next action for one host; return its next pool, or None while it stays.

    An error does not stop the other hosts.
    """
    try:
        servers = climate.cloud.servers_on(case.place.name)
        what = recycling.next_action(case.stay, len(servers), lead(climate.settings), now)
        return _DO[what](climate, case, servers)
    except (CloudError, NotYet, Fenced) as error:
        log.warning("recycling postponed", host=case.place.name, reason=str(error) or type(error).__name__)
        return None


def _next_pool(climate: Climate, case: _Case, servers: Sequence[CloudServer]) -> Pool | None:
    """Ask the cloud first, because only it knows whether the host is empty; then return the next pool."""
    to = pools.after(OnEnd.TERMINATE, lease_transitions.cleaning_time(climate.settings) is not None)
    climate.cloud.place(case.place.name, CLOUD_POOLS[to], case.token)
    return to


def _wait(climate: Climate, case: _Case, servers: Sequence[CloudServer]) -> Pool | None:
    return None


def _release(climate: Climate, case: _Case, servers: Sequence[CloudServer]) -> Pool | None:
    return MULTI_TENANT


def _move(climate: Climate, case: _Case, servers: Sequence[CloudServer]) -> Pool | None:
    """Move the servers to other hosts; if one cannot leave in half of the lead, replace the next lease's host."""
    answers = [(server, server_moves.move_away(climate, server, case.place.name, case.token)) for server in servers]
    begun = [server for server, answer in answers if answer is Leaving.BEGUN and not server.busy]
    if begun:
        log.info("moving servers from recycling host", host=case.place.name, servers=len(begun))
        run(climate, delivery.notify_now, climate, *_notices(case, begun, "moved"))
    if not climate.cloud.servers_on(case.place.name):
        return _next_pool(climate, case, ())
    refused = [server for server, answer in answers if answer is Leaving.NEVER]
    left = list(servers) if _is_late(climate, case) else refused
    return _replace(climate, case, left) if left else None


def _is_late(climate: Climate, case: _Case) -> bool:
    """Return whether too little of the lead is left to wait for servers that move."""
    now = run(climate, climate.now)
    return case.stay.needed_at is not None and case.stay.needed_at <= now + _margin(climate)


def _margin(climate: Climate) -> timedelta:
    return timedelta(seconds=climate.settings.recycle_lead / 2 + climate.settings.cleaning_time)


def _replace(climate: Climate, case: _Case, servers: Sequence[CloudServer]) -> Pool | None:
    """Allocate other hosts to the leases that need this one soon; if there are none, delete the servers."""
    start_by, _ = run(climate, _next_start, climate, case)
    healing.heal(climate, [case.place.host], start_by)
    _, needed = run(climate, _next_start, climate, case)
    return _delete(climate, case, servers) if needed else None


def _next_start(conn: Connection, climate: Climate, case: _Case) -> tuple[datetime, bool]:
    start_by = climate.now(conn) + lead(climate.settings)
    needed_at = next_leases.starts(conn, [case.place.host]).get(case.place.host)
    return start_by, needed_at is not None and needed_at <= start_by


def _delete(climate: Climate, case: _Case, servers: Sequence[CloudServer]) -> Pool | None:
    """Request the deletion of every server, repeatedly until they are gone.

    The next lease does not wait for a server that stays: after half of the lead it gets another host, if there is
    one.
    """
    taken = [server for server in servers if _is_taken(climate, case, server)]
    asked = [server for server in taken if not server.busy]
    if asked:
        log.warning("deleting servers on recycling host", host=case.place.name, servers=len(asked))
        run(climate, delivery.notify_now, climate, *_notices(case, asked, "deleted"))
    if not climate.cloud.servers_on(case.place.name):
        return _next_pool(climate, case, ())
    if case.stay.needed_at:
        now = run(climate, climate.now)
        healing.heal(climate, [case.place.host], now + _margin(climate))
    return None


def _is_taken(climate: Climate, case: _Case, server: CloudServer) -> bool:
    """Return whether the cloud accepted the request. An error does not stop the other servers."""
    try:
        climate.cloud.delete_server(server.id, case.token)
    except (CloudError, Fenced) as error:
        log.warning("server deletion postponed on recycling host", server_id=server.id, reason=str(error))
        return False
    return True


def _notices(case: _Case, servers: Sequence[CloudServer], what: str) -> list[Notice]:
    why = "is needed for another lease" if case.stay.needed_at else "is to be released"
    body = {"host": case.place.name, "servers": [server.id for server in servers]}
    said = f"{len(servers)} servers on host {case.place.name} are {what}: it {why}"
    notices = [Notice("host.recycling", said, host=case.place.host, body=body)]
    if (left := case.left) is not None:
        names = ", ".join(sorted(server.name for server in servers)[:10])
        owner = f"Servers that lease {left.name} left are {what}, as their host {why}: {names}"
        notices.append(Notice("host.recycling", owner, left.project_id, left.user_id, left.lease_id, body=body))
    return notices


_DO: Mapping[NextAction, Callable[[Climate, _Case, Sequence[CloudServer]], Pool | None]] = {
    NextAction.LEAVE: _next_pool,
    NextAction.WAIT: _wait,
    NextAction.RELEASE: _release,
    NextAction.MOVE: _move,
    NextAction.REPLACE: _replace,
    NextAction.DELETE: _delete,
}

REASONS = {
    MULTI_TENANT: "released with its servers: no other lease counts on it",
    Pool.CLEANING: "its last server is gone",
    Pool.RESERVATION: "its last server is gone",
}


def _record(climate: Climate, gone: Sequence[tuple[_Case, Pool]]) -> int:
    """Record the moves of hosts that nobody has moved meanwhile; return their number."""
    after = run(climate, _write_moves, climate, gone)
    reconcile.send_moves(climate, [place for place in after if place.pool is MULTI_TENANT])
    for place in after:
        log.info("host left recycling", host=place.name, pool=place.pool)
    return len(after)


def _write_moves(conn: Connection, climate: Climate, gone: Sequence[tuple[_Case, Pool]]) -> list[HostPlace]:
    now = climate.now(conn)
    present = pool_membership.of(conn, [case.place.host for case, _ in gone], lock=True)
    released = [case.place.host for case, to in gone if to is MULTI_TENANT]
    needed = next_leases.starts(conn, released, owed=True)
    left = [
        (present[case.place.host], _fact(climate, case, to, now))
        for case, to in gone
        if present[case.place.host].version == case.place.version and case.place.host not in needed
    ]
    after = pool_membership.record(conn, AUTHOR, [(place, [pools.move(place, fact)]) for place, fact in left])
    cleaning.reserve(conn, now, {place.host: place.until for place in after if place.until})
    if after:
        event_claims.wake_poller(conn)  # the next lease of one of them may be waiting
    return after


def _fact(climate: Climate, case: _Case, to: Pool, now: datetime) -> HostMoved:
    spell = lease_transitions.cleaning_time(climate.settings) if to is Pool.CLEANING else None
    traced = case.place.reservation_id if to is Pool.CLEANING else None
    return HostMoved(now, to, REASONS[to], case.token, traced, None if spell is None else now + spell)


@dataclass(frozen=True, slots=True)
class UpcomingAction:
    """Time and kind of the next action on the servers of a recycling host."""

    deadline: datetime
    policy: DeadlineAction


def ahead(conn: Connection, settings: Settings, hosts: Sequence[HostPlace]) -> dict[int, UpcomingAction]:
    """Return the next actions on recycling hosts, by number, without those whose servers leave by themselves."""
    return {
        stay.place.host: UpcomingAction(deadline, _policy(stay, deadline, lead(settings)))
        for stay, _ in _stays(conn, hosts)
        if (deadline := stay.deadline(lead(settings)))
    }


def _policy(stay: RecyclingHost, deadline: datetime, before: timedelta) -> DeadlineAction:
    spared = recycling.next_action(stay, 1, before, deadline) in (NextAction.MOVE, NextAction.REPLACE)
    return DeadlineAction.MOVE if spared else DeadlineAction.TERMINATE
