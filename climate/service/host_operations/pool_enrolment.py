"""Addition of hosts to the reservation pool: first in the cloud, which knows their servers, then in the database."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVarTuple

import structlog
from sqlalchemy import Connection

from climate.cloud import FREEPOOL, CloudError, Fenced, NotYet
from climate.context import Climate
from climate.domain.facts import HostMoved
from climate.domain.hosts.pools import HostPlace, Pool
from climate.service.host_operations.round_settings import AUTHOR, HOST_CLAIM_SECONDS
from climate.service.transaction import run
from climate.store.hosts import pool_membership
from climate.store.leases import event_claims

log = structlog.get_logger(__name__)

Args = TypeVarTuple("Args")


@dataclass(frozen=True, slots=True)
class Enrolment:
    """Request to add up to `count` of these `places`, in order; `reason` is recorded for each."""

    count: int = 0
    reason: str = ""
    places: Sequence[HostPlace] = ()


@dataclass(frozen=True, slots=True)
class _Try:
    """Host that this worker has claimed, and the fencing token of the request to the cloud."""

    place: HostPlace
    token: int


def take(climate: Climate, choose: Callable[[Connection, *Args], Enrolment], *args: *Args) -> int:
    """Add the empty ones of the hosts that `choose(conn, *args)` returns; return the number of added hosts.

    Skips hosts that another worker has claimed, and those that somebody moves meanwhile.
    """
    wanted, tries = run(climate, _claimed, climate, choose, args)
    taken: list[_Try] = []
    try:
        for one in tries:
            if len(taken) < wanted.count and _is_taken(climate, one):
                taken.append(one)
        return len(run(climate, _record, climate, wanted.reason, taken)) if taken else 0
    finally:
        if tries:
            run(climate, pool_membership.release_claims, [one.place.host for one in tries])


def _claimed(
    conn: Connection, climate: Climate, choose: Callable[[Connection, *Args], Enrolment], args: tuple[*Args]
) -> tuple[Enrolment, list[_Try]]:
    wanted = choose(conn, *args)
    numbers = [place.host for place in wanted.places]
    mine = pool_membership.claim(conn, numbers, climate.now(conn), HOST_CLAIM_SECONDS) if numbers else frozenset()
    own = [place for place in wanted.places if place.host in mine]
    return wanted, list(map(_Try, own, event_claims.tokens(conn, len(own)))) if own else []


def _is_taken(climate: Climate, one: _Try) -> bool:
    """Return whether the cloud added it: the host was empty, and takes no ordinary servers from then on."""
    try:
        climate.cloud.place(one.place.name, FREEPOOL, one.token)
    except NotYet:
        return False
    except (CloudError, Fenced) as error:
        log.warning("host not added to the reservation pool", host=one.place.name, reason=str(error))
        return False
    return True


def _record(conn: Connection, climate: Climate, reason: str, taken: Sequence[_Try]) -> list[HostPlace]:
    """Record the moves; hosts that somebody has moved since stay there, and the reconciliation corrects the cloud."""
    now = climate.now(conn)
    present = pool_membership.of(conn, [one.place.host for one in taken], lock=True)
    kept = [one for one in taken if present[one.place.host] == one.place]
    return pool_membership.record(
        conn, AUTHOR, [(one.place, [HostMoved(now, Pool.RESERVATION, reason, one.token)]) for one in kept]
    )
