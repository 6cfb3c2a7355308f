"""Network services: their heartbeats, and calls to update their networks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, Text, bindparam, delete, func, insert, select, text
from sqlalchemy.dialects.postgresql import ARRAY

from climate.compute.models.node import Liveness
from climate.compute.store.clock import NOW
from climate.compute.store.columns import in_array
from climate.compute.store.networks.fixed_ips import OVERDUE
from climate.compute.store.networks.networks import UNSERVED
from climate.compute.store.tables.networks import network_calls, network_hosts, networks

_BEAT = f"""
    INSERT INTO compute_network_hosts (host, beat_at) VALUES (:host, {NOW})
    ON CONFLICT (host) DO UPDATE SET beat_at = excluded.beat_at
"""

_BEAT_AND_LOOK = text(f"""
    WITH beat AS ({_BEAT})
    SELECT EXISTS (SELECT FROM compute_networks w WHERE {UNSERVED}) AS unserved,
           EXISTS (SELECT FROM compute_network_calls WHERE host = :host) AS called,
           EXISTS (SELECT FROM compute_addresses a, compute_networks n WHERE {OVERDUE}) AS overdue
""")

_LOADS = text("""
    WITH up AS (SELECT h.host, (SELECT count(*) FROM compute_networks n WHERE n.host = h.host) AS networks
                FROM compute_network_hosts h
                WHERE h.beat_at >= CAST(:now AS timestamptz) - make_interval(secs => :down) OR h.host = :host)
    SELECT coalesce(max(networks) FILTER (WHERE host = :host), 0) AS own, coalesce(min(networks), 0) AS fewest FROM up
""")

_TO_BEAT = text(f"""
    WITH due AS (UPDATE compute_network_hosts SET looked_at = {NOW}
                 WHERE looked_at IS NULL OR looked_at < {NOW} - make_interval(secs => :look)
                 RETURNING host)
    SELECT host, host IN (SELECT host FROM due) AS thorough, beat_at >= {NOW} - make_interval(secs => :down) AS up
    FROM compute_network_hosts ORDER BY host
""")

_CALL = insert(network_calls).from_select(["host"], select(func.unnest(bindparam("hosts", type_=ARRAY(Text)))))

# Hosts that are down are woken for heartbeats only, and keep their messages.
_RING = text("""
    WITH due AS (SELECT c.id FROM compute_network_calls c JOIN compute_network_hosts h ON h.host = c.host
                 WHERE (c.rung_at IS NULL OR c.rung_at < CAST(:now AS timestamptz) - make_interval(secs => :again))
                   AND h.beat_at >= CAST(:now AS timestamptz) - make_interval(secs => :down)
                 ORDER BY c.id LIMIT 1000 FOR NO KEY UPDATE OF c SKIP LOCKED),
    rung AS (UPDATE compute_network_calls c SET rung_at = :now FROM due WHERE c.id = due.id RETURNING c.host)
    SELECT DISTINCT host FROM rung
""")


@dataclass(frozen=True, slots=True)
class HostWork:
    """Kinds of work that a network host has."""

    unserved: bool
    """A network has no live host."""
    called: bool
    """The host has a pending call."""
    overdue: bool
    """An address of its networks has waited too long for its client or its server."""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Longest times in seconds."""

    down: float
    """From a host's heartbeat until it is down."""
    client: float
    """From the deletion of a server until its address is free."""
    grant: float
    """From the grant of an address until its server is recorded."""


def beat(conn: Connection, host: str, now: datetime | None) -> None:
    """Record the heartbeat of a network service; `now` is None for the database's clock."""
    conn.execute(text(_BEAT), {"host": host, "now": now})


def beat_and_look(conn: Connection, host: str, now: datetime | None, waits: TimeLimits) -> HostWork:
    """Record the heartbeat of a network service and return the work of its host, in one statement."""
    given = {"host": host, "now": now, "down": waits.down, "seconds": waits.client, "held": waits.grant}
    return HostWork(*conn.execute(_BEAT_AND_LOOK, given).one())


def listed(conn: Connection, now: datetime, down_seconds: float) -> list[dict[str, object]]:
    """Return the network services: host, beat_at, up, networks."""
    host, beat_at = network_hosts.c.host, network_hosts.c.beat_at
    up = (beat_at >= now - timedelta(seconds=down_seconds)).label("up")
    served = select(func.count()).where(networks.c.host == host).scalar_subquery().label("networks")
    return [dict(row) for row in conn.execute(select(host, beat_at, up, served).order_by(host)).mappings()]


def liveness(conn: Connection, now: datetime, down_seconds: float) -> Liveness:
    """Return the number of network services with a recent heartbeat."""
    beat_at = network_hosts.c.beat_at
    up = func.count().filter(beat_at >= now - timedelta(seconds=down_seconds))
    return Liveness(*conn.execute(select(func.count(), func.max(beat_at), func.min(beat_at), up)).one())


def loads(conn: Connection, host: str, now: datetime, down_seconds: float) -> tuple[int, int]:
    """Return the number of networks of this host, and the smallest number of a live one.

    It needs no lock: an uncommitted claim makes other hosts look emptier, never this one.
    """
    row = conn.execute(_LOADS, {"host": host, "now": now, "down": down_seconds}).one()
    return row.own, row.fewest


def to_beat(conn: Connection, now: datetime | None, look: float, down: float) -> list[tuple[str, bool, bool]]:
    """Return the network services: whether each is due for a complete check, every `look` seconds, and is up."""
    given = {"now": now, "look": look, "down": down}
    return [(row.host, row.thorough, row.up) for row in conn.execute(_TO_BEAT, given)]


def call(conn: Connection, hosts: Collection[str]) -> None:
    """Call these hosts to update their networks."""
    if hosts:
        conn.execute(_CALL, {"hosts": sorted(hosts)})


def calls(conn: Connection, host: str) -> list[int]:
    """Return the pending calls of a host."""
    own = network_calls.c
    return list(conn.scalars(select(own.id).where(own.host == host).order_by(own.id).limit(10_000)))


def answer(conn: Connection, calls: Sequence[int]) -> None:
    """Delete calls that were handled; later ones stay."""
    conn.execute(delete(network_calls).where(in_array(network_calls.c.id, calls)))


def to_ring(conn: Connection, now: datetime, again: float, down: float) -> Sequence[str]:
    """Return live hosts with pending calls, each at most every `again` seconds; live: heard within `down` seconds."""
    return list(conn.execute(_RING, {"now": now, "again": again, "down": down}).scalars())
