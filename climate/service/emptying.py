"""Servers leave hosts that are to become empty, where that is agreed: for the pool's filling, or for a window.

The terms of the reservation pool say it of hosts that are draining, and each
maintenance window of its own host.  One server of a host is moved at a time, so
that what is shut down for it is down for no longer than its own way takes.  A
server that can go nowhere stays, and is tried again.
"""

from collections.abc import Sequence
from contextlib import suppress

import structlog
from sqlalchemy import Connection

from climate.cloud import CloudError, CloudServer, Fenced, NotYet, Refused
from climate.context import Climate
from climate.domain.pools import HostPlace, Pool
from climate.service.rounds import HANDS_ON
from climate.service.unit import work
from climate.store import claims, places, terms, windows

log = structlog.get_logger(__name__)


def tend(climate: Climate) -> int:
    """Have a server leave each host that is to become empty and from which none is under way; how many do."""
    tries = work(climate, lambda conn, patient: _claimed(climate, conn))
    try:
        return sum(_one_leaves(climate, place, token) for place, token in tries)
    finally:
        if tries:
            work(climate, lambda conn, patient: places.leave(conn, [place.host for place, _ in tries]))


def leaves(climate: Climate, server: CloudServer, host: str, token: int) -> bool:
    """Whether a server is on its way from a host, or may be soon.  Its trouble does not keep the others."""
    try:
        climate.cloud.move_server(server.id, host, token)
    except Refused as error:
        log.warning("a server cannot be moved", server_id=server.id, host=host, reason=str(error)[:200])
        return False
    except (CloudError, NotYet, Fenced) as error:
        log.info("a server is not moved yet", server_id=server.id, host=host, reason=str(error)[:200])
    return True


def _claimed(climate: Climate, conn: Connection) -> list[tuple[HostPlace, int]]:
    found = _leaving(climate, conn)
    mine = places.tend(conn, [place.host for place in found], climate.now(conn), HANDS_ON) if found else frozenset()
    own = [place for place in found if place.host in mine]
    return list(zip(own, claims.tokens(conn, len(own)), strict=True)) if own else []


def _leaving(climate: Climate, conn: Connection) -> list[HostPlace]:
    drained = places.listed(conn, Pool.DRAINING)
    drained = drained if drained and terms.of(conn, climate.settings).move_servers else []
    worked_on = places.listed(conn, Pool.MAINTENANCE)
    moving = windows.moving(conn, [place.host for place in worked_on]) if worked_on else frozenset()
    return [*drained, *(place for place in worked_on if place.host in moving)]


def _one_leaves(climate: Climate, place: HostPlace, token: int) -> bool:
    servers: Sequence[CloudServer] = ()
    with suppress(CloudError):  # the next round asks again
        servers = climate.cloud.servers_on(place.name)
    if any(server.busy for server in servers):
        return False
    return any(leaves(climate, server, place.name, token) for server in servers)
