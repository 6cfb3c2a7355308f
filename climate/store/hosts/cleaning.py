"""Cleaning of hosts after a lease: the time kept free for it, and the state of the cleaning hook."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, delete, select, text, update

from climate.domain.hosts.pools import HostPlace
from climate.store.tables.hosts import cleanings
from climate.store.tables.leases import allocations

_KEEP = text("""
    INSERT INTO allocations (host, during, kind, state)
    SELECT c.host, tstzrange(:start, least(c.until, n.start)), 'cleaning', 'active'
    FROM jsonb_to_recordset(CAST(:hosts AS jsonb)) AS c (host bigint, until timestamptz)
    LEFT JOIN LATERAL (
        SELECT min(lower(a.during)) AS start FROM allocations a
        WHERE a.host = c.host AND a.state IN ('held', 'active') AND upper(a.during) > :start) n ON true
    WHERE least(c.until, n.start) > :start
""")


def reserve(conn: Connection, start: datetime, until: Mapping[int, datetime]) -> None:
    """Keep each host free from `start` until its time, or until its next allocation. Their rows must be locked."""
    if until:
        conn.execute(_KEEP, {"start": start, "hosts": _json(until)})


def free(conn: Connection, hosts: Collection[int]) -> None:
    """Release the cleaning time of these hosts."""
    conn.execute(delete(allocations).where(allocations.c.kind == "cleaning", allocations.c.host.in_(sorted(hosts))))


def _json(until: Mapping[int, datetime]) -> str:
    return json.dumps([{"host": host, "until": at.isoformat()} for host, at in until.items()])


RUNNING, DONE, FAILED = "running", "done", "failed"

_BEGIN = text("""
    INSERT INTO cleanings (host, ends_at, state, attempts, next_at, run)
    SELECT n.host, n.ends_at, 'running', 1, :next_at, gen_random_uuid()
    FROM jsonb_to_recordset(CAST(:hosts AS jsonb)) AS n (host bigint, ends_at timestamptz)
    ON CONFLICT (host) DO UPDATE SET ends_at = excluded.ends_at, state = 'running', next_at = excluded.next_at,
        attempts = CASE WHEN cleanings.ends_at = excluded.ends_at THEN cleanings.attempts + 1 ELSE 1 END,
        run = excluded.run, machine = NULL, worker = NULL, pid = NULL, started = NULL
    WHERE CASE cleanings.state WHEN 'running' THEN cleanings.machine IS NULL AND cleanings.next_at <= :now
        WHEN 'failed' THEN cleanings.ends_at <> excluded.ends_at OR cleanings.next_at <= :now
        ELSE cleanings.ends_at <> excluded.ends_at END
    RETURNING host, run
""")
"""A run with a recorded process is settled before another one begins: it may still run, in whatever pool its host is.
"""


@dataclass(frozen=True, slots=True)
class Cleaning:
    """State of the hook for a host in the cleaning that ends at `ends_at`."""

    ends_at: datetime
    state: str
    attempts: int
    error: str
    next_at: datetime
    run: UUID | None = None
    machine: str | None = None
    """Machine of its recorded process; None before it has started."""
    worker: str | None = None
    pid: int | None = None

    @property
    def may_live(self) -> bool:
        """Return whether a process was recorded and has not been seen to end."""
        return self.state == RUNNING and self.machine is not None


def ends_at(place: HostPlace) -> datetime:
    """Identifies one cleaning of a host; moves within the pool keep it."""
    return place.until or place.since


def last_cleanings(conn: Connection, hosts: Collection[int]) -> dict[int, Cleaning]:
    """Return the last cleaning of each host, which may belong to an earlier lease."""
    return {row.host: _cleaning(row) for row in conn.execute(_KNOWN.where(_C.host.in_(sorted(hosts))))}


def begin(conn: Connection, places: Collection[HostPlace], now: datetime, next_at: datetime) -> dict[int, UUID]:
    """Begin another run of the hook where it is neither done nor under way; return the run's id by host."""
    rows = [{"host": place.host, "ends_at": ends_at(place).isoformat()} for place in places]
    given = {"hosts": json.dumps(rows), "now": now, "next_at": next_at}
    return {row.host: row.run for row in conn.execute(_BEGIN, given)} if rows else {}


def record_process(conn: Connection, host: int, run: UUID, process: Mapping[str, object]) -> bool:
    """Record the process of a run; return False when the run is not the host's current one any more."""
    mine = update(cleanings).where(_C.host == host, _C.run == run, _C.state == RUNNING)
    return conn.execute(mine.values(dict(process))).rowcount == 1


def settle(conn: Connection, host: int, run: UUID | None, error: str, next_at: datetime) -> bool:
    """Record the outcome of a run; an empty error: the host is clean.  Return False when the run was settled before."""
    state = FAILED if error else DONE
    mine = update(cleanings).where(_C.host == host, _C.run == run, _C.state == RUNNING)
    return conn.execute(mine.values(state=state, error=error, next_at=next_at)).rowcount == 1


def overdue(conn: Connection, identity: str, now: datetime) -> dict[int, Cleaning]:
    """Return the runs on a machine, in this boot or before, that should have ended, by host."""
    of_it = _C.machine.startswith(f"{identity} ", autoescape=True)
    query = _KNOWN.where(_C.state == RUNNING, of_it, _C.next_at <= now)
    return {row.host: _cleaning(row) for row in conn.execute(query)}


def lost(now: datetime | ColumnElement[datetime]) -> Select[tuple[int]]:
    """Return the query of the hosts of all runs that should have ended, on any machine."""
    return select(_C.host).where(_C.state == RUNNING, _C.next_at <= now)


def alive(conn: Connection, hosts: Collection[int]) -> dict[int, Cleaning]:
    """Return the runs of these hosts whose process was recorded and not seen to end."""
    query = _KNOWN.where(_C.host.in_(sorted(hosts)), _C.state == RUNNING, _C.machine.is_not(None))
    return {row.host: _cleaning(row) for row in conn.execute(query)}


def presume_over(conn: Connection, host: int, now: datetime) -> None:
    """Settle an overdue run of a host as failed: an administrator has seen that it is over."""
    lost = update(cleanings).where(_C.host == host, _C.state == RUNNING, _C.next_at <= now)
    conn.execute(lost.values(state=FAILED, error="an administrator declared it over", next_at=now))


_C = cleanings.c
_KNOWN = select(_C.host, _C.ends_at, _C.state, _C.attempts, _C.error, _C.next_at, _C.run, _C.machine, _C.worker, _C.pid)


def _cleaning(row: Any) -> Cleaning:
    return Cleaning(*row[1:])
