"""The reservation pool is filled up to its target, with hosts of the multi-tenant pool that are empty."""

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.service.host_operations.pool_enrolment import Wanted, take
from climate.store.hosts import pool_membership, pool_settings, pools

SPARE = 10
"""Hosts that are tried beyond what is wanted in one round: many will have servers, and each try is a call."""


def top_up(climate: Climate) -> int:
    """Take hosts until the target is reached, or no empty one is left; how many were taken.

    Hosts that belong to the reservation pool count wherever they are, lent ones
    too, but not those that have failed: the pool does not grow with its use.
    Who is not to be taken is closed to promises (`reservable`).
    """
    return take(climate, lambda conn: _wanted(climate, conn))


def _wanted(climate: Climate, conn: Connection) -> Wanted:
    target = pool_settings.of(conn, climate.settings).target
    count = target - pools.belonging(conn) if target else 0
    if count <= 0:
        return Wanted()
    found = [place for place in pool_membership.listed(conn, Pool.MULTI_TENANT) if place.reservable]
    chosen = sorted(found, key=lambda place: climate.chance())[: count + SPARE]
    return Wanted(count, f"topped up to {target} hosts", chosen)
