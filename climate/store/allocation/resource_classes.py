"""Free amounts of resource classes of hosts, such as CUSTOM_GPU, and the slots of a flavor that fit by them.

A host has a class as its extra capability `resources:<CLASS>`. Usage comes from the flavors of other reservations, and
is counted at every instant of the window, as `shared_capacity_queries` counts sizes.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import BigInteger, Connection, Text, Uuid, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY, TSTZRANGE, Range

from climate.domain.period import Period
from climate.store.schema import Time
from climate.store.tables.leases import IN_FORCE


@dataclass(frozen=True, slots=True)
class Taken:
    """An amount of a resource class of a host, in use for a period."""

    host: int
    name: str
    during: Period
    amount: int


def fitting(
    conn: Connection,
    numbers: Collection[int],
    classes: Mapping[str, int],
    window: Period,
    own: Collection[UUID],
    beside: Sequence[Taken],
) -> dict[int, int]:
    """Return the number of slots of `classes` (amounts per slot) that fit on each host throughout the window.

    Slots of the reservations `own` count as free; `beside` has allocations of this request that are in no table yet.
    """
    known = free(conn, numbers, classes, window, own, beside)
    return {host: max(0, min(left[name] // amount for name, amount in classes.items())) for host, left in known.items()}


def free(
    conn: Connection,
    numbers: Collection[int],
    names: Collection[str],
    window: Period,
    own: Collection[UUID],
    beside: Sequence[Taken],
) -> dict[int, dict[str, int]]:
    """Return the amount of each class that is free on each host throughout the window; negative if it has too few."""
    given = {
        "names": list(names),
        "numbers": sorted(numbers),
        "start": window.start,
        "during": Range(window.start, window.end),
        "own": list(own),
        "beside": json.dumps([_row(one) for one in beside], default=str),
    }
    result: dict[int, dict[str, int]] = {}
    for host, name, left in conn.execute(_FREE, given):
        result.setdefault(host, {})[name] = left
    return result


def _row(one: Taken) -> dict[str, object]:
    ends = one.during
    return {"host": one.host, "name": one.name, "begins": ends.start, "ends": ends.end, "amount": one.amount}


_FREE = text(f"""
    WITH asked AS (SELECT * FROM unnest(:names) AS a (name)),
    uses AS (
        SELECT a.host, c.name, lower(a.during) AS begins, upper(a.during) AS ends, a.slots * CASE
            WHEN s.extra_specs ->> ('resources:' || c.name) ~ '^[0-9]{{1,9}}$'
                THEN (s.extra_specs ->> ('resources:' || c.name))::bigint
            ELSE 0 END AS amount
        FROM allocations a JOIN reservations r ON r.id = a.reservation_id
        CROSS JOIN LATERAL (SELECT CASE WHEN r.resource_type = 'flavor:instance'
            THEN (r.spec ->> 'resource_properties')::jsonb -> 'extra_specs' END AS extra_specs) s
        CROSS JOIN asked c
        WHERE a.{IN_FORCE} AND a.during && :during AND a.host = ANY (:numbers) AND a.slots > 0
            AND a.reservation_id <> ALL (:own)
        UNION ALL
        SELECT b.host, b.name, b.begins, b.ends, b.amount FROM jsonb_to_recordset(CAST(:beside AS jsonb)) AS b
            (host bigint, name text, begins timestamptz, ends timestamptz, amount bigint)
        WHERE tstzrange(b.begins, b.ends) && :during),
    sums AS (
        SELECT u.host, u.name, sum(u.amount * p.sign) OVER w AS amount
        FROM uses u CROSS JOIN LATERAL (VALUES (greatest(u.begins, :start), 1), (u.ends, -1)) AS p (at, sign)
        WINDOW w AS (PARTITION BY u.host, u.name ORDER BY p.at)),
    peaks AS (SELECT host, name, max(amount) AS amount FROM sums GROUP BY host, name)
    SELECT h.id AS host, c.name, (CASE
            WHEN h.extra ->> ('resources:' || c.name) ~ '^[0-9]{{1,9}}$'
                THEN (h.extra ->> ('resources:' || c.name))::bigint
            ELSE 0 END - coalesce(p.amount, 0))::bigint AS amount
    FROM hosts h CROSS JOIN asked c LEFT JOIN peaks p ON p.host = h.id AND p.name = c.name
    WHERE h.id = ANY (:numbers)
""").bindparams(  # noqa: S608
    bindparam("names", type_=ARRAY(Text)),
    bindparam("numbers", type_=ARRAY(BigInteger)),
    bindparam("own", type_=ARRAY(Uuid)),
    bindparam("during", type_=TSTZRANGE),
    bindparam("start", type_=Time),
)
