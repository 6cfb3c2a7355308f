"""The reservation pool is filled up to its target, with hosts of the multi-tenant pool that are empty."""

from dataclasses import dataclass

import structlog
from sqlalchemy import Connection

from climate.cloud import FREEPOOL, CloudError, Fenced, NotYet
from climate.context import Climate
from climate.domain.facts import HostMoved
from climate.domain.pools import HostPlace, Pool
from climate.service.rounds import AUTHOR, HANDS_ON
from climate.service.unit import work
from climate.store import claims, places, pools, terms

log = structlog.get_logger(__name__)

SPARE = 10
"""Hosts that are tried beyond what is wanted in one round: many will have servers, and each try is a call."""


def top_up(climate: Climate) -> int:
    """Take hosts until the target is reached, or no empty one is left; how many were taken.

    Hosts that belong to the reservation pool count wherever they are, lent ones
    too, but not those that have failed: the pool does not grow with its use.
    Who is not to be taken is closed to promises (`reservable`).
    """
    wanted = work(climate, lambda conn, patient: _wanted(climate, conn))
    taken: list[_Try] = []
    try:
        for one in wanted.tries:
            if len(taken) < wanted.count and _is_taken(climate, one):
                taken.append(one)
        return len(work(climate, lambda conn, patient: _record(climate, conn, wanted, taken))) if taken else 0
    finally:
        if wanted.tries:
            work(climate, lambda conn, patient: places.leave(conn, [one.place.host for one in wanted.tries]))


@dataclass(frozen=True, slots=True)
class _Try:
    """A host that is this worker's, and the token under which the cloud is asked for it."""

    place: HostPlace
    token: int


@dataclass(frozen=True, slots=True)
class _Wanted:
    count: int
    target: int
    tries: tuple[_Try, ...] = ()


def _wanted(climate: Climate, conn: Connection) -> _Wanted:
    target = terms.of(conn, climate.settings).target
    count = target - pools.belonging(conn) if target else 0
    if count <= 0:
        return _Wanted(0, target)
    found = [place for place in places.listed(conn, Pool.MULTI_TENANT) if place.reservable]
    chosen = sorted(found, key=lambda place: climate.chance())[: count + SPARE]
    mine = places.tend(conn, [place.host for place in chosen], climate.now(conn), HANDS_ON) if chosen else frozenset()
    own = [place for place in chosen if place.host in mine]
    return _Wanted(count, target, tuple(map(_Try, own, claims.tokens(conn, len(own)))))


def _is_taken(climate: Climate, one: _Try) -> bool:
    """The cloud goes first: it knows whether the host is empty, and keeps it so from then on."""
    try:
        climate.cloud.place(one.place.name, FREEPOOL, one.token)
    except NotYet:
        return False
    except (CloudError, Fenced) as error:
        log.warning("a host cannot be taken into the reservation pool", host=one.place.name, reason=str(error))
        return False
    return True


def _record(climate: Climate, conn: Connection, wanted: _Wanted, taken: list[_Try]) -> list[HostPlace]:
    """Those that somebody has moved since stay where they are now: the rounds put the cloud right."""
    now = climate.now(conn)
    present = places.of(conn, [one.place.host for one in taken], lock=True)
    reason = f"topped up to {wanted.target} hosts"
    return places.record(
        conn,
        AUTHOR,
        [
            (one.place, [HostMoved(now, Pool.RESERVATION, reason, one.token)])
            for one in taken
            if present[one.place.host] == one.place
        ],
    )
