"""The pools of the cloud follow the books: what has drifted is put right, and what cannot be is told."""

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
from climate.service.host_operations.round_settings import AUTHOR, HANDS_ON
from climate.service.notifications import delivery
from climate.service.transaction import work
from climate.store import locks
from climate.store.hosts import drift, pool_membership
from climate.store.hosts.drift import Begun
from climate.store.hosts.pool_membership import Glance
from climate.store.leases import event_claims

log = structlog.get_logger(__name__)

Seen = Mapping[str, frozenset[str]]
"""Host -> the pools of the cloud that it is in."""


def wanted(place: HostPlace) -> str | None:
    """The pool in which the cloud should have the host; None: in none."""
    return _cloud_pool(place.pool, place.reservation_id)


def _cloud_pool(pool: Pool, reservation_id: UUID | None) -> str | None:
    return CLOUD_POOLS[pool] if pool in CLOUD_POOLS else str(reservation_id)


def ask(climate: Climate, moved: Iterable[HostPlace]) -> None:
    """Let the cloud follow moves that were recorded just now; what it cannot do yet, `mend` asks for again."""
    for place in moved:
        try:
            climate.cloud.place(place.name, wanted(place), place.token)
        except (CloudError, NotYet, Fenced) as error:
            log.warning("the cloud does not follow yet", host=place.name, pool=place.pool, error=str(error))


def mend(climate: Climate) -> int:
    """Ask the cloud again for every host that it has elsewhere than the books; how many those were.

    Hosts that nobody registered are taken out of the pools that are ours.  The
    pools are read before the books: a host that is registered or moved
    meanwhile is then placed twice, which does no harm.
    """
    seen = _seen(climate.cloud.pools())
    found = work(climate, lambda conn, patient: _compare(climate, conn, seen))
    try:
        _tell(climate, found, _put_right(climate, seen, found.astray))
    finally:
        if found.astray:
            work(climate, lambda conn, patient: pool_membership.leave(conn, [place.host for place in found.astray]))
    _turn_out(climate, {name for name, pools in seen.items() if pools & KEPT} - found.known, seen)
    return len(found.astray)


@dataclass(frozen=True, slots=True)
class _Found:
    known: frozenset[str]
    """Names of all hosts that are registered."""
    astray: Sequence[HostPlace]
    """Those that are elsewhere, and this worker's to put right."""
    settled: frozenset[int]
    """Those that are where they should be."""
    noted: Mapping[int, str]


def _seen(pools: Mapping[str, frozenset[str]]) -> Seen:
    by_host: dict[str, set[str]] = defaultdict(set)
    for pool, names in pools.items():
        for name in names:
            by_host[name].add(pool)
    return {name: frozenset(found) for name, found in by_host.items()}


def _compare(climate: Climate, conn: Connection, seen: Seen) -> _Found:
    glance = pool_membership.glance(conn)
    if not glance.is_noted and _all_there(glance, seen):
        return _Found(frozenset(glance.names), [], frozenset(glance.numbers), {})
    known = pool_membership.listed(conn)
    astray = [place for place in known if _is_astray(place, seen.get(place.name, frozenset()))]
    numbers = frozenset(place.host for place in astray)
    idle = numbers - _at_work(conn, astray, seen)
    mine = pool_membership.tend(conn, idle, climate.now(conn), HANDS_ON) if idle else idle
    return _Found(
        known=frozenset(place.name for place in known),
        astray=[place for place in astray if place.host in mine],
        settled=frozenset(place.host for place in known) - numbers,
        noted=drift.noted(conn),
    )


def _all_there(glance: Glance, seen: Seen) -> bool:
    """Whether the cloud has all hosts where the books have them."""
    columns = zip(glance.names, glance.pools, glance.reservations, strict=True)
    nowhere: frozenset[str] = frozenset()
    return not any(
        _is_elsewhere(_cloud_pool(Pool(pool), reservation), seen.get(name, nowhere))
        for name, pool, reservation in columns
    )


def _is_astray(place: HostPlace, pools: frozenset[str]) -> bool:
    return _is_elsewhere(wanted(place), pools)


def _is_elsewhere(target: str | None, pools: frozenset[str]) -> bool:
    """A host of the reservation pool may besides be in those of the reservations that share it."""
    if target == FREEPOOL:
        return pools & KEPT != {FREEPOOL}
    return pools != ({target} if target else frozenset())


def _at_work(conn: Connection, astray: Sequence[HostPlace], seen: Seen) -> set[int]:
    """Hosts that an event has in its hands: the cloud may be ahead of the books then, which is the event's business.

    A start that waits for a host which it does not have yet is waiting for this very round.
    Whoever took a host out, as it failed or is worked on, did not ask the event either.
    """
    pools = {place.host: seen.get(place.name, frozenset()) for place in astray}
    ready = {place.host for place in astray if place.pool in READY}
    return {
        one.host
        for one in drift.begun(conn, pools)
        if one.status == EventStatus.IN_PROGRESS or (one.host in ready and _is_ahead(one, pools[one.host]))
    }


def _is_ahead(one: Begun, pools: frozenset[str]) -> bool:
    """Whether an event that is to be tried again may have moved the host, of which the books do not know yet."""
    lends = one.kind in (EventKind.START, EventKind.ADJUST)
    return one.kind == EventKind.END or (lends and str(one.reservation_id) in pools)


def _put_right(climate: Climate, seen: Seen, astray: Sequence[HostPlace]) -> dict[int, str]:
    """Place them; what keeps each of them from it, "" where nothing does.  Of whom nothing is known is left out."""
    troubles: dict[int, str] = {}
    outdated = [place for place in astray if not _placed(climate, place, troubles)]
    for place in _renewed(climate, seen, outdated) if outdated else ():
        _placed(climate, place, troubles)
    return troubles


def _placed(climate: Climate, place: HostPlace, troubles: dict[int, str]) -> bool:
    """False where the cloud knows a later token than the books."""
    try:
        climate.cloud.place(place.name, wanted(place), place.token)
    except Fenced:
        return False
    except (Refused, NotYet) as error:
        troubles[place.host] = str(error) or type(error).__name__
    except CloudError as error:
        log.warning("the cloud cannot be asked now", host=place.name, error=str(error))
    else:
        troubles[place.host] = ""
        log.info("the cloud had a host elsewhere", host=place.name, pool=place.pool)
    return True


def _renewed(climate: Climate, seen: Seen, outdated: Sequence[HostPlace]) -> list[HostPlace]:
    """The same places under new tokens, unless the hosts have moved since or an event is at work on them.

    The cloud has seen a later token than the books where somebody asked it
    first and then did not come to write it down.
    """

    def act(conn: Connection, patient: bool) -> list[HostPlace]:
        numbers = {place.host for place in outdated}
        present = pool_membership.of(conn, numbers, lock=True)
        kept = numbers - _at_work(conn, outdated, seen)
        same = [place for place in outdated if place.host in kept and present[place.host].version == place.version]
        now, tokens = climate.now(conn), event_claims.tokens(conn, len(same))
        moves = [(place, [_again(place, now, token)]) for place, token in zip(same, tokens, strict=True)]
        return pool_membership.record(conn, AUTHOR, moves)

    return work(climate, act)


def _again(place: HostPlace, now: datetime, token: int) -> HostMoved:
    return HostMoved(now, place.pool, place.reason, token, place.reservation_id, place.until, place.cause)


def _tell(climate: Climate, found: _Found, troubles: Mapping[int, str]) -> None:
    """Note what is wrong, and what no longer is; admins are told of each trouble once."""
    gone = {number: "" for number in found.noted if number in found.settled}
    changed = {**gone, **{host: said for host, said in troubles.items() if said != found.noted.get(host, "")}}
    if not changed:
        return
    names = {place.host: place for place in found.astray}
    told = [_notice(names[host], said) for host, said in changed.items() if said]

    def act(conn: Connection, patient: bool) -> None:
        locks.lock_hosts(conn, changed)
        drift.note(conn, changed)
        delivery.tell(conn, climate.now(conn), *told)

    work(climate, act)
    for notice in told:
        log.warning(notice.message, host=notice.host)


def _notice(place: HostPlace, said: str) -> Notice:
    where = f"The cloud does not have host {place.name} in the pool {place.pool}"
    return Notice("pool.drift", f"{where}: {said}", host=place.host, body={"pool": place.pool, "reason": said})


def _turn_out(climate: Climate, names: set[str], seen: Seen) -> None:
    """Give hosts that nobody registered, not meanwhile either, to the ordinary scheduler."""
    if not names:
        return

    def look(conn: Connection, patient: bool) -> tuple[set[str], Sequence[int]]:
        return names - {place.name for place in pool_membership.listed(conn)}, event_claims.tokens(conn, len(names))

    strangers, tokens = work(climate, look)
    for name, token in zip(sorted(strangers), tokens, strict=False):
        try:
            if FREEPOOL in seen[name]:
                climate.cloud.withdraw(name, token)
            else:
                climate.cloud.place(name, None, token)
        except (CloudError, NotYet, Fenced) as error:
            log.warning("a host that nobody registered stays in a pool of ours", host=name, error=str(error))
