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
    column,
    func,
    not_,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB

from climate.store.schema import Time
from climate.store.tables.leases import PREEMPTED, reservations


def due_leases(now: ColumnElement[datetime]) -> Select[tuple[UUID]]:
    """Return the query for leases whose owner is to be warned by then, or that lose a host by then."""
    plans = func.jsonb_array_elements(reservations.c.preemptions).table_valued(column("value", JSONB)).lateral("plans")

    def at(name: str) -> ColumnElement[datetime]:
        return plans.c.value[name].astext.cast(Time)

    to_warn = and_(at("warn_at") <= now, not_(plans.c.value["warned"].astext.cast(Boolean)))
    there = select(reservations.c.lease_id).join(plans, true())
    return there.where(text(PREEMPTED), or_(to_warn, at("take_at") <= now))


def due(conn: Connection, now: datetime, limit: int) -> list[UUID]:
    """Return leases whose owner is to be warned by now, or that lose a host by now."""
    return list(conn.scalars(_DUE, {"now": now, "limit": limit}))


_DUE = due_leases(bindparam("now", type_=Time)).distinct().limit(bindparam("limit", type_=Integer))
