"""Take hosts into the reservation pool: the cloud goes first, which knows whether they are empty; then the books."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import Connection

from climate.cloud import FREEPOOL, CloudError, Fenced, NotYet
from climate.context import Climate
from climate.domain.facts import HostMoved
from climate.domain.hosts.pools import HostPlace, Pool
from climate.service.host_operations.round_settings import AUTHOR, HANDS_ON
from climate.service.transaction import work
from climate.store.hosts import pool_membership
from climate.store.leases import event_claims

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """At most `count` hosts, of these `places` in their order; `reason` stands in the journal of each."""

    count: int = 0
    reason: str = ""
    places: Sequence[HostPlace] = ()


@dataclass(frozen=True, slots=True)
class _Try:
    """A host that is this worker's, and the token under which the cloud is asked for it."""

    place: HostPlace
    token: int


def take(climate: Climate, choose: Callable[[Connection], Wanted]) -> int:
    """Take the hosts that `choose` wants and that are empty; how many were taken.

    Hosts that another worker looks after are left out, and so are those that
    somebody moves meanwhile.
    """
    wanted, tries = work(climate, lambda conn, patient: _claimed(climate, conn, choose(conn)))
    taken: list[_Try] = []
    try:
        for one in tries:
            if len(taken) < wanted.count and _is_taken(climate, one):
                taken.append(one)
        return len(work(climate, lambda conn, patient: _record(climate, conn, wanted.reason, taken))) if taken else 0
    finally:
        if tries:
            work(climate, lambda conn, patient: pool_membership.leave(conn, [one.place.host for one in tries]))


def _claimed(climate: Climate, conn: Connection, wanted: Wanted) -> tuple[Wanted, list[_Try]]:
    numbers = [place.host for place in wanted.places]
    mine = pool_membership.tend(conn, numbers, climate.now(conn), HANDS_ON) if numbers else frozenset()
    own = [place for place in wanted.places if place.host in mine]
    return wanted, list(map(_Try, own, event_claims.tokens(conn, len(own)))) if own else []


def _is_taken(climate: Climate, one: _Try) -> bool:
    """Whether the cloud took it: the host was empty, and is kept so from then on."""
    try:
        climate.cloud.place(one.place.name, FREEPOOL, one.token)
    except NotYet:
        return False
    except (CloudError, Fenced) as error:
        log.warning("a host cannot be taken into the reservation pool", host=one.place.name, reason=str(error))
        return False
    return True


def _record(climate: Climate, conn: Connection, reason: str, taken: Sequence[_Try]) -> list[HostPlace]:
    """Those that somebody has moved since stay where they are now: the rounds put the cloud right."""
    now = climate.now(conn)
    present = pool_membership.of(conn, [one.place.host for one in taken], lock=True)
    kept = [one for one in taken if present[one.place.host] == one.place]
    return pool_membership.record(
        conn, AUTHOR, [(one.place, [HostMoved(now, Pool.RESERVATION, reason, one.token)]) for one in kept]
    )
