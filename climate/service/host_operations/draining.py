"""Draining of hosts with ordinary servers, which take no new ones and join the reservation pool when empty.

Their servers belong to no lease. They leave by themselves or are moved by an admin, and are never deleted for
it.
"""

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.service.host_operations.pool_enrolment import Enrolment, take
from climate.store.hosts import pool_membership

DRAINED = "its last server is gone"


def run_round(climate: Climate) -> int:
    """Move every drained host that is empty into the reservation pool; return their number."""
    return take(climate, _empty)


def _empty(conn: Connection) -> Enrolment:
    result = pool_membership.listed(conn, Pool.DRAINING)
    return Enrolment(len(result), DRAINED, result)
