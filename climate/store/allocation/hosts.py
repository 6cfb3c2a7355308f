"""Allocation of free hosts for a period.

The quick way locks the rows of a few more hosts than wanted that seem free and that nobody else is booking. In a new
snapshot it keeps those that are still free. It never waits. If that is not enough, the
caller rolls back, which releases the rows, and waits without locks until a rival is done (`outlast`). All callers that
wait for the same rival look again at the same moment. A caller that finds the hosts allocated is refused, and the
others repeat the quick way. After a few repetitions the patient way follows. One patient allocation at a time waits for
rows in the order of their numbers, and counts exactly.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, Select, func, or_, select
from sqlalchemy.dialects.postgresql import Range

from climate.database.sql_arrays import in_parameter
from climate.domain.errors import Busy, ClimateError, NotEnoughHosts
from climate.domain.hosts.requirements import Requirement
from climate.domain.period import Period
from climate.store import locks
from climate.store.allocation.host_queries import Search, parameters, search
from climate.store.tables.leases import allocations, in_force, leases, reservations

SPARE = 2
"""Rows locked beyond the number wanted, because some may turn out not to be free.

Fewer for one or two hosts: rivals would otherwise find all rows of a small pool locked, though most of it stays free.
"""

SAMPLE = 16
"""Number of free hosts that are compared for their fit, so high that concurrent requests seldom choose the same one."""

FEW = 32
"""Number of hosts up to which each is looked up by itself."""

PATIENT_LOOKS = 50

ANY_NUMBER = 2**31
"""More hosts than there are."""

Allocations = Sequence[tuple[int, str, str]]
"""Host, start and end of allocations, in the text form of JSON."""

RIVALS = 8
"""Number of rivals that are waited for, one after the other, before the quick way is repeated."""


class MustWait(ClimateError):
    """Too few hosts are available without waiting for other allocations."""

    def __init__(self, wanted: "HostRequest | None" = None, at_hand: Sequence[int] = ()) -> None:
        """Create the error.

        `wanted` is the request for `outlast`; `at_hand` are the hosts that nobody else was booking.
        """
        super().__init__()
        self.wanted, self.at_hand = wanted, at_hand


class Short(NotEnoughHosts):
    """Not enough hosts available"""

    def __init__(self, wanted: "HostRequest", shortage: "Shortage | None" = None) -> None:
        """Create the error. `shortage` is the explanation, if it is known already."""
        super().__init__()
        self.wanted, self.shortage = wanted, shortage

    @property
    def is_final(self) -> bool:
        """Return whether it is known that no preemptible lease has a host in the window."""
        return self.shortage is not None and not self.shortage.preemptible


@dataclass(frozen=True, slots=True)
class HostRequest:
    """Request for `least` to `most` hosts, all free for the whole `window`."""

    requirement: Requirement
    window: Period
    least: int
    most: int
    own: frozenset[UUID] = frozenset()
    """Reservations whose present hosts count as free."""
    keep: tuple[int, ...] = field(default=())
    """Hosts to prefer over all others."""
    must: tuple[int, ...] = field(default=())
    """Hosts among them that are in use already: they have to be free, but need not match any more."""
    without: tuple[int, ...] = field(default=())
    """Hosts to exclude, even if they are free."""
    soon: bool = False
    """True if hosts that are off may not be up in time."""
    project_id: str = ""
    """Project of the request: hosts with authorized projects are for those only."""
    at_random: bool = False
    """True if the fit of the free hosts does not count."""
    giving_way: frozenset[UUID] = frozenset()
    """Reservations of preemptible leases whose hosts count as free, and are taken if no other are."""
    gives_way: bool = False
    """True if the request is preemptible itself: hosts of other preemptible leases are not free for it."""

    @property
    def statements(self) -> Search:
        return search(self.requirement, bool(self.own or self.giving_way), bool(self.giving_way))


def pick(conn: Connection, request: HostRequest, *, patient: bool) -> tuple[int, ...]:
    """Return numbers of hosts for the request, in order; their rows stay locked until the transaction ends.

    Return as many as are free, up to `most`. Raise TryPatiently if the quick way does not suffice, and NotEnoughHosts
    if the patient way does not.
    """
    return _patiently(conn, request) if patient else _quickly(conn, request)


def _quickly(conn: Connection, request: HostRequest) -> tuple[int, ...]:
    special = request.own or request.giving_way or request.keep or request.must or request.soon
    locked, still = _locked(conn, request, request.statements.quick if special else None)
    picked = still[: request.most]
    if len(picked) < request.most or not set(request.must) <= set(picked):
        # Hosts of other reservations of the request are in no table yet, so rivals cannot be refused for them.
        raise MustWait() if special or request.without else MustWait(request, locked)
    return tuple(sorted(picked))


def _locked(conn: Connection, request: HostRequest, search: Select[int] | None) -> tuple[list[int], list[int]]:
    """Return the hosts that the search locks, and those among them that are still free; by default search anywhere."""
    limit = request.most + min(SPARE, request.most - 1)
    if search is None and limit <= FEW:
        looked_at = conn.execute(request.statements.sampled_with_recheck, _parameters(request, limit)).all()
        locked = [number for number, _ in looked_at]
        locks.note_hosts(conn, locked)
        return locked, [number for number, is_free in looked_at if is_free]
    locked = _best(conn, request, request.statements.sampled if search is None else search, limit)
    locks.note_hosts(conn, locked)
    return locked, _still_free(conn, locked, request) if len(locked) >= request.most else []


def wait_for_lock_holder(conn: Connection, refusal: MustWait) -> bool:
    """Wait until rivals are done, outside a transaction; return whether the quick way may succeed now.

    Raise Short if too few hosts remain beside those that are allocated by then; a rival that rolls back takes none.
    """
    wanted = refusal.wanted
    if wanted is None:
        return False
    rival = _lock_holder(conn, wanted, refusal.at_hand)
    for _ in range(RIVALS):
        if rival is None:
            return False
        locks.await_host(conn, rival)
        before, rival = rival, _lock_holder(conn, wanted, refusal.at_hand)
        if rival == before:
            return True
    return True


def _lock_holder(conn: Connection, request: HostRequest, at_hand: Sequence[int]) -> int | None:
    """Return the first free host that is not in `at_hand`, or None; raise Short if too few are free."""
    known = _counted(conn, request, request.least, at_hand)
    if known.free < request.least:
        raise Short(request, _explained(request, known))
    return known.rival


@dataclass(frozen=True, slots=True)
class _Counts:
    """Number of matching hosts, of free ones, the first free one apart from some, and what occupies the hosts."""

    matching: int
    free: int
    rival: int | None
    busy: Allocations
    preemptible: bool
    """True if a preemptible lease has a host in the window."""


def _counted(conn: Connection, request: HostRequest, explained_below: int, at_hand: Sequence[int] = ()) -> _Counts:
    """Return the counts, with what occupies the hosts if fewer than `explained_below` are free."""
    statement = request.statements.counted
    bounds = {"explained_below": explained_below, "until": request.window.end + HORIZON, "limit": HORIZON_ROWS}
    row = conn.execute(statement, parameters(request, numbers=list(at_hand), **bounds)).one()
    return _Counts(row[0], row[1], row[2], row[3] or (), row[4])


def _patiently(conn: Connection, request: HostRequest) -> tuple[int, ...]:
    locks.lock_host_allocation(conn)
    for _ in range(PATIENT_LOOKS):
        candidates = _best(conn, request, request.statements.best, request.most)
        if len(candidates) < request.least or not set(request.must) <= set(candidates):
            raise Short(request)
        locks.lock_hosts(conn, candidates)
        still = _still_free(conn, candidates, request)
        if len(still) == len(candidates):
            return tuple(sorted(still))
    raise Busy("The hosts are being booked by others right now; try again shortly")


def _best(conn: Connection, request: HostRequest, statement: Select[int], limit: int) -> list[int]:
    return list(conn.scalars(statement, _parameters(request, limit)))


def _parameters(request: HostRequest, limit: int) -> Mapping[str, object]:
    return parameters(request, sample=max(SAMPLE, 2 * request.most), limit=limit)


def _still_free(conn: Connection, numbers: Sequence[int], request: HostRequest) -> list[int]:
    """Return the hosts that are still free and suitable; one may have been changed or removed before its row was
    locked.
    """
    statements = request.statements
    statement = statements.few_still_free if len(numbers) <= FEW else statements.still_free
    return list(conn.scalars(statement, parameters(request, numbers=list(numbers))))


@dataclass(frozen=True, slots=True)
class Shortage:
    """Explanation of a shortage: number of matching hosts, of free ones, and the earliest start that would fit."""

    matching: int
    free: int
    fits_from: "Period | None"
    preemptible: bool = True
    """False if no preemptible lease has a host in the window."""


HORIZON_ROWS = 1000
HORIZON = timedelta(days=90)


def shortage(conn: Connection, request: HostRequest) -> Shortage:
    """Return the explanation of a shortage. Read a bounded number of allocations in a bounded future."""
    return _explained(request, _counted(conn, request, ANY_NUMBER))


def ends(conn: Connection, request: HostRequest) -> list[datetime]:
    """Return the ends of the allocations that explain a shortage."""
    return [datetime.fromisoformat(end) for _, _, end in _counted(conn, request, ANY_NUMBER).busy]


def _explained(request: HostRequest, known: _Counts) -> Shortage:
    if known.matching < request.least:
        return Shortage(known.matching, known.free, None, known.preemptible)
    until = request.window.end + HORIZON
    times = datetime.fromisoformat
    taken = [(host, Period(times(start), times(end))) for host, start, end in known.busy]
    known_until = taken[-1][1].start if len(taken) == HORIZON_ROWS else until
    fits_from = earliest_fit(known.matching, taken, request.window, request.least, known_until)
    return Shortage(known.matching, known.free, fits_from, known.preemptible)


def earliest_fit(
    hosts_in_all: int, taken: Sequence[tuple[int, Period]], window: Period, least: int, known_until: datetime
) -> Period | None:
    """Return the first window of that length, from `window` on, in which `least` of the hosts are free.

    Return None if there is none before `known_until`; later allocations are unknown. A window can only begin to fit
    when an allocation ends, so only those times are tried. Each host is counted once, over its merged periods of
    excluded starts.
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
    """Return sorted begins and ends of the periods in which a window of `length` cannot start, per host."""
    merged: dict[int, list[list[datetime]]] = {}
    for host, period in taken:  # ordered by start
        stretches = merged.setdefault(host, [])
        if stretches and period.start - length < stretches[-1][1]:
            stretches[-1][1] = period.end
        else:
            stretches.append([period.start - length, period.end])
    flat = [stretch for stretches in merged.values() for stretch in stretches]
    return sorted(begin for begin, _ in flat), sorted(end for _, end in flat)


def first_conflict(conn: Connection, numbers: Sequence[int], request: HostRequest) -> datetime | None:
    """Return the start of the first conflicting allocation of the hosts `numbers` within the window, or None."""
    a, window = allocations, Range(request.window.start, request.window.end)
    query = (
        select(func.min(func.lower(a.c.during)))
        .where(a.c.host.in_(list(numbers)), a.c.during.overlaps(window), in_force(a))
        .where(or_(a.c.reservation_id.is_(None), a.c.reservation_id.not_in(request.own | request.giving_way)))
    )
    conflict_at: datetime | None = conn.scalar(query)
    return conflict_at


@dataclass(frozen=True, slots=True)
class Allocated:
    """A host and a reservation that holds it."""

    host: int
    reservation_id: UUID
    lease_id: UUID
    start: datetime
    end: datetime


def allocated(conn: Connection, now: datetime, hosts: Collection[int]) -> list[Allocated]:
    """Return the reservations that hold these hosts, now and later. Dates are the leases', without cleaning time.

    A host can be held for longer: by a lease in its grace period, or by one whose end failed.
    """
    a = allocations
    query = (
        select(a.c.host, a.c.reservation_id, leases.c.id, leases.c.start_date, leases.c.end_date)
        .join(reservations, reservations.c.id == a.c.reservation_id)
        .join(leases, leases.c.id == reservations.c.lease_id)
        .where(in_parameter(a.c.host, "hosts"))
        .where(in_force(a), or_(leases.c.end_date > now, a.c.state == "active"))
        .order_by(a.c.host, leases.c.start_date)
    )
    return [Allocated(*row) for row in conn.execute(query, {"hosts": sorted(hosts)})] if hosts else []
