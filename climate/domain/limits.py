"""Limits of projects, and the use of them.

Use is counted along time: a lease uses its hosts from its start to its end, including the grace period but
without the cleaning time.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import accumulate, pairwise
from typing import Self

from climate.domain.errors import LimitExceeded
from climate.domain.facts import FOREVER
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.planning.preemption import is_preemptible
from climate.domain.sharing import sublease
from climate.domain.status import EventKind

NO_LIMIT = -1
HOUR = timedelta(hours=1)
ROUNDING = 1e-6


class Limit(StrEnum):
    """Limit of a project, in the order in which limits are checked."""

    MAX_LEASE_SECONDS = "max_lease_seconds"
    MAX_LEAD_SECONDS = "max_lead_seconds"
    LEASES = "leases"
    HELD_LEASES = "held_leases"
    WAITING_LEASES = "waiting_leases"
    HOSTS_AT_ONCE = "hosts_at_once"
    PREEMPTIBLE_HOSTS_AT_ONCE = "preemptible_hosts_at_once"
    SLOTS_AT_ONCE = "slots_at_once"
    FLOATING_IPS_AT_ONCE = "floating_ips_at_once"
    STORAGE_GB_AT_ONCE = "storage_gb_at_once"
    HOST_HOURS = "host_hours"


SAYS: Mapping[Limit, str] = {
    Limit.MAX_LEASE_SECONDS: "seconds from the start to the end of a lease",
    Limit.MAX_LEAD_SECONDS: "seconds from now to the start of a lease",
    Limit.LEASES: "leases that have not ended",
    Limit.HELD_LEASES: "leases that are held and not confirmed yet",
    Limit.WAITING_LEASES: "leases in the waiting list",
    Limit.HOSTS_AT_ONCE: "whole hosts at any one time",
    Limit.PREEMPTIBLE_HOSTS_AT_ONCE: "preemptible hosts at any one time",
    Limit.SLOTS_AT_ONCE: "places for servers on shared hosts at any one time",
    Limit.FLOATING_IPS_AT_ONCE: "floating IPs at any one time",
    Limit.STORAGE_GB_AT_ONCE: "GB of storage at any one time, kept volumes included",
    Limit.HOST_HOURS: "hours of whole hosts within the days of a period",
}
"""Unit of each limit."""

IN_USE = frozenset(
    {
        Limit.LEASES,
        Limit.HELD_LEASES,
        Limit.WAITING_LEASES,
        Limit.HOSTS_AT_ONCE,
        Limit.PREEMPTIBLE_HOSTS_AT_ONCE,
        Limit.SLOTS_AT_ONCE,
        Limit.FLOATING_IPS_AT_ONCE,
        Limit.STORAGE_GB_AT_ONCE,
        Limit.HOST_HOURS,
    }
)
"""Limits on all leases of a project together; the others apply to each lease."""


@dataclass(frozen=True, slots=True)
class HoldingChange:
    """Time at which a project begins to hold something, or ceases to if negative."""

    at: datetime
    hosts: int
    slots: int = 0
    addresses: int = 0
    storage_gb: int = 0
    preemptible_hosts: int = 0


COUNTED: Mapping[Limit, Callable[[HoldingChange], int]] = {
    Limit.HOSTS_AT_ONCE: lambda edge: edge.hosts,
    Limit.PREEMPTIBLE_HOSTS_AT_ONCE: lambda edge: edge.preemptible_hosts,
    Limit.SLOTS_AT_ONCE: lambda edge: edge.slots,
    Limit.FLOATING_IPS_AT_ONCE: lambda edge: edge.addresses,
    Limit.STORAGE_GB_AT_ONCE: lambda edge: edge.storage_gb,
    Limit.HOST_HOURS: lambda edge: edge.hosts,
}
"""Resource that each limit along time counts."""


@dataclass(frozen=True, slots=True)
class Use:
    """Use by leases: their number, and their holds along time."""

    leases: int
    edges: tuple[HoldingChange, ...] = ()
    held_leases: int = 0
    waiting_leases: int = 0


LEASES_OF: Mapping[Limit, Callable[[Use], int]] = {
    Limit.LEASES: lambda use: use.leases,
    Limit.HELD_LEASES: lambda use: use.held_leases,
    Limit.WAITING_LEASES: lambda use: use.waiting_leases,
}
"""Leases that each of the other limits counts."""

NOTHING = Use(0)


@dataclass(frozen=True, slots=True)
class LimitRequest:
    """Lease as requested and as it is now (None: a new one)."""

    after: Lease
    before: Lease | None
    now: datetime
    days: timedelta
    """Period over which host-hours are summed up."""

    @property
    def window(self) -> Period:
        """Return the period in which the lease holds anything; kept amounts end with the period of the check."""
        held = _held(self.after)
        kept = any(hold.kept for reservation in self.after.reservations for hold in reservation.amounts)
        return Period(held.start, FOREVER - self.days) if kept else held

    @property
    def horizon(self) -> Period:
        """Return the period in which other leases matter to it."""
        return Period(self.window.start - self.days, self.window.end + self.days)


@dataclass(frozen=True, slots=True)
class Point:
    """Use at one time: that of others, and that of the lease before and after the change."""

    others: float
    was: float
    own: float

    @property
    def total(self) -> float:
        return self.others + self.own


def check(limits: Mapping[Limit, int], request: LimitRequest, others: Use) -> None:
    """Raise LimitExceeded for the first limit that the lease exceeds; `others` is the use by the project's other
    leases.

    A use that exceeds a lowered limit already may continue and shrink. A sub-lease counts as hosts of its parent.
    """
    if request.after.parent:
        return
    for limit in (limit for limit in Limit if limits.get(limit, NO_LIMIT) != NO_LIMIT):
        points = _in_use(limit, request, others) if limit in IN_USE else [_of_dates(limit, request)]
        over = list(_over(points, limits[limit] + ROUNDING, even=limit is Limit.HOST_HOURS))
        if over:
            raise _exceeded(limit, limits[limit], max(over, key=lambda point: (point.total, point.own)))


def share(limits: Mapping[Limit, int], request: LimitRequest, others: Use) -> float:
    """Return the greatest share of a limit along time that the project uses with the lease; 0 without such limits."""
    along = [limit for limit in COUNTED if limits.get(limit, NO_LIMIT) > 0]
    return max(
        (max(point.total for point in _in_use(one, request, others)) / limits[one] for one in along), default=0.0
    )


def most(limit: Limit, taken: Use, window: Period, days: timedelta) -> float:
    """Return the maximum use of a limit within the window."""
    if limit not in COUNTED:
        return _points(limit, (taken, NOTHING, NOTHING), window, days)[0].others
    course = _Course.of(taken.edges, COUNTED[limit])
    if limit is not Limit.HOST_HOURS:
        return float(course.most(window))
    # Hours grow until the period begins where the level rises, or ends where it falls.
    changes = zip(course.times, (0, *course.levels), course.levels, strict=False)
    starts = {at if level > before else at - days for at, before, level in changes}
    inside = (start for start in starts if window.start - days < start < window.end)
    return max(course.within(start, start + days) / HOUR for start in (window.start - days, window.end, *inside))


def _over(points: Sequence[Point], value: float, *, even: bool) -> Iterator[Point]:
    """Return the points at which the lease adds to a use above the value; `even`: use is linear between points."""
    if not even:
        yield from (point for point in points if point.total > value and point.own > point.was)
        return
    for pair in pairwise(points):
        fuller, other = sorted(pair, key=lambda point: point.total, reverse=True)
        if fuller.total > value and fuller.own > fuller.was:
            yield fuller
        elif fuller.total > value and fuller.own == fuller.was and other.own > other.was:
            yield Point(fuller.others, other.was, other.own)  # just beside the fuller one it adds a little


def _in_use(limit: Limit, request: LimitRequest, others: Use) -> list[Point]:
    was = _of_lease(request.before) if request.before else NOTHING
    return _points(limit, (others, was, _of_lease(request.after)), request.window, request.days)


def _points(limit: Limit, uses: tuple[Use, Use, Use], window: Period, days: timedelta) -> list[Point]:
    """Return the use before and after the change, at each maximum within the window."""
    if limit in LEASES_OF:
        return [Point(*(float(LEASES_OF[limit](use)) for use in uses))]
    courses = [_Course.of(use.edges, COUNTED[limit]) for use in uses]
    edges = {window.start, window.end, *(at for course in courses for at in course.times)}
    if limit is not Limit.HOST_HOURS:
        moments = [at for at in edges if window.start <= at < window.end]
        return [Point(*(float(course.at(moment)) for course in courses)) for moment in moments]
    return _hours(courses, edges, window, days)


def _hours(courses: Sequence["_Course"], edges: Set[datetime], window: Period, days: timedelta) -> list[Point]:
    """Return the host hours of each period of `days` that touches the window and may have the maximum."""
    starts = _starts(edges, window, days)
    return [Point(*(course.within(start, start + days) / HOUR for course in courses)) for start in starts]


def _starts(edges: Set[datetime], window: Period, days: timedelta) -> list[datetime]:
    """Return the starts of periods of `days` that touch the window and may have the maximum of hours."""
    # Between the edges hours grow and shrink evenly: the maximum is where a period begins or ends at one.
    starts = {at - back for at in edges for back in (timedelta(0), days)}
    return sorted(start for start in starts if start <= window.end and start + days >= window.start)


def _of_dates(limit: Limit, request: LimitRequest) -> Point:
    """Return the value of a limit on the dates of a single lease, in seconds."""

    def seconds(lease: Lease) -> float:
        begin = lease.period.start if limit is Limit.MAX_LEASE_SECONDS else request.now
        end = lease.period.end if limit is Limit.MAX_LEASE_SECONDS else lease.period.start
        return max(0.0, (end - begin).total_seconds())

    return Point(0.0, seconds(request.before) if request.before else 0.0, seconds(request.after))


def _of_lease(lease: Lease) -> Use:
    held = _held(lease)
    holds = [hold for reservation in lease.reservations for hold in reservation.holds]
    hosts, slots = sum(hold.slots == 0 for hold in holds), sum(hold.slots for hold in holds)
    spare = sum(len(one.holds) for one in lease.reservations if is_preemptible(one.spec))
    hosts += sum(part.counted for part in lease.parts) - spare
    hosts += sum(sublease.count_taken(reservation.sublets) for reservation in lease.reservations)
    addresses = sum(len(reservation.addresses) for reservation in lease.reservations)
    edges = (
        HoldingChange(held.start, hosts, slots, addresses, preemptible_hosts=spare),
        HoldingChange(held.end, -hosts, -slots, -addresses, preemptible_hosts=-spare),
    )
    return Use(1, (*edges, *_of_amounts(lease, held)), int(lease.held), int(lease.waits))


def _of_amounts(lease: Lease, held: Period) -> tuple[HoldingChange, ...]:
    """Return the use of storage in GB; amounts kept after the lease count forever."""
    amounts = [hold for reservation in lease.reservations for hold in reservation.amounts]
    taken, dropped = sum(hold.amount for hold in amounts), sum(hold.amount for hold in amounts if not hold.kept)
    return (
        (HoldingChange(held.start, 0, storage_gb=taken), HoldingChange(held.end, 0, storage_gb=-dropped))
        if amounts
        else ()
    )


def _held(lease: Lease) -> Period:
    return Period(lease.period.start, max(lease.period.end, lease.event(EventKind.END).due_at))


@dataclass(frozen=True, slots=True)
class _Course:
    """Amount held along time: from each time on, its level."""

    times: tuple[datetime, ...]
    levels: tuple[int, ...]
    spent: tuple[timedelta, ...]
    """Sums up to each time, as time multiplied by the level."""

    @classmethod
    def of(cls, edges: Sequence[HoldingChange], counted: Callable[[HoldingChange], int]) -> Self:
        steps: dict[datetime, int] = {}
        for edge in edges:
            step = counted(edge)
            if step:
                steps[edge.at] = steps.get(edge.at, 0) + step
        times = tuple(sorted(steps))
        levels = tuple(accumulate(steps[at] for at in times))
        pieces = [(later - at) * level for (at, later), level in zip(pairwise(times), levels, strict=False)]
        return cls(times, levels, tuple(accumulate(pieces, initial=timedelta(0))) if times else ())

    def at(self, moment: datetime) -> int:
        place = bisect_right(self.times, moment) - 1
        return self.levels[place] if place >= 0 else 0

    def most(self, window: Period) -> int:
        """Return the highest level within the window."""
        inside = slice(bisect_left(self.times, window.start), bisect_left(self.times, window.end))
        return max((self.at(window.start), *self.levels[inside]))

    def within(self, start: datetime, end: datetime) -> timedelta:
        return self._until(end) - self._until(start)

    def _until(self, moment: datetime) -> timedelta:
        place = bisect_right(self.times, moment) - 1
        if place < 0:
            return timedelta(0)
        return self.spent[place] + self.levels[place] * (moment - self.times[place])


def _exceeded(limit: Limit, value: int, point: Point) -> LimitExceeded:
    used, asked = plain(point.others), plain(point.own)
    use = f", {used} are in use" if limit in IN_USE else ""
    return LimitExceeded(
        f"Limit {limit} of the project is {value} ({SAYS[limit]}){use}: {asked} asked for",
        {"limit": {"name": str(limit), "value": value, "used": used, "asked": asked}},
    )


def plain(number: float) -> float | int:
    """Format a number for people."""
    rounded = round(number, 2)
    return int(rounded) if rounded.is_integer() else rounded
