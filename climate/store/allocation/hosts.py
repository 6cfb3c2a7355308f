"""Which hosts are free when, and the choice among them.  engine.md 1, reliability.md 3.2.

The quick way takes the rows of a few more hosts than wanted that look free
and that nobody else is booking, then, in a new statement and hence a new
snapshot, keeps those that still are.  It never waits.  Where that is not
enough, the caller rolls back, which gives the rows up, and waits with nothing
locked until a rival is done (`outlast`).  Everybody who waits for the same
rival looks again at the same moment: who finds the hosts gone is refused, and
the others try the quick way again.  A few times at most, then the patient way:
one patient booking at a time, which waits for rows in the order of their
numbers and counts honestly.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import BigInteger, Connection, Select, bindparam, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY, Range

from climate.domain.errors import Busy, ClimateError, NotEnoughHosts
from climate.domain.hosts.requirements import Requirement
from climate.domain.period import Period
from climate.store import locks
from climate.store.allocation.host_queries import given, search
from climate.store.tables.leases import allocations, in_force, leases, reservations

SPARE = 2
"""Rows taken beyond what is wanted, for those that turn out not to be free.

Fewer for one or two hosts: rivals find all locked in a small pool otherwise, though most of it stays free.
"""

SAMPLE = 16
"""Free hosts that are compared for their fit; enough that concurrent bookings seldom want the same one."""

FEW = 32
"""Hosts that are looked up one by one."""

PATIENT_LOOKS = 50

RIVALS = 8
"""Other bookings that are waited for, one after the other, before the quick way is tried again."""


class TryPatiently(ClimateError):
    """Too few hosts at hand without waiting for other bookings."""

    def __init__(self, wanted: "Wanted | None" = None, at_hand: Sequence[int] = ()) -> None:
        """`wanted`: what `outlast` may wait for; `at_hand`: the hosts that nobody else was booking."""
        super().__init__()
        self.wanted, self.at_hand = wanted, at_hand


class Short(NotEnoughHosts):
    """Not enough hosts available"""

    def __init__(self, wanted: "Wanted", found: "Shortage | None" = None) -> None:
        """`found`: why, where that was looked up already."""
        super().__init__()
        self.wanted, self.found = wanted, found


@dataclass(frozen=True, slots=True)
class Wanted:
    """`least` to `most` hosts, all free for the whole `window`."""

    requirement: Requirement
    window: Period
    least: int
    most: int
    own: UUID | None = None
    """A reservation whose present hosts count as free."""
    keep: tuple[int, ...] = field(default=())
    """Hosts to take before all others."""
    must: tuple[int, ...] = field(default=())
    """Those of them that are in use already: they have to be free, but need not match any more."""
    without: tuple[int, ...] = field(default=())
    """Hosts not to take, though they may look free."""
    soon: bool = False
    """Whether hosts that are switched off may not be up in time."""
    project_id: str = ""
    """For which they are wanted: hosts with authorized projects are for those only."""
    at_random: bool = False
    """Whether any of the free hosts will do, however well it fits."""


def pick(conn: Connection, wanted: Wanted, *, patient: bool) -> tuple[int, ...]:
    """Numbers of hosts for `wanted`, in order; their rows stay locked until the transaction ends.

    As many as are free, up to `most`.  TryPatiently where the quick way is not
    enough; NotEnoughHosts where the patient way is not.
    """
    return _patiently(conn, wanted) if patient else _quickly(conn, wanted)


def _quickly(conn: Connection, wanted: Wanted) -> tuple[int, ...]:
    statements = search(wanted.requirement, wanted.own is not None)
    special = wanted.own or wanted.keep or wanted.must or wanted.soon
    limit = wanted.most + min(SPARE, wanted.most - 1)
    taken = _best(conn, wanted, statements.quick if special else statements.anywhere, limit)
    locks.note_hosts(conn, taken)
    still = _still_free(conn, taken, wanted) if len(taken) >= wanted.most else []
    picked = still[: wanted.most]
    if len(picked) < wanted.most or not set(wanted.must) <= set(picked):
        # What other reservations of the request have chosen is in no table yet: others cannot be refused for it.
        raise TryPatiently() if special or wanted.without else TryPatiently(wanted, taken)
    return tuple(sorted(picked))


def outlast(conn: Connection, hurdle: TryPatiently) -> bool:
    """Wait until rivals are done; whether the quick way may succeed now.  With no transaction open.

    Short where too few hosts are left without those that are promised by then: a rival that
    comes to nothing takes none away.
    """
    wanted = hurdle.wanted
    if wanted is None:
        return False
    matching, free, rival = _counted(conn, wanted, hurdle.at_hand)
    for _ in range(RIVALS):
        if free < wanted.least:
            raise Short(wanted, _explained(conn, wanted, matching, free))
        if rival is None:
            return False
        locks.await_host(conn, rival)
        before = rival
        matching, free, rival = _counted(conn, wanted, hurdle.at_hand)
        if rival == before:
            return True
    return True


def _counted(conn: Connection, wanted: Wanted, at_hand: Sequence[int] = ()) -> tuple[int, int, int | None]:
    """How many hosts match, how many of them are free, and the first of these that is not `at_hand`."""
    statement = search(wanted.requirement, wanted.own is not None).counted
    row = conn.execute(statement, given(wanted, numbers=list(at_hand))).one()
    return row[0], row[1], row[2]


def _patiently(conn: Connection, wanted: Wanted) -> tuple[int, ...]:
    locks.hosts_alone(conn)
    for _ in range(PATIENT_LOOKS):
        candidates = _best(conn, wanted, search(wanted.requirement, wanted.own is not None).best, wanted.most)
        if len(candidates) < wanted.least or not set(wanted.must) <= set(candidates):
            raise Short(wanted)
        locks.lock_hosts(conn, candidates)
        still = _still_free(conn, candidates, wanted)
        if len(still) == len(candidates):
            return tuple(sorted(still))
    raise Busy("The hosts are being booked by others right now; try again shortly")


def _best(conn: Connection, wanted: Wanted, statement: Select[int], limit: int) -> list[int]:
    size = max(SAMPLE, 2 * wanted.most)
    return list(conn.scalars(statement, given(wanted, sample=size, limit=limit)))


def _still_free(conn: Connection, numbers: Sequence[int], wanted: Wanted) -> list[int]:
    """Whether they suit is asked again too: a host may have been changed or removed until its row was ours."""
    statements = search(wanted.requirement, wanted.own is not None)
    statement = statements.few_still_free if len(numbers) <= FEW else statements.still_free
    return list(conn.scalars(statement, given(wanted, numbers=list(numbers))))


@dataclass(frozen=True, slots=True)
class Shortage:
    """Why there are not enough: how many hosts match at all, how many of them are free, and from when it would fit."""

    matching: int
    free: int
    fits_from: "Period | None"


HORIZON_ROWS = 1000
HORIZON = timedelta(days=90)


def shortage(conn: Connection, wanted: Wanted) -> Shortage:
    """What to tell somebody who was refused.  Looks at a bounded number of allocations in a bounded future."""
    matching, free, _ = _counted(conn, wanted)
    return _explained(conn, wanted, matching, free)


def _explained(conn: Connection, wanted: Wanted, matching: int, free: int) -> Shortage:
    if matching < wanted.least:
        return Shortage(matching, free, None)
    until = wanted.window.end + HORIZON
    statement = search(wanted.requirement, wanted.own is not None).busy
    rows = conn.execute(statement, given(wanted, until=until, limit=HORIZON_ROWS))
    taken = [(host, Period(start, end)) for host, start, end in rows]
    known_until = taken[-1][1].start if len(taken) == HORIZON_ROWS else until
    return Shortage(matching, free, earliest_fit(matching, taken, wanted.window, wanted.least, known_until))


def earliest_fit(
    hosts_in_all: int, taken: Sequence[tuple[int, Period]], window: Period, least: int, known_until: datetime
) -> Period | None:
    """The first window of that length, from `window` on, in which `least` of the hosts are free.

    None when there is none before `known_until`; nothing is known of later allocations.
    A window can only begin to fit where some allocation ends, so those times
    are tried; each host is counted once, over its merged stretches of starts
    that it rules out.
    """
    length = window.end - window.start
    begins, ends = _ruled_out(taken, length)
    for start in sorted({period.end for _, period in taken if period.end >= window.start}):
        if start + length > known_until:
            return None
        occupied = bisect_left(begins, start) - bisect_right(ends, start)
        if hosts_in_all - occupied >= least:
            return Period(start, start + length)
    return None


def _ruled_out(taken: Sequence[tuple[int, Period]], length: timedelta) -> tuple[list[datetime], list[datetime]]:
    """Sorted begins and ends of the stretches in which a window of `length` cannot start, per host."""
    merged: dict[int, list[list[datetime]]] = {}
    for host, period in taken:  # ordered by start
        stretches = merged.setdefault(host, [])
        if stretches and period.start - length < stretches[-1][1]:
            stretches[-1][1] = period.end
        else:
            stretches.append([period.start - length, period.end])
    flat = [stretch for stretches in merged.values() for stretch in stretches]
    return sorted(begin for begin, _ in flat), sorted(end for _, end in flat)


def first_conflict(conn: Connection, numbers: Sequence[int], wanted: Wanted) -> datetime | None:
    """When the first of the hosts `numbers` is promised to others within the window, or None."""
    a, window = allocations, Range(wanted.window.start, wanted.window.end)
    query = (
        select(func.min(func.lower(a.c.during)))
        .where(a.c.host.in_(list(numbers)), a.c.during.overlaps(window), in_force(a))
        .where(a.c.reservation_id.is_distinct_from(wanted.own))
    )
    found: datetime | None = conn.scalar(query)
    return found


@dataclass(frozen=True, slots=True)
class Allocated:
    """A host and a reservation that holds it."""

    host: int
    reservation_id: UUID
    lease_id: UUID
    start: datetime
    end: datetime


def allocated(conn: Connection, now: datetime, hosts: Collection[int]) -> list[Allocated]:
    """Who holds which of these hosts, now and later: the calendar.  Dates are the leases', without cleaning time.

    A host is held beyond them too: by a lease in its grace period, and by one whose end could not be done.
    """
    a = allocations
    query = (
        select(a.c.host, a.c.reservation_id, leases.c.id, leases.c.start_date, leases.c.end_date)
        .join(reservations, reservations.c.id == a.c.reservation_id)
        .join(leases, leases.c.id == reservations.c.lease_id)
        .where(a.c.host == func.any(bindparam("hosts", type_=ARRAY(BigInteger))))
        .where(in_force(a), or_(leases.c.end_date > now, a.c.state == "active"))
        .order_by(a.c.host, leases.c.start_date)
    )
    return [Allocated(*row) for row in conn.execute(query, {"hosts": sorted(hosts)})] if hosts else []
