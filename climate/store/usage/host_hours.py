"""Rows of host hours, computed from the journal in portions, and the samples of running servers.

The journal is read by position. A transaction may commit a lower position after a higher one. The stored position
therefore stays behind the facts of the last minutes, and these are read again. A lease that is read again gets the same
rows.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import get_args
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Connection,
    Text,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, Range

from climate.domain.facts import Fact
from climate.domain.host_hours import HostUse
from climate.domain.lease import Lease
from climate.store.schema import Time
from climate.store.tables.hosts import hosts
from climate.store.tables.leases import journal
from climate.store.tables.usage import lease_usage, usage_progress

PORTION = 2000
"""Facts that are read together."""

SETTLED = timedelta(minutes=5)
"""Age of a fact from which on no transaction commits an earlier position: longer than any transaction lasts."""

KINDS = [kind.__name__ for kind in get_args(Fact)]

_NOW = func.coalesce(bindparam("now", type_=Time), func.statement_timestamp())
_NEW_FACTS = exists().where(journal.c.position > usage_progress.c.position)
_IN_USE = exists().where(lease_usage.c.during.contains(_NOW))
DUE = exists().where(usage_progress.c.next_at <= _NOW, or_(_NEW_FACTS, _IN_USE))
"""Condition for a round: new facts, or leases whose hosts are sampled. `now` is None for the database's clock."""


@dataclass(frozen=True, slots=True)
class Progress:
    """State of the computation."""

    position: int
    """Position of the journal up to which every fact is computed."""
    sampled_at: datetime | None
    """Time of the last sample of running servers."""
    measured_since: datetime | None
    """Time of the first sample."""
    watched_since: datetime | None
    """Time since which no sample is missing."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Leases with facts after a position."""

    leases: Sequence[UUID]
    last: int
    """Position of the last fact that was read."""
    settled: int
    """Position up to which all facts are settled."""
    is_full: bool
    """True if more facts may follow."""


_PROGRESS = select(
    usage_progress.c.position,
    usage_progress.c.sampled_at,
    usage_progress.c.measured_since,
    usage_progress.c.watched_since,
)


def progress(conn: Connection) -> Progress:
    """Return the state of the computation."""
    return Progress(*conn.execute(_PROGRESS).one())


def lock_state(conn: Connection) -> Progress | None:
    """Return the state for this transaction alone, or None while another process computes."""
    row = conn.execute(_PROGRESS.with_for_update(skip_locked=True)).first()
    return Progress(*row) if row else None


def proceed(conn: Connection, position: int) -> None:
    """Store the position up to which every fact is computed; 0 computes everything anew."""
    conn.execute(update(usage_progress).values(position=position))


def set_next_round(conn: Connection, until: datetime) -> None:
    """Store the time of the next round."""
    conn.execute(update(usage_progress).values(next_at=until))


def after(conn: Connection, position: int, now: datetime) -> Portion:
    """Return the leases of the next facts after a position."""
    leases, last, unsettled, count = conn.execute(
        _AFTER, {"position": position, "kinds": KINDS, "settled": now - SETTLED, "limit": PORTION}
    ).one()
    settled = last if unsettled is None else unsettled - 1
    return Portion(leases or (), last or position, max(position, settled or position), count == PORTION)


def replace(conn: Connection, computed: Mapping[UUID, tuple[Lease, Sequence[HostUse]]]) -> None:
    """Write the stretches of leases in place of their former ones."""
    if computed:
        conn.execute(delete(lease_usage).where(lease_usage.c.lease_id.in_(list(computed))))
    rows = [
        {
            "lease_id": lease_id,
            "reservation_id": stretch.reservation_id,
            "project_id": lease.project_id,
            "user_id": lease.user_id,
            "host": stretch.host,
            "slots": stretch.slots,
            "during": Range(stretch.during.start, stretch.during.end),
        }
        for lease_id, (lease, stretches) in computed.items()
        for stretch in stretches
    ]
    if rows:
        conn.execute(insert(lease_usage), rows)


def in_use(conn: Connection, now: datetime) -> dict[str, int]:
    """Return the numbers of the hosts that leases have now, by name."""
    query = (
        select(hosts.c.hypervisor_hostname, hosts.c.id)
        .distinct()
        .join(lease_usage, lease_usage.c.host == hosts.c.id)
        .where(lease_usage.c.during.contains(literal(now, Time)), hosts.c.removed_at.is_(None))
    )
    return {row.hypervisor_hostname: row.id for row in conn.execute(query)}


def sample(conn: Connection, busy: Collection[int], since: datetime, now: datetime, *, missed: bool = False) -> None:
    """Record that servers ran on hosts from `since` to `now`; a sample that follows the former one extends its row.

    `missed`: the time before `since` was not sampled.
    """
    conn.execute(_SAMPLE, {"hosts": sorted(busy), "since": since, "now": now})
    measured = func.coalesce(usage_progress.c.measured_since, literal(now, Time))
    watched = literal(now, Time) if missed else func.coalesce(usage_progress.c.watched_since, literal(now, Time))
    conn.execute(update(usage_progress).values(sampled_at=now, measured_since=measured, watched_since=watched))


_AFTER = text("""
    WITH facts AS (
        SELECT stream, position, kind, recorded_at FROM journal
        WHERE position > :position ORDER BY position LIMIT :limit)
    SELECT array_agg(DISTINCT stream) FILTER (WHERE kind = ANY (:kinds)), max(position),
        min(position) FILTER (WHERE recorded_at >= :settled), count(*)
    FROM facts
""").bindparams(bindparam("kinds", type_=ARRAY(Text)), bindparam("settled", type_=Time))

_SAMPLE = text("""
    WITH busy AS (SELECT unnest(:hosts) AS host),
    extended AS (
        UPDATE host_activity a SET ends_at = greatest(a.ends_at, :now) FROM busy b
        WHERE a.host = b.host AND a.ends_at >= :since AND a.starts_at <= :since RETURNING a.host)
    INSERT INTO host_activity (host, starts_at, ends_at)
    SELECT host, :since, :now FROM busy WHERE host NOT IN (SELECT host FROM extended)
    ON CONFLICT DO NOTHING
""").bindparams(
    bindparam("hosts", type_=ARRAY(BigInteger)), bindparam("since", type_=Time), bindparam("now", type_=Time)
)
"""One statement for any number of hosts."""
