"""Sub-leases: those of a parent lease, and what is due for them."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    column,
    exists,
    func,
    literal_column,
    not_,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import JSONB

from climate.database.sql_arrays import json_array
from climate.domain.status import EventKind
from climate.store.schema import Time
from climate.store.tables.leases import OWING, SUBLET, events, has, leases, reservations


def due_parents(now: ColumnElement[datetime]) -> Select[tuple[UUID]]:
    """Return the query for leases from which hosts of sub-leases are to be taken by then, or warned of."""
    elements = func.jsonb_array_elements(json_array(reservations.c.sublets))
    hosts = elements.table_valued(column("value", JSONB)).lateral("hosts")

    def at(name: str) -> ColumnElement[datetime]:
        return cast(hosts.c.value[name].astext, Time)

    def is_set(name: str) -> ColumnElement[bool]:
        return cast(hosts.c.value[name].astext, Boolean)

    to_warn = and_(at("warn_at") <= now, not_(is_set("warned")))
    there = select(reservations.c.lease_id).join(hosts, true()).where(text(SUBLET), reservations.c.status != "deleted")
    return there.where(not_(is_set("taken")), or_(to_warn, at("take_at") <= now))


def over() -> Select[tuple[UUID]]:
    """Return the query for sub-leases that are over and have not returned their hosts."""
    ended = exists().where(
        events.c.lease_id == leases.c.id, has(events.c.kind, EventKind.END), has(events.c.status, "DONE")
    )
    return select(leases.c.id).where(text(OWING), or_(leases.c.gone, ended))


def due(conn: Connection, now: datetime, limit: int) -> list[UUID]:
    """Return up to `limit` leases from which hosts of sub-leases are to be taken by now, or warned of, at random."""
    return list(conn.scalars(_DUE, {"now": now, "limit": limit}))


def to_return(conn: Connection, limit: int) -> list[UUID]:
    """Return up to `limit` sub-leases that are over and have not returned their hosts, at random."""
    return list(conn.scalars(_OVER, {"limit": limit}))


def of_parent(conn: Connection, lease_id: UUID) -> list[UUID]:
    """Return the sub-leases of a lease that are not deleted, oldest first."""
    return list(conn.scalars(_OF_PARENT, {"lease_id": str(lease_id)}))


_OF = literal_column("parent ->> 'lease_id'", Text)
_LIMIT = bindparam("limit", type_=Integer)
# At random: leases that fail again and again must not keep others from their turn.
_ALL_DUE = due_parents(bindparam("now", type_=Time)).distinct().subquery("due")
_DUE = select(_ALL_DUE.c.lease_id).order_by(func.random()).limit(_LIMIT)
_OVER = over().order_by(func.random()).limit(_LIMIT)
_OF_PARENT = (
    select(leases.c.id)
    .where(leases.c.parent.is_not(None), bindparam("lease_id", type_=Text) == _OF, ~leases.c.gone)
    .order_by(leases.c.created_at, leases.c.id)
)
