"""Hosts that are cleaned after a lease: the time that is kept free for it, and how the hook gets on."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, select, text, update

from climate.domain.pools import HostPlace
from climate.store.care_tables import cleanings
from climate.store.tables import allocations

_KEEP = text("""
    INSERT INTO allocations (host, during, kind, state)
    SELECT c.host, tstzrange(:start, least(c.until, n.start)), 'cleaning', 'active'
    FROM jsonb_to_recordset(CAST(:hosts AS jsonb)) AS c (host bigint, until timestamptz)
    LEFT JOIN LATERAL (
        SELECT min(lower(a.during)) AS start FROM allocations a
        WHERE a.host = c.host AND a.state IN ('held', 'active') AND upper(a.during) > :start) n ON true
    WHERE least(c.until, n.start) > :start
""")


def keep(conn: Connection, start: datetime, until: Mapping[int, datetime]) -> None:
    """Keep each host free from `start` until its time, or until it is promised.  Their rows must be locked."""
    if until:
        conn.execute(_KEEP, {"start": start, "hosts": _json(until)})


def free(conn: Connection, hosts: Collection[int]) -> None:
    """These hosts are cleaned no longer."""
    conn.execute(delete(allocations).where(allocations.c.kind == "cleaning", allocations.c.host.in_(sorted(hosts))))


def _json(until: Mapping[int, datetime]) -> str:
    return json.dumps([{"host": host, "until": at.isoformat()} for host, at in until.items()])


RUNNING, DONE, FAILED = "running", "done", "failed"

_BEGIN = text("""
    INSERT INTO cleanings (host, ends_at, state, attempts, next_at)
    SELECT n.host, n.ends_at, 'running', 1, :next_at
    FROM jsonb_to_recordset(CAST(:hosts AS jsonb)) AS n (host bigint, ends_at timestamptz)
    ON CONFLICT (host) DO UPDATE SET ends_at = excluded.ends_at, state = 'running', next_at = excluded.next_at,
        attempts = CASE WHEN cleanings.ends_at = excluded.ends_at THEN cleanings.attempts + 1 ELSE 1 END
    WHERE cleanings.ends_at <> excluded.ends_at OR (cleanings.state <> 'done' AND cleanings.next_at <= :now)
    RETURNING host
""")


@dataclass(frozen=True, slots=True)
class Cleaning:
    """How the hook gets on with a host in the cleaning whose time is over at `ends_at`."""

    ends_at: datetime
    state: str
    attempts: int
    error: str
    next_at: datetime


def ends_at(place: HostPlace) -> datetime:
    """What one cleaning of a host is told from another by: moves within the pool leave it."""
    return place.until or place.since


def known(conn: Connection, hosts: Collection[int]) -> dict[int, Cleaning]:
    """The last cleaning of each host, which may be that after an earlier lease."""
    query = select(cleanings).where(cleanings.c.host.in_(sorted(hosts)))
    return {row.host: Cleaning(*row[1:]) for row in conn.execute(query)}


def begin(conn: Connection, places: Collection[HostPlace], now: datetime, next_at: datetime) -> frozenset[int]:
    """Another run of the hook for these hosts; those where it is neither done nor under way, which it is until then."""
    rows = [{"host": place.host, "ends_at": ends_at(place).isoformat()} for place in places]
    given = {"hosts": json.dumps(rows), "now": now, "next_at": next_at}
    return frozenset(conn.scalars(_BEGIN, given)) if rows else frozenset()


def settle(conn: Connection, place: HostPlace, error: str, next_at: datetime) -> None:
    """How a run of the hook went; an error is empty where it did what it should."""
    c = cleanings.c
    state = FAILED if error else DONE
    mine = update(cleanings).where(c.host == place.host, c.ends_at == ends_at(place), c.state == RUNNING)
    conn.execute(mine.values(state=state, error=error, next_at=next_at))
