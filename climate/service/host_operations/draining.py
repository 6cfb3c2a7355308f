"""Hosts with ordinary servers that are to be kept for leases: closed to new servers, and taken when the last is gone.

Their servers are nobody's lease: they go by themselves, or are moved by an
admin, and are never deleted for it.
"""

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.service.host_operations.pool_enrolment import Wanted, take
from climate.store.hosts import pool_membership

DRAINED = "its last server is gone"


def tend(climate: Climate) -> int:
    """Take every drained host that is empty now into the reservation pool; how many those were."""
    return take(climate, _empty)


def _empty(conn: Connection) -> Wanted:
    found = pool_membership.listed(conn, Pool.DRAINING)
    return Wanted(len(found), DRAINED, found)
