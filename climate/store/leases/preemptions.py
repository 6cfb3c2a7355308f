"""Plans to take hosts from preemptible leases, as far as they are due."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Integer,
    Select,
    and_,
    bindparam,
    cast,
    column,
    func,
    not_,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB

from climate.database.sql_arrays import json_array
from climate.store.schema import Time
from climate.store.tables.leases import GIVES_WAY, PREEMPTED, allocations, reservations


def due_leases(now: ColumnElement[datetime]) -> Select[tuple[UUID]]:
    """Return the query for leases whose owner is to be warned by then, or that lose a host by then."""
    elements = func.jsonb_array_elements(json_array(reservations.c.preemptions))
    plans = elements.table_valued(column("value", JSONB)).lateral("plans")

    def at(name: str) -> ColumnElement[datetime]:
        return cast(plans.c.value[name].astext, Time)

    to_warn = and_(at("warn_at") <= now, not_(plans.c.value["warned"].astext.cast(Boolean)))
    there = select(reservations.c.lease_id).join(plans, true())
    return there.where(text(PREEMPTED), or_(to_warn, at("take_at") <= now))


def due(conn: Connection, now: datetime, limit: int) -> list[UUID]:
    """Return up to `limit` leases whose owner is to be warned by now, or that lose a host by now, at random."""
    return list(conn.scalars(_DUE, {"now": now, "limit": limit}))


def counts(conn: Connection, now: datetime) -> tuple[int, int]:
    """Return the number of hosts that preemptible leases hold now, and of those that are to be taken from them."""
    held, planned = conn.execute(_COUNTS, {"now": now}).one()
    return held, planned


_HELD = select(func.count()).where(text(GIVES_WAY), allocations.c.during.contains(bindparam("now", type_=Time)))
_PLANNED = select(func.coalesce(func.sum(func.jsonb_array_length(json_array(reservations.c.preemptions))), 0)).where(
    text(PREEMPTED)
)
_COUNTS = select(_HELD.select_from(allocations).scalar_subquery(), _PLANNED.select_from(reservations).scalar_subquery())
# At random: leases whose hosts cannot be taken must not keep others from their turn.
_ALL_DUE = due_leases(bindparam("now", type_=Time)).distinct().subquery("due")
_DUE = select(_ALL_DUE.c.lease_id).order_by(func.random()).limit(bindparam("limit", type_=Integer))
