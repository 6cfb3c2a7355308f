"""Child zones and their polled state. Passwords are sealed here; the caller of a child opens them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from climate.compute.store.tables.zones import zone_identity, zones
from climate.compute.zones.models import ChildZone

COLUMNS = [
    zones.c[name]
    for name in (
        "id",
        "api_url",
        "username",
        "password",
        "weight_offset",
        "weight_scale",
        "name",
        "capabilities",
        "is_active",
        "attempts",
        "last_seen",
        "last_error",
        "last_error_at",
        "skipped_until",
        "deployment_id",
        "loop_at",
    )
]


def listed(conn: Connection) -> list[ChildZone]:
    """Return all children, oldest first, with sealed passwords."""
    return [_zone(row) for row in conn.execute(select(*COLUMNS).order_by(zones.c.id)).mappings()]


def last_poll(conn: Connection) -> tuple[int, datetime | None]:
    """Return the number of children, and the time when one of them was last added or polled, successfully or not."""
    polled = func.max(func.coalesce(zones.c.polled_at, zones.c.created_at))
    count, at = conn.execute(select(func.count(), polled).select_from(zones)).one()
    return count, at


def get(conn: Connection, zone_id: int, *, lock: bool = False) -> ChildZone | None:
    """Return one child with its password sealed; `lock`: its row stays locked until the transaction ends."""
    query = select(*COLUMNS).where(zones.c.id == zone_id)
    row = conn.execute(query.with_for_update() if lock else query).mappings().one_or_none()
    return None if row is None else _zone(row)


def add(conn: Connection, values: Mapping[str, object]) -> ChildZone | None:
    """Insert a child: api_url, username, sealed password, weights. None: the URL is registered already."""
    made = upsert(zones).values(**values).on_conflict_do_nothing(index_elements=["api_url"]).returning(*COLUMNS)
    row = conn.execute(made).mappings().one_or_none()
    return None if row is None else _zone(row)


def are_any(conn: Connection) -> bool:
    """Return whether there are children."""
    return conn.execute(select(zones.c.id).limit(1)).first() is not None


def has_url(conn: Connection, api_url: str, other_than: int) -> bool:
    """Return whether another child is registered with this URL."""
    query = select(zones.c.id).where(zones.c.api_url == api_url, zones.c.id != other_than)
    return conn.execute(query).first() is not None


def change(conn: Connection, zone_id: int, values: Mapping[str, object]) -> None:
    """Update some columns of a child."""
    conn.execute(update(zones).where(zones.c.id == zone_id).values(**values, updated_at=func.clock_timestamp()))


def drop(conn: Connection, zone_id: int) -> None:
    """Delete a child, and the records of servers placed there."""
    conn.execute(delete(zones).where(zones.c.id == zone_id))


def claim_polls(conn: Connection, now: datetime, seconds: float) -> list[ChildZone]:
    """Claim the children that were not polled for `seconds`, for as many seconds."""
    due = or_(zones.c.polled_at.is_(None), zones.c.polled_at <= now - _interval(seconds))
    free = select(zones.c.id).where(due).with_for_update(skip_locked=True)
    claimed = update(zones).where(zones.c.id.in_(free)).values(polled_at=now).returning(*COLUMNS)
    return sorted((_zone(row) for row in conn.execute(claimed).mappings()), key=lambda zone: zone.id)


def record_success(conn: Connection, polled: ChildZone, report: Mapping[str, object]) -> ChildZone | None:
    """Record a successful poll: `report` has last_seen and the report of the child.

    None if the child was changed or deleted since `polled` was read.
    """
    values = {"is_active": True, "attempts": 0, "last_error": None, "last_error_at": None, "skipped_until": None}
    return _recorded(conn, polled, {**values, **report})


def record_failure(conn: Connection, polled: ChildZone, report: Mapping[str, object], limit: int) -> ChildZone | None:
    """Record a failed poll, as `record_success`; after `limit` failures in a row the child is inactive."""
    attempts = zones.c.attempts + 1
    return _recorded(
        conn, polled, {**report, "attempts": attempts, "is_active": zones.c.is_active & (attempts < limit)}
    )


def mark_loops(conn: Connection, now: datetime, *, ids: Sequence[int] = (), deployments: Sequence[str] = ()) -> None:
    """Record that requests to these children return; children are named by row or by their random ids."""
    named = or_(zones.c.id.in_(ids), zones.c.deployment_id.in_(deployments))
    conn.execute(update(zones).where(named).values(loop_at=now))


def clear_loops(conn: Connection, ids: Sequence[int]) -> None:
    """Clear the loops of these children."""
    conn.execute(update(zones).where(zones.c.id.in_(ids)).values(loop_at=None))


def skip(conn: Connection, ids: Sequence[int], until: datetime) -> None:
    """Exclude these children from requests before `until`."""
    conn.execute(update(zones).where(zones.c.id.in_(ids)).values(skipped_until=until))


def own_id(conn: Connection) -> str:
    """Return the random id of this deployment, creating it at the first call."""
    known: str | None = conn.execute(select(zone_identity.c.id)).scalar()
    if known is None:
        conn.execute(upsert(zone_identity).values(one_row=True).on_conflict_do_nothing())
        known = conn.execute(select(zone_identity.c.id)).scalar_one()
    return str(known)


def _recorded(conn: Connection, polled: ChildZone, values: Mapping[str, object]) -> ChildZone | None:
    same = (zones.c.api_url == polled.api_url) & (zones.c.username == polled.username)
    same &= zones.c.password == polled.password
    changed = update(zones).where(zones.c.id == polled.id, same).values(**values).returning(*COLUMNS)
    row = conn.execute(changed).mappings().one_or_none()
    return None if row is None else _zone(row)


def _interval(seconds: float) -> Any:
    return func.make_interval(0, 0, 0, 0, 0, 0, seconds)


def _zone(row: RowMapping) -> ChildZone:
    return ChildZone(**row)
