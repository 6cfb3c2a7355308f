"""Migration of servers from hosts that are to become empty, for the filling of the pool or a window.

The terms of the reservation pool allow it for draining hosts, and each maintenance window for its own host. One server
of a host is moved at a time. A server that must be shut down is therefore down only for its own move. A server that
fits nowhere stays and is retried.
"""

from contextlib import suppress
from enum import Enum

import structlog
from sqlalchemy import Connection

from climate.cloud import CloudError, CloudServer, Fenced, NotYet, Refused
from climate.context import Climate
from climate.domain.hosts.pools import HostPlace, Pool
from climate.service.host_operations.round_settings import HOST_CLAIM_SECONDS
from climate.service.transaction import run
from climate.store.hosts import maintenance, pool_membership, pool_settings
from climate.store.leases import event_claims

log = structlog.get_logger(__name__)


def run_round(climate: Climate) -> int:
    """Start one move on each host that has none in progress; return the number of started moves."""
    tries = run(climate, _claimed, climate)
    try:
        return sum(_one_leaves(climate, place, token) for place, token in tries)
    finally:
        if tries:
            run(climate, pool_membership.release_claims, [place.host for place, _ in tries])


class Leaving(Enum):
    """Answer of the cloud to the request to move a server away."""

    BEGUN = "begun"
    """The move has begun."""
    LATER = "later"
    """The cloud cannot move it now, or cannot be asked."""
    NEVER = "never"
    """The cloud refuses."""


def move_away(climate: Climate, server: CloudServer, host: str, token: int, *, alone: bool = False) -> Leaving:
    """Move a server away from a host; with `alone`, only while no other one is being moved from it.

    An error does not stop the other servers.
    """
    try:
        climate.cloud.move_server(server.id, host, token, alone=alone)
    except Refused as error:
        log.warning("server move refused", server_id=server.id, host=host, reason=str(error)[:200])
        return Leaving.NEVER
    except (CloudError, NotYet, Fenced) as error:
        log.info("server move postponed", server_id=server.id, host=host, reason=str(error)[:200])
        return Leaving.LATER
    return Leaving.BEGUN


def _claimed(conn: Connection, climate: Climate) -> list[tuple[HostPlace, int]]:
    result = _leaving(conn, climate)
    mine = (
        pool_membership.claim(conn, [place.host for place in result], climate.now(conn), HOST_CLAIM_SECONDS)
        if result
        else frozenset()
    )
    own = [place for place in result if place.host in mine]
    return list(zip(own, event_claims.tokens(conn, len(own)), strict=True)) if own else []


def _leaving(conn: Connection, climate: Climate) -> list[HostPlace]:
    drained = pool_membership.listed(conn, Pool.DRAINING)
    drained = drained if drained and pool_settings.of(conn, climate.settings).move_servers else []
    worked_on = pool_membership.listed(conn, Pool.MAINTENANCE)
    moving = maintenance.moving(conn, [place.host for place in worked_on]) if worked_on else frozenset()
    return [*drained, *(place for place in worked_on if place.host in moving)]


def _one_leaves(climate: Climate, place: HostPlace, token: int) -> bool:
    """Return whether a move has begun; if the cloud does not say so, no other server is tried."""
    with suppress(CloudError):  # the next round asks again
        servers = climate.cloud.servers_on(place.name)
        if any(server.busy for server in servers):
            return False
        # a different server each time, so that one that always returns blocks none
        first = token % max(1, len(servers))
        for server in (*servers[first:], *servers[:first]):
            answer = move_away(climate, server, place.name, token, alone=True)
            if answer is Leaving.BEGUN:
                return True
            if answer is Leaving.LATER and _is_under_way(climate, server):
                return False
    return False


def _is_under_way(climate: Climate, server: CloudServer) -> bool:
    """Return whether a task of a server is in progress, such as a move that has begun although the answer was lost."""
    seen = climate.cloud.server(server.id)
    return seen is not None and (seen.busy or seen.host != server.host)
