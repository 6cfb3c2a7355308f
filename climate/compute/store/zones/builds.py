"""Builds over zones: the request, the claim of a worker, and the zone of each server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, and_, delete, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from climate.compute.store.tables.zone_builds import zone_build_items as items
from climate.compute.store.tables.zone_builds import zone_builds as builds
from climate.database.batch_delete import drop

QUEUED, RUNNING, WAITING, DONE = "queued", "running", "waiting", "done"
SENT, PLACED, LOST = "sent", "placed", "lost"

FORGOTTEN = 500
"""Maximum number of old builds that one call deletes, because each may have a thousand items."""


@dataclass(frozen=True, slots=True)
class Item:
    """One server of a build, by its number."""

    launch_index: int
    state: str
    zone_id: int | None = None
    """The child; None: this zone."""
    blob: str | None = field(default=None, repr=False)
    server_id: str | None = None


@dataclass(frozen=True, slots=True)
class Build:
    """A request for servers over zones."""

    id: str
    reservation_id: str
    project_id: str
    user_id: str
    request: Mapping[str, Any] = field(repr=False)
    """The boot request, and the name of its image; empty once the build is done."""
    requested: int
    pending: int
    state: str
    report: Mapping[str, Any]
    fault: str | None
    created_at: datetime
    finished_at: datetime | None


_COLUMNS = [builds.c[name] for name in Build.__dataclass_fields__]


def add(conn: Connection, values: Mapping[str, object]) -> bool:
    """Insert a build; False if the project has one of that reservation id."""
    made = upsert(builds).values(**values).on_conflict_do_nothing().returning(builds.c.id)
    return conn.execute(made).first() is not None


def get(conn: Connection, build_id: str) -> Build | None:
    """Return the build; None if it does not exist."""
    row = conn.execute(select(*_COLUMNS).where(builds.c.id == build_id)).one_or_none()
    return Build(*row) if row else None


def of_reservation(conn: Connection, reservation_id: str, project_id: str | None) -> Build | None:
    """Return the build with that reservation id; `project_id` None: of any project, the latest."""
    query = select(*_COLUMNS).where(builds.c.reservation_id == reservation_id)
    if project_id is not None:
        query = query.where(builds.c.project_id == project_id)
    row = conn.execute(query.order_by(builds.c.created_at.desc()).limit(1)).one_or_none()
    return Build(*row) if row else None


def listed(conn: Connection, project_id: str | None, limit: int) -> list[Build]:
    """Return the builds of a project, or of all, newest first."""
    query = select(*_COLUMNS).order_by(builds.c.created_at.desc(), builds.c.id).limit(limit)
    if project_id is not None:
        query = query.where(builds.c.project_id == project_id)
    return [Build(*row) for row in conn.execute(query)]


def of(conn: Connection, build_id: str) -> list[Item]:
    """Return the servers of a build with an assigned zone, by their numbers."""
    columns = [items.c[name] for name in Item.__dataclass_fields__]
    query = select(*columns).where(items.c.build_id == build_id).order_by(items.c.launch_index)
    return [Item(*row) for row in conn.execute(query)]


def number_of(conn: Connection, server_id: str) -> int | None:
    """Return the number of a server in its build; None: it has no build."""
    number: int | None = conn.execute(select(items.c.launch_index).where(items.c.server_id == server_id)).scalar()
    return number


def claim(conn: Connection, build_id: str, worker: str, now: datetime, seconds: float) -> bool:
    """Claim a build for so many seconds; False if it is done or claimed."""
    free = or_(builds.c.worker_until.is_(None), builds.c.worker_until < now)
    due = and_(builds.c.id == build_id, builds.c.state != DONE, free)
    taken = (
        update(builds).where(due).values(worker=worker, worker_until=now + timedelta(seconds=seconds), state=RUNNING)
    )
    return conn.execute(taken).rowcount == 1


def renew(conn: Connection, build_id: str, worker: str, now: datetime, seconds: float) -> bool:
    """Renew the claim for so many seconds; the row stays locked. False if another worker has it."""
    mine = and_(builds.c.id == build_id, builds.c.worker == worker)
    return conn.execute(update(builds).where(mine).values(worker_until=now + timedelta(seconds=seconds))).rowcount == 1


def assign(conn: Connection, build_id: str, zone_id: int, blobs: Mapping[int, str]) -> None:
    """Record that a child is about to be asked for these servers."""
    rows = [
        {"build_id": build_id, "launch_index": number, "zone_id": zone_id, "state": SENT, "blob": blob}
        for number, blob in blobs.items()
    ]
    conn.execute(insert(items), rows)


def placed(conn: Connection, build_id: str, placements: Mapping[int, tuple[int | None, str]]) -> None:
    """Record the zones and servers of these numbers; their quota is counted with the servers from now on."""
    for number, (zone_id, server_id) in placements.items():
        values = {"zone_id": zone_id, "state": PLACED, "server_id": server_id, "blob": None}
        made = upsert(items).values(build_id=build_id, launch_index=number, **values)
        conn.execute(made.on_conflict_do_update(index_elements=["build_id", "launch_index"], set_=values))
    conn.execute(update(builds).where(builds.c.id == build_id).values(pending=builds.c.pending - len(placements)))


def unassign(conn: Connection, build_id: str, numbers: Sequence[int]) -> None:
    """Record that these servers were not created, so that they may be placed elsewhere."""
    conn.execute(delete(items).where(items.c.build_id == build_id, items.c.launch_index.in_(numbers)))


def lose(conn: Connection, build_id: str, numbers: Sequence[int]) -> None:
    """Give up servers of a deleted child, whose creation can no longer be checked."""
    mine = and_(items.c.build_id == build_id, items.c.launch_index.in_(numbers))
    conn.execute(update(items).where(mine).values(state=LOST, blob=None))


def count_asked(conn: Connection, zone_id: int) -> int:
    """Return the number of builds that wait for the answer of a child."""
    query = select(func.count(items.c.build_id.distinct())).where(items.c.zone_id == zone_id, items.c.state == SENT)
    return int(conn.execute(query).scalar_one())


def report(conn: Connection, build_id: str, values: Mapping[str, object]) -> None:
    """Store the answers of the zones."""
    conn.execute(update(builds).where(builds.c.id == build_id).values(report=dict(values)))


def rest(conn: Connection, build_id: str, due_at: datetime, fault: str | None, unknown: int) -> None:
    """Suspend a build until `due_at`: all but the `unknown` servers are settled, and count against no quota."""
    values: dict[str, object] = {
        "state": WAITING,
        "worker": None,
        "worker_until": None,
        "due_at": due_at,
        "rung_at": None,
    }
    conn.execute(update(builds).where(builds.c.id == build_id).values(**values, fault=fault, pending=unknown))


def finish(conn: Connection, build_id: str, now: datetime, fault: str | None) -> None:
    """End a build."""
    values: dict[str, object] = {
        "state": DONE,
        "worker": None,
        "worker_until": None,
        "pending": 0,
        "request": {},
        "finished_at": now,
    }
    conn.execute(update(builds).where(builds.c.id == build_id).values(**values, fault=fault))


def to_ring(conn: Connection, now: datetime, again: float) -> list[str]:
    """Return ids of due, unclaimed builds, each at most every `again` seconds."""
    free = or_(builds.c.worker_until.is_(None), builds.c.worker_until < now)
    quiet = or_(builds.c.rung_at.is_(None), builds.c.rung_at < now - timedelta(seconds=again))
    due = and_(builds.c.state != DONE, builds.c.due_at <= now, free, quiet)
    waiting = select(builds.c.id).where(due).order_by(builds.c.due_at).limit(500).with_for_update(skip_locked=True)
    return list(
        conn.execute(
            update(builds).where(builds.c.id.in_(waiting)).values(rung_at=now).returning(builds.c.id)
        ).scalars()
    )


def are_open(conn: Connection) -> bool:
    """Return whether there are builds that have not ended."""
    return conn.execute(select(builds.c.id).where(builds.c.state != DONE).limit(1)).first() is not None


def forget(conn: Connection, before: datetime) -> int:
    """Delete some of the builds that ended before then, with their items; their servers stay."""
    return drop(conn, builds, and_(builds.c.state == DONE, builds.c.finished_at < before), FORGOTTEN)
