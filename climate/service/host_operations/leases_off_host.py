"""Removal of leases from a host for a period: they are moved to other hosts, or reported to the requester."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import Busy, Conflict
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.policy import Caller
from climate.service.leases.reallocation import Case, Outcome, can_reallocate, reallocate_hosts
from climate.store import locks
from climate.store.hosts import health, maintenance, pool_membership
from climate.store.hosts.maintenance import NO_END, Window
from climate.store.leases import leases

MOST_TOLD = 20
WHY = "one of its hosts is in maintenance"


@dataclass(frozen=True, slots=True)
class ClearRequest:
    """Request to clear a host: with `force`, leases are moved to hosts not in `without`, or lose the host."""

    window: Window
    author: Caller
    force: bool
    now: datetime
    without: frozenset[int] = frozenset()
    """Other hosts that are to be in maintenance too."""
    locked: frozenset[UUID] = frozenset()
    """Leases that this transaction has locked."""


def lock_leases(conn: Connection, windows: Iterable[Window]) -> frozenset[UUID]:
    """Lock all leases that overlap these windows, before the first host is locked; return their ids."""
    held = {lease_id for window in windows for lease_id in health.holding(conn, window.host, window.during)}
    return frozenset(locks.lock_leases(conn, held))


def clear(conn: Connection, climate: Climate, request: ClearRequest) -> tuple[Outcome, ...]:
    """Clear the host for the window and lock its row; otherwise raise Conflict with the leases that hold it.

    The leases that `lock_leases` returns must be locked before; Busy is raised for others. Every allocation of a
    host locks its row first, so none can be added in between.
    """
    window, force, now = request.window, request.force, request.now
    locks.lock_host_allocation(conn)
    result = health.holding(conn, window.host, window.during)
    outcomes: tuple[Outcome, ...] = ()
    if result and force:
        if not request.locked.issuperset(result):
            raise Busy("The host is being allocated right now; try again shortly")
        held = list(leases.get_many(conn, sorted(result)).values())
        _refuse_unmovable(window, held, now)
        gone = frozenset({window.host})
        cases = [Case(one, now, request.author, WHY, given_up=gone, without=request.without) for one in held]
        outcomes = tuple(reallocate_hosts(conn, climate, case) for case in cases)
    pool_membership.get(conn, window.host, lock=True)
    left = health.holding(conn, window.host, window.during)
    if left and force:
        raise Busy("The host is being allocated right now; try again shortly")
    if left:
        known = leases.get_many(conn, left)
        raise Conflict(f"Host {window.name} is held {when(window.during)} by {listed([known[one] for one in left])}")
    _refuse_second(conn, window)
    maintenance.stop_cleaning(conn, window.host, window.during)
    return outcomes


def _refuse_unmovable(window: Window, leases: Sequence[Lease], now: datetime) -> None:
    unmovable = [lease for lease in leases if not can_reallocate(lease, now)]
    if unmovable:
        raise Busy(f"Host {window.name} is held by leases that cannot be moved now: {listed(unmovable)}")


def _refuse_second(conn: Connection, window: Window) -> None:
    for other in maintenance.others(conn, window):
        raise Conflict(f"Host {window.name} already has a maintenance window {when(other.during)}: {other.id}")


def listed(leases: Sequence[Lease]) -> str:
    """Format leases by id, name, project and dates, for an admin."""
    shown = [
        f"{lease.id} ({lease.name}, project {lease.project_id}, {when(lease.period)})" for lease in leases[:MOST_TOLD]
    ]
    more = f" and {len(leases) - MOST_TOLD} others" if len(leases) > MOST_TOLD else ""
    return f"{'lease' if len(leases) == 1 else 'leases'} {', '.join(shown)}{more}"


def when(period: Period) -> str:
    """Format a period for people."""
    start = f"from {period.start:%Y-%m-%d %H:%M:%S}"
    return f"{start} UTC on" if period.end == NO_END else f"{start} to {period.end:%Y-%m-%d %H:%M:%S} UTC"
