"""Work for the rounds, by one statement: their own queries run only while there is some."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from sqlalchemy import (
    ColumnElement,
    Connection,
    Exists,
    Select,
    Subquery,
    Text,
    and_,
    bindparam,
    case,
    cast,
    exists,
    func,
    not_,
    or_,
    select,
)

from climate.database.connections import Query
from climate.domain.hosts.pools import Pool
from climate.store.allocation import due_subleases, inventories
from climate.store.hosts import cleaning, health, maintenance, quarantine
from climate.store.leases import preemptions
from climate.store.schema import Time
from climate.store.tables.calendar_feeds_and_mail import mail_preferences, mail_reminders
from climate.store.tables.hosts import host_power, hosts, pool_terms, windows
from climate.store.tables.leases import waiting_marks
from climate.store.tables.limits_and_notices import notices
from climate.store.usage import host_hours

AT_REST = (Pool.RESERVATION, Pool.LENT, Pool.MULTI_TENANT)
"""Pools whose hosts no round moves by itself."""

REMINDERS_EVERY = timedelta(seconds=30)
"""Time between two looks for reminders, if any user gets mail."""


@dataclass(frozen=True, slots=True)
class RoundWork:
    """Kinds of work that exist."""

    hosts: bool
    """A host is on its way between pools, to be taken or to be returned, a maintenance window is due, or a lease may
    have to be healed.
    """
    filling: bool
    """The administrators have set a target for the pool."""
    volumes: bool
    """A lease that is over keeps volumes."""
    waiting: bool = False
    """Leases of the waiting list are to be tried."""


@dataclass(frozen=True, slots=True)
class DueRounds:
    """Kinds of rounds that may have work."""

    hosts: bool
    """Those over hosts."""
    outside: bool
    """Those over external systems."""


_NOW = func.coalesce(bindparam("now", type_=Time), func.statement_timestamp())
_HOSTS = or_(
    exists().where(hosts.c.removed_at.is_(None), hosts.c.pool.not_in(AT_REST)),
    exists().where(or_(maintenance.begins(_NOW), maintenance.ends(_NOW))).select_from(windows),
    exists(select(health.concerned_leases(_NOW).subquery("concerned").c.lease_id)),
    exists(quarantine.still_held(_NOW)),
    exists(preemptions.due_leases(_NOW)),
    exists(due_subleases.due_parents(_NOW)),
    exists(due_subleases.over()),
)
_FILLING = exists().where(or_(pool_terms.c.target > 0, pool_terms.c.horizon > 0))
_VOLUMES = exists(inventories.KEPT)
_WAITING = exists().where(or_(waiting_marks.c.not_before.is_(None), waiting_marks.c.not_before <= _NOW))
_LOOK = select(_HOSTS, _FILLING, _VOLUMES, _WAITING)
_POWERED = exists().select_from(host_power)
_REMINDED = exists().where(mail_reminders.c.written_until > _NOW - REMINDERS_EVERY).select_from(mail_reminders)
_REMINDERS = and_(exists().select_from(mail_preferences), not_(_REMINDED))
_OUTSIDE = or_(_POWERED, exists().where(notices.c.next_at <= _NOW), _REMINDERS, host_hours.DUE)
_LOOK_OUTSIDE = select(_OUTSIDE)


def read(conn: Connection, now: datetime | None) -> RoundWork:
    """Return the work for the rounds over hosts; `now` is None for the database's clock."""
    return RoundWork(*conn.execute(_LOOK, {"now": now}).one())


def is_outside(conn: Connection, now: datetime | None) -> bool:
    """Return whether a host has a power supply, or a notification, a reminder or a sample of usage may be due."""
    return bool(conn.scalar(_LOOK_OUTSIDE, {"now": now}))


def due(conn: Connection, now: datetime | None, cloud: Query, cloud_pools: Mapping[Pool, str | None]) -> DueRounds:
    """Return the rounds that may have work, in one statement for any number of hosts.

    `cloud` has the hosts as the cloud knows them: name, pool, is_well. `cloud_pools` has the name of each pool in the
    cloud; None means no pool. A lent host is in the pool named by its reservation.
    """
    query = _due(cloud.rows, tuple(cloud_pools.items()))
    return DueRounds(*conn.execute(query, {"now": now, **cloud.parameters}).one())


@lru_cache(maxsize=4)
def _due(cloud: Subquery, cloud_pools: tuple[tuple[Pool, str | None], ...]) -> Select[bool, bool]:
    unsettled, lost = _unsettled(cloud, dict(cloud_pools)), exists(cleaning.lost(_NOW))
    return select(or_(_POWERED, lost, _HOSTS, _FILLING, _VOLUMES, _WAITING, unsettled), _OUTSIDE)


def _unsettled(cloud: Subquery, cloud_pools: Mapping[Pool, str | None]) -> Exists:
    """Return whether a host is unwell, doubted or switched off, or is in a pool of the cloud that is not its own.

    An unregistered host in a pool of the engine counts too.
    """
    is_calm = and_(hosts.c.switched_on, hosts.c.doubted_since.is_(None), hosts.c.drift == "")
    known = (
        select(
            hosts.c.hypervisor_hostname.label("name"),
            _expected_pool(cloud_pools).label("pool"),
            is_calm.label("is_calm"),
        )
        .where(hosts.c.removed_at.is_(None))
        .subquery("known")
    )
    is_settled = and_(known.c.is_calm, cloud.c.is_well, cloud.c.pool.is_not_distinct_from(known.c.pool))
    own = [name for name in cloud_pools.values() if name is not None]
    differs = case((known.c.name.is_(None), cloud.c.pool.in_(own)), else_=is_settled.is_not(True))
    both = known.join(cloud, cloud.c.name == known.c.name, full=True)
    return exists(select(known.c.name).select_from(both).where(differs))


def _expected_pool(cloud_pools: Mapping[Pool, str | None]) -> ColumnElement[str | None]:
    """Return the pool of the cloud in which a host should be."""
    names: dict[str, str | None] = {str(pool): name for pool, name in cloud_pools.items()}
    return case(names, value=hosts.c.pool, else_=cast(hosts.c.pool_reservation, Text))
