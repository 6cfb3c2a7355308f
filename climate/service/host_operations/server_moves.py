"""Servers leave hosts that are to become empty, where that is agreed: for the pool's filling, or for a window.

The terms of the reservation pool say it of hosts that are draining, and each
maintenance window of its own host.  One server of a host is moved at a time, so
that what is shut down for it is down for no longer than its own way takes.  A
server that can go nowhere stays, and is tried again.
"""

from contextlib import suppress
from enum import Enum

import structlog
from sqlalchemy import Connection

from climate.cloud import CloudError, CloudServer, Fenced, NotYet, Refused
from climate.context import Climate
from climate.domain.hosts.pools import HostPlace, Pool
from climate.service.host_operations.round_settings import HANDS_ON
from climate.service.transaction import work
from climate.store.hosts import maintenance, pool_membership, pool_settings
from climate.store.leases import event_claims

log = structlog.get_logger(__name__)


def tend(climate: Climate) -> int:
    """Have a server leave each host that is to become empty and from which none is under way; how many do."""
    tries = work(climate, lambda conn, patient: _claimed(climate, conn))
    try:
        return sum(_one_leaves(climate, place, token) for place, token in tries)
    finally:
        if tries:
            work(climate, lambda conn, patient: pool_membership.leave(conn, [place.host for place, _ in tries]))


class Leaving(Enum):
    """The cloud's answer when it is asked to have a server leave its host."""

    BEGUN = "begun"
    """It is on its way."""
    LATER = "later"
    """The cloud cannot do it now, or cannot be asked."""
    NEVER = "never"
    """The cloud refuses."""


def leave(climate: Climate, server: CloudServer, host: str, token: int, *, alone: bool = False) -> Leaving:
    """Have a server leave a host, with `alone` only while no other is on its way from it.

    Its trouble does not keep the others.
    """
    try:
        climate.cloud.move_server(server.id, host, token, alone=alone)
    except Refused as error:
        log.warning("a server cannot be moved", server_id=server.id, host=host, reason=str(error)[:200])
        return Leaving.NEVER
    except (CloudError, NotYet, Fenced) as error:
        log.info("a server is not moved yet", server_id=server.id, host=host, reason=str(error)[:200])
        return Leaving.LATER
    return Leaving.BEGUN


def _claimed(climate: Climate, conn: Connection) -> list[tuple[HostPlace, int]]:
    found = _leaving(climate, conn)
    mine = (
        pool_membership.tend(conn, [place.host for place in found], climate.now(conn), HANDS_ON)
        if found
        else frozenset()
    )
    own = [place for place in found if place.host in mine]
    return list(zip(own, event_claims.tokens(conn, len(own)), strict=True)) if own else []


def _leaving(climate: Climate, conn: Connection) -> list[HostPlace]:
    drained = pool_membership.listed(conn, Pool.DRAINING)
    drained = drained if drained and pool_settings.of(conn, climate.settings).move_servers else []
    worked_on = pool_membership.listed(conn, Pool.MAINTENANCE)
    moving = maintenance.moving(conn, [place.host for place in worked_on]) if worked_on else frozenset()
    return [*drained, *(place for place in worked_on if place.host in moving)]


def _one_leaves(climate: Climate, place: HostPlace, token: int) -> bool:
    """Whether a server has begun to leave; where the cloud does not say whether one has, no other is asked."""
    with suppress(CloudError):  # the next round asks again
        servers = climate.cloud.servers_on(place.name)
        if any(server.busy for server in servers):
            return False
        first = token % max(1, len(servers))  # another one at each round: one that always comes back blocks none
        for server in (*servers[first:], *servers[:first]):
            answer = leave(climate, server, place.name, token, alone=True)
            if answer is Leaving.BEGUN:
                return True
            if answer is Leaving.LATER and _is_under_way(climate, server):
                return False
    return False


def _is_under_way(climate: Climate, server: CloudServer) -> bool:
    """Whether something is under way with a server, such as a move that was begun although the answer was lost."""
    seen = climate.cloud.server(server.id)
    return seen is not None and (seen.busy or seen.host != server.host)
