"""Statements of the search for free hosts, built once per requirement and run with parameters."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Integer,
    Interval,
    ScalarSelect,
    Select,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    text,
    true,
    union_all,
)
from sqlalchemy.dialects.postgresql import ARRAY, TSTZRANGE, aggregate_order_by

from climate.database.sql_arrays import in_parameter
from climate.domain.hosts.pools import BOOKABLE, Pool
from climate.domain.hosts.requirements import Requirement
from climate.domain.period import Period
from climate.store.allocation.requirements_sql import condition
from climate.store.hosts.hosts import AUTHORIZED_PROJECTS
from climate.store.schema import Time
from climate.store.tables.hosts import host_power, hosts
from climate.store.tables.leases import GIVES_WAY, allocations, has, in_force, reservations

# Constants are part of the statements: each parameter takes time for each run.
FAR = literal_column("'3650 days'::interval", Interval)
_AUTHORIZED = literal_column(f"'{AUTHORIZED_PROJECTS}'", Text)
_ONE = literal_column("1", Integer)

FARTHEST = 3
"""Highest rank of `far_from_up`."""


class Asked(Protocol):
    """Parameters of the statements."""

    @property
    def window(self) -> Period: ...
    @property
    def own(self) -> frozenset[UUID]: ...
    @property
    def keep(self) -> tuple[int, ...]: ...
    @property
    def must(self) -> tuple[int, ...]: ...
    @property
    def without(self) -> tuple[int, ...]: ...
    @property
    def soon(self) -> bool: ...
    @property
    def project_id(self) -> str: ...
    @property
    def at_random(self) -> bool: ...
    @property
    def giving_way(self) -> frozenset[UUID]: ...
    @property
    def gives_way(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Search:
    """Statements over the hosts that match one requirement. Run them with `given` and their own parameters."""

    best: Select[int]
    """Free hosts, best first, `limit` of them out of a `sample`."""
    quick: Select[int]
    """Same as `best`, with locks; skips rows that others hold."""
    sampled: Select[int]
    """Same as `quick`, without preferred hosts and for later starts; the sample follows a random host.

    Reads a few hosts, where `quick` reads all. Recycling hosts are not among them.
    """
    sampled_with_recheck: Select[int, bool]
    """Same for a few hosts, each with whether it is still free once its row is locked; it still matches."""
    still_free: Select[int]
    """Those among `numbers` that match and are free, in the order given."""
    few_still_free: Select[int]
    """Same, host by host: for fewer than some dozen."""
    candidates: Select[int, int]
    """All free hosts, best first, with the level of their drawbacks: 0 for preferred ones."""
    counted: Select[int, int, int | None, Any, bool]
    """Number of matching hosts, number of free ones, the first free one that is not among `numbers`, `busy`, and
    whether a preemptible lease has a host in the window.

    `busy` is null unless fewer than `explained_below` are free: a list of [host, start, end] of the allocations
    between the window's start and `until`, `limit` of them, earliest first. Preemptible ones count only for a request
    that `gives_way` too.
    """


def parameters(asked: Asked, **more: object) -> Mapping[str, object]:
    """Return the common parameters of the statements, and `more`; the window as text, which is quicker than a Range."""
    window = asked.window
    return {
        "start": window.start,
        "end": window.end,
        "during": f'["{window.start}","{window.end}")',
        "own": list(asked.own | asked.giving_way),
        "giving_way": list(asked.giving_way),
        "gives_way": asked.gives_way,
        "keep": list(asked.keep),
        "must": list(asked.must),
        "without": list(asked.without),
        "soon": asked.soon,
        "project_id": asked.project_id,
        "at_random": asked.at_random,
        **more,
    }


@lru_cache(maxsize=500)
def search(requirement: Requirement, has_own: bool, weighs_losses: bool = False) -> Search:
    """Return the statements for a requirement; with `has_own`, allocations of the reservations `own` count as free.

    With `weighs_losses`, hosts come first of which the reservations `giving_way` lose nothing, and then little.
    """
    suitable, best = suits(requirement), _best(requirement, has_own, weighs_losses)
    number = func.unnest(_numbers("numbers")).table_valued("number", with_ordinality="place").render_derived()
    among = select(number.c.number).join(hosts, hosts.c.id == number.c.number).order_by(number.c.place)
    one = _one_host(allocations.c.host).op("&&")(_one_host(number.c.number))
    usable = and_(_matches(requirement), _not_excluded())
    anywhere = _anywhere(usable)
    return Search(
        best=best,
        quick=best.with_for_update(of=hosts, key_share=True, skip_locked=True),
        sampled=anywhere.with_for_update(of=hosts, key_share=True, skip_locked=True),
        sampled_with_recheck=_looked_at_again(anywhere.where(usable)),
        still_free=among.where(suitable, _free(allocations.c.host == number.c.number, has_own)),
        few_still_free=among.where(suitable, _free(one, has_own)),
        candidates=_candidates(and_(suitable, _free(_on_host, has_own)), weighs_losses),
        counted=_counted(suitable, _free(_on_host, has_own)),
    )


def _counted(suitable: ColumnElement[bool], free: ColumnElement[bool]) -> Select[int, int, int | None, object, bool]:
    """Return the counts; the OFFSET keeps the check for free hosts in one place of the plan, once per host."""
    looked = select(hosts.c.id, free.label("free")).where(suitable).offset(literal_column("0")).subquery("looked")
    others = and_(looked.c.free, looked.c.id != func.all(_numbers("numbers")))
    matching, free_ones = func.count().label("matching"), func.count().filter(looked.c.free).label("free")
    rival = func.min(looked.c.id).filter(others).label("rival")
    counts = select(matching, free_ones, rival).select_from(looked).subquery("counts")
    short = counts.c.free < bindparam("explained_below", type_=BigInteger)
    busy = case((short, _busy(suitable)))
    preemptible = exists().where(text(GIVES_WAY), allocations.c.during.overlaps(bindparam("during", type_=TSTZRANGE)))
    return select(counts.c.matching, counts.c.free, counts.c.rival, busy, preemptible)


def _numbers(name: str) -> ColumnElement[object]:
    return bindparam(name, type_=ARRAY(BigInteger))


def suits(requirement: Requirement) -> ColumnElement[bool]:
    """Return the condition for hosts that can be allocated and match, or are in `must`, without the excluded ones."""
    return and_(or_(_matches(requirement), hosts.c.id == func.any(_numbers("must"))), _not_excluded())


def _matches(requirement: Requirement) -> ColumnElement[bool]:
    there = and_(
        open_to_project(), hosts.c.reservable, hosts.c.removed_at.is_(None), has(hosts.c.pool, *sorted(BOOKABLE))
    )
    return and_(there, condition(requirement))


def _not_excluded() -> ColumnElement[bool]:
    return hosts.c.id != func.all(_numbers("without"))


def open_to_project() -> ColumnElement[bool]:
    """Return the condition that a host names no authorized projects, or `project_id` is among them."""
    named = func.regexp_split_to_array(hosts.c.extra[_AUTHORIZED].astext, literal_column(r"'[\s,]+'", Text))
    return or_(~hosts.c.extra.has_key(_AUTHORIZED), bindparam("project_id", type_=Text) == func.any(named))


def far_from_up() -> ColumnElement[int]:
    """Return the rank for starts that are `soon`: 0 for hosts that are on, higher the longer a host needs to be up.

    A host that is shutting down comes last, because it can only be started after it is off.
    """
    asked = select(host_power.c.host)
    coming = hosts.c.id.in_(asked.where(has(host_power.c.wanted, "on")))
    going = hosts.c.id.in_(asked.where(has(host_power.c.wanted, "off")))
    unimportant = ~bindparam("soon", type_=Boolean)
    return case((unimportant, 0), (hosts.c.switched_on, case((going, 3), else_=0)), (coming, 1), else_=2)


_on_host = allocations.c.host == hosts.c.id


def _one_host(number: ColumnElement[int]) -> ColumnElement[object]:
    """Return the number as the index of the exclusion constraint has it, exactly: it finds one host in a window."""
    return func.int8range(number, number, literal_column("'[]'"))


def _in_window() -> ColumnElement[bool]:
    return and_(allocations.c.during.overlaps(bindparam("during", type_=TSTZRANGE)), in_force(allocations))


def _free(of_host: ColumnElement[bool], has_own: bool) -> ColumnElement[bool]:
    """Return the condition that no allocation `of_host` overlaps the window."""
    a = allocations
    taken = exists().where(of_host, _in_window())
    others = or_(a.c.reservation_id.is_(None), a.c.reservation_id != func.all(bindparam("own", type_=ARRAY(Uuid))))
    return ~(taken.where(others) if has_own else taken)


def _loss() -> ColumnElement[int]:
    """Return the seconds of hosts that the reservations `giving_way` lose if the host is taken; 0 if it is free.

    A reservation that would have fewer hosts than its minimum loses all of them.
    """
    a, other, r = allocations, allocations.alias("other"), reservations
    begins = func.greatest(func.lower(a.c.during), bindparam("start", type_=Time))
    seconds = func.extract("epoch", func.upper(a.c.during) - begins)
    held = select(func.count()).where(other.c.reservation_id == r.c.id, in_force(other)).scalar_subquery()
    hosts_lost = case((held > r.c.spec["min"].as_integer(), 1), else_=held)
    lost = select(func.sum(seconds * hosts_lost)).join(r, r.c.id == a.c.reservation_id)
    of_host = lost.where(_on_host, _in_window(), in_parameter(r.c.id, "giving_way"))
    return func.coalesce(of_host.correlate(hosts).scalar_subquery(), 0)


def _best(requirement: Requirement, has_own: bool, weighs_losses: bool) -> Select[int]:
    """Order by preferred hosts, then by tightest fit in a random sample, so that long free periods stay whole.

    A recycling host comes last: allocating it ends the servers that were to continue there. For a start soon, hosts
    that are on come before those that may not be up in time. With `at_random` the fit does not count.
    """
    kept = hosts.c.id == func.any(_numbers("keep"))
    loss = [_loss()] if weighs_losses else []
    recycles, off = has(hosts.c.pool, Pool.RECYCLING), far_from_up()
    sample = (
        select(hosts.c.id)
        .where(suits(requirement), _free(_on_host, has_own))
        .order_by(kept.desc(), *loss, recycles, off, func.random())
        .limit(bindparam("sample", type_=Integer))
        .subquery("sample")
    )
    fit = case((bindparam("at_random", type_=Boolean), null()), else_=_free_stretch(hosts.c.id))
    return (
        select(hosts.c.id)
        .join(sample, sample.c.id == hosts.c.id)
        .order_by(kept.desc(), *loss, recycles, off, fit, func.random())
        .limit(bindparam("limit", type_=Integer))
    )


def _candidates(usable: ColumnElement[bool], weighs_losses: bool) -> Select[int, int]:
    """Return the usable hosts in the order of `_best`, without a sample."""
    kept, recycles = hosts.c.id == func.any(_numbers("keep")), has(hosts.c.pool, Pool.RECYCLING)
    loss = [_loss()] if weighs_losses else []
    taken = sum((case((one > 0, 2 * (FARTHEST + 1)), else_=0) for one in loss), start=literal(0))
    drawback = 1 + far_from_up() + case((recycles, FARTHEST + 1), else_=0)
    level = case((kept, 0), else_=drawback + taken if loss else drawback).label("level")
    fit = case((bindparam("at_random", type_=Boolean), null()), else_=_free_stretch(hosts.c.id))
    return select(hosts.c.id, level).where(usable).order_by(level, *loss, fit, func.random())


def _anywhere(suitable: ColumnElement[bool]) -> Select[int]:
    """Return the tightest fit among the free hosts that follow a random number, wrapping around at the end.

    NOT IN keeps the order of the index, so that the scan stops when the sample is full.
    """
    last = select(func.max(hosts.c.id)).scalar_subquery()
    origin = select(func.floor(func.random() * last).cast(BigInteger).label("number")).cte("origin")
    number = select(origin.c.number).scalar_subquery()
    taken = select(allocations.c.host).where(_in_window())
    size = bindparam("sample", type_=Integer)

    def some(part: ColumnElement[bool]) -> Select[int]:
        fine = (suitable, ~has(hosts.c.pool, Pool.RECYCLING), part, hosts.c.id.not_in(taken))
        return select(hosts.c.id).where(*fine).order_by(hosts.c.id).limit(size)

    both = union_all(some(hosts.c.id > number), some(hosts.c.id <= number)).subquery("sampled")
    sample = func.array(select(both.c.id).limit(size).scalar_subquery(), type_=ARRAY(BigInteger))
    fit = case((bindparam("at_random", type_=Boolean), null()), else_=_free_stretch(hosts.c.id))
    best = select(hosts.c.id).where(hosts.c.id == func.any(sample)).order_by(fit, func.random())
    return best.limit(bindparam("limit", type_=Integer))


def _looked_at_again(query: Select[int]) -> Select[int, bool]:
    """Return the query with its rows locked, and whether each host is free in a snapshot that is taken after that.

    Once it has waited for a row, or found a newer version of it, PostgreSQL repeats the conditions on that row. Those
    on other tables keep the snapshot of the statement; `host_is_free` takes a new one.
    """
    locked = query.with_for_update(of=hosts, key_share=True, skip_locked=True).subquery("locked")
    free = func.host_is_free(locked.c.id, bindparam("during", type_=TSTZRANGE), type_=Boolean)
    return select(locked.c.id, free)


def _free_stretch(host: ColumnElement[int]) -> ColumnElement[timedelta]:
    """Return the length of the free period around the window, without this allocation."""
    a = allocations
    mine = (a.c.host == host, in_force(a))
    begins, ends = func.lower(a.c.during), func.upper(a.c.during)
    start, end = bindparam("start", type_=Time), bindparam("end", type_=Time)
    before = select(ends).where(*mine, begins < start).order_by(begins.desc()).limit(_ONE).scalar_subquery()
    after = select(begins).where(*mine, begins >= end).order_by(begins).limit(_ONE).scalar_subquery()
    return func.coalesce(after - end, FAR) + func.coalesce(start - before, FAR)


def _busy(suits: ColumnElement[bool]) -> ScalarSelect[object]:
    """Return the allocations, read host by host: for few hosts that is cheap, whatever the others hold."""
    a, limit = allocations, bindparam("limit", type_=Integer)
    begins, ends = func.lower(a.c.during).label("begins"), func.upper(a.c.during).label("ends")
    theirs = (
        select(begins, ends)
        .where(a.c.host == hosts.c.id, in_force(a), begins < bindparam("until", type_=Time))
        .where(ends > bindparam("start", type_=Time), or_(~a.c.preemptible, bindparam("gives_way", type_=Boolean)))
        .order_by(begins)
        .limit(limit)
        .lateral("theirs")
    )
    joined = select(hosts.c.id, theirs.c.begins, theirs.c.ends).join(theirs, true())
    first = joined.where(suits).order_by(theirs.c.begins).limit(limit).subquery("first")
    rows = aggregate_order_by(func.jsonb_build_array(first.c.id, first.c.begins, first.c.ends), first.c.begins)
    return select(func.jsonb_agg(rows)).scalar_subquery()
