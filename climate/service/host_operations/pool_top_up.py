"""Filling of the reservation pool to its target, with empty hosts of the multi-tenant pool."""

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.service.host_operations.pool_enrolment import Enrolment, take
from climate.store.hosts import pool_membership, pool_settings, pools

SPARE = 10
"""Number of hosts tried beyond the missing ones in one round: many will have servers, and each try is a call."""


def top_up(climate: Climate) -> int:
    """Add hosts until the target is reached or no empty one is left; return the number of added hosts.

    Hosts of the reservation pool count in any pool, lent ones too, except failed ones, so the pool does not grow
    with its use. Hosts that are not `reservable` are not added.
    """
    return take(climate, _missing_hosts, climate)


def _missing_hosts(conn: Connection, climate: Climate) -> Enrolment:
    target = pool_settings.of(conn, climate.settings).target
    count = target - pools.belonging(conn) if target else 0
    if count <= 0:
        return Enrolment()
    places = [place for place in pool_membership.listed(conn, Pool.MULTI_TENANT) if place.reservable]
    chosen = sorted(places, key=lambda place: climate.chance())[: count + SPARE]
    return Enrolment(count, f"topped up to {target} hosts", chosen)
