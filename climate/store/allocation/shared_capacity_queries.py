"""Statements that count the free capacity of hosts, built once per requirement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Boolean,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    Uuid,
    and_,
    bindparam,
    exists,
    false,
    func,
    or_,
    select,
    text,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, TSTZRANGE

from climate.domain.hosts.pools import Pool
from climate.domain.hosts.requirements import Requirement
from climate.store.allocation.host_queries import far_from_up, suits
from climate.store.schema import Time
from climate.store.tables.hosts import hosts
from climate.store.tables.leases import IN_FORCE, allocations, has, in_force

SPARE = 2
"""Rows read beyond those with enough capacity, because others may book some meanwhile."""

PARTS = ("vcpus", "memory_mb", "disk_gb")

AMONG = "AND a.host = ANY (:numbers)"
TOGETHER = "AND (a.reservation_id IS NULL OR a.reservation_id <> ALL (:together))"
WITHOUT_PREEMPTIBLE = "AND (a.reservation_id IS NULL OR a.reservation_id <> ALL (:giving_way))"
"""Conditions on the allocations that count."""

_PEAKS = """
    SELECT s.host, max(s.vcpus)::bigint AS vcpus, max(s.memory_mb)::bigint AS memory_mb,
        max(s.disk_gb)::bigint AS disk_gb, bool_or(s.lent) AS lent
    FROM (
        SELECT u.host, u.lent, sum(u.vcpus * p.sign) OVER w AS vcpus, sum(u.memory_mb * p.sign) OVER w AS memory_mb,
            sum(u.disk_gb * p.sign) OVER w AS disk_gb
        FROM (
            SELECT a.host, a.slots = 0 AS lent, lower(a.during) AS begins, upper(a.during) AS ends,
                a.vcpus, a.memory_mb, a.disk_gb
            FROM allocations a
            WHERE a.{in_force} AND a.during && :during AND (a.slots = 0 OR a.reservation_id <> ALL (:own)) {only}
            UNION ALL
            SELECT b.host, false, b.begins, b.ends, b.vcpus, b.memory_mb, b.disk_gb
            FROM jsonb_to_recordset(CAST(:beside AS jsonb)) AS b
                (host bigint, begins timestamptz, ends timestamptz, vcpus bigint, memory_mb bigint, disk_gb bigint)) u
        CROSS JOIN LATERAL (VALUES (greatest(u.begins, :start), 1), (u.ends, -1)) AS p (at, sign)
        WINDOW w AS (PARTITION BY u.host ORDER BY p.at)) s
    GROUP BY s.host
"""
"""Peak usage of each host: running sums over begins and ends, with rows of one moment together, so that an end makes
room for a begin. `lent`: at some instant a lease has the whole host.
"""


@dataclass(frozen=True, slots=True)
class Search:
    """Statements over the hosts that match one requirement."""

    best: Select[object]
    """(host, free slots): the fullest hosts first, as many as suffice together, and SPARE more.

    For a start soon, hosts that are up come first.
    """
    ranked: Select[object]
    """All hosts with capacity, in that order."""
    quick: Select[object]
    """Same as `best`, with locks; skips rows that others hold."""
    again: Select[object]
    """(host, free slots) of those among `numbers` that match and have capacity."""
    rooms: Select[Any]
    """Same for all hosts."""
    capacities: Select[Any]
    """(host, sizes) of all matching hosts."""
    candidates: Select[int, *tuple[int, ...]]
    """(host, free sizes) of all hosts with capacity, in that order, if the reservations `together` had no hosts."""
    uses: Select[Any]
    """(host, begin, end, slots, sizes) of allocations until `until`, `limit` rows, earliest first."""


@lru_cache(maxsize=500)
def search(requirement: Requirement, takes_preemptible: bool = False) -> Search:
    """Return the statements for a requirement.

    With `takes_preemptible`, whole hosts of the reservations `giving_way` have capacity too, after all others.
    """
    suitable, also = suits(requirement), (WITHOUT_PREEMPTIBLE,) if takes_preemptible else ()
    everywhere = _rooms(suitable, *also)
    best, ranked = _best(everywhere), select(everywhere.c.id, everywhere.c.free).order_by(*_order(everywhere))
    free = _rooms(and_(suitable, hosts.c.id == func.any(_numbers("numbers"))), AMONG, *also)
    return Search(
        best=best,
        ranked=ranked,
        quick=best.with_for_update(of=hosts, key_share=True, skip_locked=True),
        again=select(free.c.id, free.c.free),
        rooms=select(everywhere.c.id, everywhere.c.free),
        capacities=select(hosts.c.id, hosts.c.vcpus, hosts.c.memory_mb, hosts.c.local_gb).where(suitable),
        candidates=_candidates(_rooms(suitable, TOGETHER, *also)),
        uses=_uses(suitable),
    )


def _numbers(name: str) -> ColumnElement[object]:
    return bindparam(name, type_=ARRAY(BigInteger))


def _number(name: str) -> ColumnElement[int]:
    return bindparam(name, type_=BigInteger)


_OF_CONDITIONS: Mapping[str, BindParameter[object]] = {
    AMONG: bindparam("numbers", type_=ARRAY(BigInteger)),
    TOGETHER: bindparam("together", type_=ARRAY(Uuid)),
    WITHOUT_PREEMPTIBLE: bindparam("giving_way", type_=ARRAY(Uuid)),
}
"""Parameter of each condition."""


def _peaks(only: Sequence[str]) -> FromClause:
    wanted: list[BindParameter[object]] = [
        bindparam("during", type_=TSTZRANGE),
        bindparam("start", type_=Time),
        bindparam("own", type_=ARRAY(Uuid)),
        *(_OF_CONDITIONS[one] for one in only),
    ]
    said = text(_PEAKS.format(in_force=IN_FORCE, only=" ".join(only))).bindparams(*wanted)
    return said.columns(host=BigInteger, lent=Boolean, **dict.fromkeys(PARTS, BigInteger)).subquery("peaks")


def _taken(only: Sequence[str]) -> ColumnElement[bool]:
    """Return whether a preemptible lease loses the host."""
    if WITHOUT_PREEMPTIBLE not in only:
        return false()
    a = allocations
    in_window = (in_force(a), a.c.during.overlaps(bindparam("during", type_=TSTZRANGE)))
    theirs = a.c.reservation_id == func.any(_OF_CONDITIONS[WITHOUT_PREEMPTIBLE])
    return exists().where(a.c.host == hosts.c.id, *in_window, theirs)


def _rooms(suitable: ColumnElement[bool], *only: str) -> FromClause:
    """Return (host, free slots, sizes, preferred, recycles, distance from up, shared, taken, worth) of usable hosts."""
    peaks = _peaks(only)
    whole = {"vcpus": hosts.c.vcpus, "memory_mb": hosts.c.memory_mb, "disk_gb": hosts.c.local_gb}
    left = {part: whole[part] - func.coalesce(peaks.c[part], 0) for part in PARTS}
    fits = [left[part] / func.nullif(_number(part), 0) for part in PARTS]
    free: ColumnElement[int] = func.least(_number("amount"), *(func.floor(fit) for fit in fits)).cast(BigInteger)
    counted = (
        select(
            hosts.c.id,
            free.label("free"),
            (hosts.c.id == func.any(_numbers("keep"))).label("kept"),
            has(hosts.c.pool, Pool.RECYCLING).label("recycles"),
            far_from_up().label("off"),
            peaks.c.host.is_not(None).label("shared"),
            _taken(only).label("taken"),
            *(left[part].label(f"free_{part}") for part in PARTS),
        )
        .select_from(hosts.outerjoin(peaks, peaks.c.host == hosts.c.id))
        .where(suitable, ~func.coalesce(peaks.c.lent, false()))
        .subquery("counted")
    )
    worth = func.least(counted.c.free, _number("most")).label("worth")
    return select(counted, worth).where(counted.c.free >= _number("least")).subquery("rooms")


def _order(rooms: FromClause) -> tuple[ColumnElement[object], ...]:
    """Return the order of the hosts, best first."""
    return (
        rooms.c.kept.desc(),
        rooms.c.taken,
        rooms.c.recycles,
        rooms.c.off,
        rooms.c.shared.desc(),
        rooms.c.free,
        rooms.c.id,
    )


def _candidates(rooms: FromClause) -> Select[int, *tuple[int, ...]]:
    return select(rooms.c.id, *(rooms.c[f"free_{part}"] for part in PARTS)).order_by(*_order(rooms))


def _best(rooms: FromClause) -> Select[object]:
    order = _order(rooms)
    before = func.sum(rooms.c.worth).over(order_by=order, rows=(None, -1 - SPARE))
    ranked = select(
        rooms.c.id, rooms.c.free, func.row_number().over(order_by=order).label("place"), before.label("before")
    ).subquery("ranked")
    enough = func.coalesce(ranked.c.before, 0) < _number("amount")
    return (
        select(ranked.c.id, ranked.c.free)
        .join(hosts, hosts.c.id == ranked.c.id)
        .where(or_(enough, ranked.c.id == func.any(_numbers("must"))))
        .order_by(ranked.c.place)
    )


def _uses(suitable: ColumnElement[bool]) -> Select[object]:
    """Return the uses, read host by host as in `host_queries._busy`."""
    a, limit = allocations, bindparam("limit", type_=Integer)
    begins, ends = func.lower(a.c.during).label("begins"), func.upper(a.c.during).label("ends")
    theirs = (
        select(begins, ends, a.c.slots, *(a.c[part] for part in PARTS))
        .where(a.c.host == hosts.c.id, in_force(a), begins < bindparam("until", type_=Time))
        .where(ends > bindparam("start", type_=Time))
        .where(or_(a.c.slots == 0, a.c.reservation_id != func.all(bindparam("own", type_=ARRAY(Uuid)))))
        .where(~a.c.preemptible)
        .order_by(begins)
        .limit(limit)
        .lateral("theirs")
    )
    joined = select(hosts.c.id.label("host"), *theirs.c).join(theirs, true())
    return joined.where(suitable).order_by(theirs.c.begins).limit(limit)
