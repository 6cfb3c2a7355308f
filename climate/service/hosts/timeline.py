"""The calendar of hosts: a window of rows and of time, with what the caller may know of each allocation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import groupby

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.availability import free_counts
from climate.domain.availability.demands import Horizon
from climate.domain.availability.free_counts import Point
from climate.domain.errors import InvalidInput
from climate.domain.hosts import timeline as spans
from climate.domain.hosts.requirements import AllOf
from climate.domain.hosts.timeline import Span
from climate.domain.period import Period
from climate.domain.policy import Caller, require
from climate.store.allocation import free_times
from climate.store.allocation.hosts import HostRequest
from climate.store.hosts import timeline
from climate.store.hosts.timeline import CalendarHost

MOST_DAYS = 400
"""Longest period that a calendar shows, in days."""

MOST_ROWS = 200
"""Maximum of rows of an answer."""

MOST_POINTS = 2000
"""Maximum of points of the free count."""


class Grouping(StrEnum):
    """Property by which the rows are grouped."""

    POOL = "pool"
    RACK = "rack"
    ZONE = "zone"


USUAL = timedelta(days=7)
"""Length of the period if its end is not given."""


@dataclass(frozen=True, slots=True)
class TimelineWindow:
    """Part of the calendar: a period, and `limit` rows from the row `cursor` on."""

    start: datetime | None = None
    """None: now."""
    end: datetime | None = None
    group: Grouping = Grouping.POOL
    hosts: frozenset[str] = frozenset()
    """Names or numbers of hosts; empty for all."""
    search: str = ""
    """Part of the name of a host, in any case."""
    cursor: int = 0
    limit: int = 100
    points: int = 0
    """Maximum of points of the free count; 0: it is not counted."""


@dataclass(frozen=True, slots=True)
class Row:
    """A host with its spans by start; free time is what lies between them."""

    host: CalendarHost
    group: str
    spans: Sequence[Span]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Part of the calendar, with the groups of all rows in their order."""

    period: Period
    groups: Mapping[str, int]
    """Number of rows of each group."""
    rows: Sequence[Row]
    cursor: int
    """Number of the first row."""
    free: tuple[Point, ...] | None = None
    """Free count of hosts, in seconds since 1970 and hosts."""
    bookable: int = 0
    """Hosts that are counted there."""
    total: int = 0
    """Number of all rows."""


def read(climate: Climate, caller: Caller, window: TimelineWindow) -> Timeline:
    """Return a part of the calendar, in two statements, or four with the free count."""
    require(caller, "leases:get")
    viewer = None if caller.is_admin else caller.project_id
    with reading(climate.engine) as conn:
        period = _period(window, window.start or climate.now(conn))
        known = [_as_shown(host, caller, climate.settings.lease_hosts) for host in timeline.visible(conn, viewer)]
        ordered = _ordered([host for host in known if _is_wanted(host, window)], window.group)
        page = ordered[window.cursor : window.cursor + window.limit]
        allocated = timeline.allocated(conn, [host.id for _, host in page], period, caller)
        free, bookable = _free(conn, caller, period, window.points) if window.points else (None, 0)
    of_host = {number: list(some) for number, some in groupby(allocated, lambda one: one.host)}
    rows = [Row(host, group, spans.spans(of_host.get(host.id, ()), viewer)) for group, host in page]
    groups = {group: len(list(some)) for group, some in groupby(ordered, lambda one: one[0])}
    return Timeline(period, groups, rows, window.cursor, free, bookable, len(ordered))


def _period(window: TimelineWindow, start: datetime) -> Period:
    end = window.end or start + USUAL
    if end <= start:
        raise InvalidInput("to must be later than from")
    if end - start > timedelta(days=MOST_DAYS):
        raise InvalidInput(f"to may be {MOST_DAYS} days after from at most")
    return Period(start, end)


def _as_shown(host: CalendarHost, caller: Caller, shown: str) -> CalendarHost:
    """Return a host as owners of leases may know it: with its name and its rack, if a setting says so."""
    if caller.is_admin or shown == "properties":
        return host
    name = host.name if shown == "names" else f"host {host.id}"
    return replace(host, name=name, rack="")


def _is_wanted(host: CalendarHost, window: TimelineWindow) -> bool:
    chosen = not window.hosts or not window.hosts.isdisjoint((host.name, str(host.id)))
    return chosen and window.search.casefold() in host.name.casefold()


def _ordered(hosts: Sequence[CalendarHost], group: Grouping) -> list[tuple[str, CalendarHost]]:
    """Return the hosts with their groups, by group and then by name."""
    named = [(str(getattr(host, group)), host) for host in hosts]
    return sorted(named, key=lambda one: (one[0], one[1].name, one[1].id))


def _free(conn: Connection, caller: Caller, period: Period, points: int) -> tuple[tuple[Point, ...], int]:
    """Return how many hosts are free for the caller's project along time, and how many there are."""
    everything = HostRequest(AllOf(()), period, 0, 0, project_id=caller.project_id)
    demand = free_times.of_hosts(conn, everything, Horizon(period, period.start), 0, period.start)
    span = (free_times.seconds(period.start), free_times.seconds(period.end))
    return tuple(free_counts.points(demand.level(), span, points)), len(demand.gaps.numbers)
