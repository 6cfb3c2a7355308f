"""Metrics of the engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection, Uuid, cast, func, select

from climate.store import heartbeats
from climate.store.leases import preemptions, set_aside, waiting_list
from climate.store.tables.leases import events, has, journal

LOOKED_AT = 1000
"""Number of facts that are searched for the latest claims, so that the cost of a scrape is bounded."""

COUNTED = 100_000
"""Maximum of events that are counted, so that the cost of a scrape is bounded."""

RECENT = timedelta(minutes=5)
RETRIED_WITHIN = timedelta(minutes=10)
"""Maximum wait of an event that is retried."""

ALIVE = timedelta(seconds=45)
"""Age of a heartbeat up to which a worker counts as reading its queues."""

QUANTILES = (0.5, 0.99, 1.0)


@dataclass(frozen=True, slots=True)
class Figures:
    """Metrics of events at one moment. Times in seconds."""

    due: int
    """Due events that are not claimed, counted up to `COUNTED`."""
    oldest_due: float
    """Time for which the oldest of them has been due; 0 if there is none."""
    in_progress: int
    failed: int
    """Events in ERROR, waiting for an operator."""
    retrying: int
    """Events that were tried at least once, and are to be retried or are running again."""
    claimed_ago: float | None
    """Time since a poller has claimed the due events, or found none; None if none ever has."""
    lateness: dict[float, float]
    """Lateness of the events claimed in the last minutes, by quantile; empty if there were none."""
    queues: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    """Workers with a recent heartbeat, and seconds since the last one, by queue."""
    set_aside: int = 0
    """Leases that no poller reads until they are repaired."""
    preemptible: tuple[int, int] = (0, 0)
    """Hosts that preemptible leases hold, and those that are to be taken from them."""
    waiting: int = 0
    """Leases in the waiting list."""
    oldest_waiting: float = 0.0
    """Time for which the oldest of them has waited."""


def read(conn: Connection, now: datetime) -> Figures:
    """Return all metrics; each is read from an index of its own."""
    undone = has(events.c.status, "UNDONE") & (events.c.run_at <= now)
    first = select(events.c.due_at).where(undone).order_by(events.c.run_at, events.c.id).limit(COUNTED).subquery()
    due, oldest = conn.execute(select(func.count(), func.min(first.c.due_at))).one()
    running = select(func.count(), func.count().filter(events.c.attempts > 1))
    in_progress, again = conn.execute(running.where(has(events.c.status, "IN_PROGRESS"))).one()
    soon = select(events.c.attempts).where(has(events.c.status, "UNDONE"), events.c.run_at <= now + RETRIED_WITHIN)
    latest = soon.order_by(events.c.run_at.desc(), events.c.id.desc()).limit(COUNTED).subquery()
    waiting = conn.execute(select(func.count()).where(latest.c.attempts > 0)).scalar_one()
    failed = conn.execute(select(func.count()).where(has(events.c.status, "ERROR"))).scalar_one()
    oldest_due = max(0.0, (now - oldest).total_seconds()) if oldest else 0.0
    claimed = heartbeats.latest(conn, "poller")
    waiting_leases, since = waiting_list.length(conn)
    ago = max(0.0, (now - claimed).total_seconds()) if claimed else None
    return Figures(
        due,
        oldest_due,
        in_progress,
        failed,
        again + waiting,
        ago,
        _lateness(conn, now),
        _queues(conn, now),
        set_aside.count(conn),
        preemptions.counts(conn, now),
        waiting_leases,
        max(0.0, (now - since).total_seconds()) if since else 0.0,
    )


def _queues(conn: Connection, now: datetime) -> dict[str, tuple[int, float]]:
    result = heartbeats.by_queue(conn, now - ALIVE)
    return {name: (beat.alive, max(0.0, (now - beat.at).total_seconds())) for name, beat in result.items()}


def _lateness(conn: Connection, now: datetime) -> dict[float, float]:
    last = select(journal).order_by(journal.c.position.desc()).limit(LOOKED_AT).subquery()
    event_id = cast(last.c.body["event_id"].astext, Uuid)
    ids = select(event_id.label("id")).where(last.c.kind == "EventClaimed").distinct().subquery()
    late = func.greatest(0, func.extract("epoch", events.c.first_claimed_at - events.c.due_at))
    marks = [func.percentile_disc(quantile).within_group(late) for quantile in QUANTILES]
    recent = events.c.first_claimed_at > now - RECENT
    claimed = events.c.id == func.any(func.array(select(ids.c.id).scalar_subquery()))
    row = conn.execute(select(*marks).where(claimed, recent)).one()
    return {quantile: float(value) for quantile, value in zip(QUANTILES, row, strict=True) if value is not None}
