"""Work for the rounds, by one statement: their own queries run only while there is some."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, exists, func, or_, select

from climate.domain.hosts.pools import Pool
from climate.store.allocation import inventories
from climate.store.hosts import health, maintenance, quarantine
from climate.store.schema import Time
from climate.store.tables.hosts import host_power, hosts, pool_terms, windows
from climate.store.tables.operations import notices

AT_REST = (Pool.RESERVATION, Pool.LENT, Pool.MULTI_TENANT)
"""Pools whose hosts no round moves by itself."""


@dataclass(frozen=True, slots=True)
class RoundWork:
    """Kinds of work that exist."""

    hosts: bool
    """A host is on its way between pools, a maintenance window is due, or a lease may have to be healed."""
    filling: bool
    """The administrators have set a target for the pool."""
    volumes: bool
    """A lease that is over keeps volumes."""


_NOW = func.coalesce(bindparam("now", type_=Time), func.statement_timestamp())
_LOOK = select(
    or_(
        exists().where(hosts.c.removed_at.is_(None), hosts.c.pool.not_in(AT_REST)),
        exists().where(or_(maintenance.begins(_NOW), maintenance.ends(_NOW))).select_from(windows),
        exists(select(health.concerned_leases(_NOW).subquery("concerned").c.lease_id)),
        exists(quarantine.still_held(_NOW)),
    ),
    exists().where(or_(pool_terms.c.target > 0, pool_terms.c.horizon > 0)),
    exists(inventories.KEPT),
)
_OUTSIDE = select(or_(exists().select_from(host_power), exists().where(notices.c.next_at <= _NOW)))


def look(conn: Connection, now: datetime | None) -> RoundWork:
    """Return the work for the rounds over hosts; `now` is None for the database's clock."""
    return RoundWork(*conn.execute(_LOOK, {"now": now}).one())


def is_outside(conn: Connection, now: datetime | None) -> bool:
    """Return whether a host has a power supply, or a notification is due."""
    return bool(conn.scalar(_OUTSIDE, {"now": now}))
