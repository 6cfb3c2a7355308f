"""Number of hosts of the reservation pool that are allocated, over time."""

from sqlalchemy import Connection, bindparam, text
from sqlalchemy.dialects.postgresql import TSTZRANGE, Range

from climate.domain.hosts.pool_scaling import Level
from climate.domain.period import Period

# Leases that share a host, and consecutive ones on it, count as one period of it. A period that ends at the moment at
# which another begins does not overlap with it.
_LEVELS = text("""
    WITH taken AS (
        SELECT range_agg(a.during * CAST(:period AS tstzrange)) AS times
        FROM allocations a JOIN hosts h ON h.id = a.host
        WHERE a.during && CAST(:period AS tstzrange) AND a.state IN ('held', 'active')
          AND h.removed_at IS NULL AND h.home = 'reservation' AND h.reservable AND h.pool <> 'failed'
        GROUP BY a.host),
    turns AS (
        SELECT lower(part) AS at, 1 AS change FROM taken, unnest(times) AS part
        UNION ALL SELECT upper(part), -1 FROM taken, unnest(times) AS part)
    SELECT at, CAST(sum(sum(change)) OVER (ORDER BY at) AS int) AS hosts FROM turns GROUP BY at ORDER BY at
""").bindparams(bindparam("period", type_=TSTZRANGE))


def levels(conn: Connection, period: Period) -> list[Level]:
    """Return the number of allocated hosts of the pool, from each moment on at which it changes.

    Whole hosts and shared ones, cleaning and maintenance count, since each keeps a host from another lease. Failed and
    closed hosts do not count. One statement.
    """
    given: dict[str, object] = {"period": Range(period.start, period.end)}
    return [Level(row.at, row.hosts) for row in conn.execute(_LEVELS, given)]
