"""Maintenance windows: no allocation crosses them, and existing ones are moved to other hosts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput, InvalidPeriod
from climate.domain.facts import HostMoved, PoolCause
from climate.domain.hosts import pools
from climate.domain.hosts.maintenance_facts import fold
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.notifications import Notice
from climate.domain.period import Period
from climate.domain.policy import Caller, require
from climate.service.host_operations.leases_off_host import ClearRequest, clear, lock_leases, when
from climate.service.host_operations.recovery import Return, return_hosts
from climate.service.host_operations.round_settings import AUTHOR
from climate.service.hosts import reconcile
from climate.service.hosts.inventory import number
from climate.service.hosts.move_checks import clash
from climate.service.leases.reallocation import Outcome
from climate.service.notifications import delivery
from climate.service.transaction import run
from climate.store.hosts import health, maintenance, pool_membership
from climate.store.hosts.maintenance import ACTIVE, CANCELLED, DONE, NO_END, PLANNED, Window, WindowFilter, WindowState
from climate.store.journal import journal
from climate.store.journal.journal import Entry
from climate.store.leases import event_claims

GRACE = timedelta(minutes=1)
"""Maximum time in the past at which a window may start, for clients without seconds."""

LONGEST_REASON = 1000

WORKED_ON = "worked on: "
"""Prefix of the reasons of hosts that are in maintenance for a window, and return when it is over."""


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """Request for a window. No `start` means now; no `end` means that it is unknown.

    With `force`, leases that hold the host then get other hosts, or lose it. With `version`, the version of its
    membership, the window is created only if nobody has moved the host since. With `move_servers`, servers that
    are then on the host are moved elsewhere.
    """

    host_id: str
    start: datetime | None
    end: datetime | None
    reason: str
    force: bool = False
    version: int | None = None
    move_servers: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """Window, and the leases that were moved for it."""

    window: Window
    moved: tuple[Outcome, ...] = ()


def plan(climate: Climate, caller: Caller, order: WindowRequest, *, dry_run: bool = False) -> Planned:
    """Create a maintenance window of a host."""
    return plan_all(climate, caller, [order], dry_run=dry_run)[0]


def plan_all(
    climate: Climate, caller: Caller, orders: Sequence[WindowRequest], *, dry_run: bool = False
) -> list[Planned]:
    """Create windows for all of the hosts, or for none.

    Raises Conflict with the leases that hold one then, or, with `force`, those that cannot be moved. Another
    window at that time is a conflict too.
    """
    require(caller, "maintenances:post")
    planned = run(climate, _insert_windows, climate, caller, orders, keep=not dry_run)
    return [_followed(climate, one, dry_run) for one in planned]


def _insert_windows(
    conn: Connection, climate: Climate, caller: Caller, orders: Sequence[WindowRequest]
) -> list[Planned]:
    now = climate.now(conn)
    asked = [(order, _window(caller, order, pool_membership.get(conn, number(order.host_id)), now)) for order in orders]
    locked = lock_leases(conn, (window for order, window in asked if order.force))
    hosts = frozenset(window.host for _, window in asked)
    return [
        _planned(conn, climate, order, ClearRequest(window, caller, order.force, now, hosts, locked))
        for order, window in asked
    ]


def _window(caller: Caller, order: WindowRequest, place: HostPlace, now: datetime) -> Window:
    _refuse_moved(order, place)
    during, reason = _period(order, now), _reason(order.reason)
    window = Window(uuid4(), place.host, place.name, during, reason, PLANNED, caller.user_id, now)
    return replace(window, move_servers=order.move_servers)


def _planned(conn: Connection, climate: Climate, order: WindowRequest, request: ClearRequest) -> Planned:
    window, moved = request.window, clear(conn, climate, request)
    if not moved:  # otherwise its lease released it
        _refuse_moved(order, pool_membership.get(conn, window.host, lock=True))
    maintenance.add(conn, request.author, window)
    delivery.notify(conn, request.now, _notice(window, f"is in maintenance {when(window.during)}"))
    return Planned(window, moved)


def _refuse_moved(order: WindowRequest, place: HostPlace) -> None:
    if order.version not in (None, place.version):
        raise clash([place])


def _followed(climate: Climate, planned: Planned, dry_run: bool) -> Planned:
    if not dry_run:
        reconcile.send_moves(climate, [place for outcome in planned.moved for place in outcome.moved])
    return planned


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of a window; None leaves a field unchanged. `open_end`: the end is unknown again."""

    start: datetime | None = None
    start_now: bool = False
    end: datetime | None = None
    open_end: bool = False
    reason: str | None = None
    force: bool = False
    move_servers: bool | None = None


def change(climate: Climate, caller: Caller, window_id: UUID, changes: Changes, *, dry_run: bool = False) -> Planned:
    """Change a window that is not over; raise Conflict as for a new one, InvalidInput for an active one's start."""
    require(caller, "maintenances:put")
    planned = run(climate, _change_window, climate, caller, window_id, changes, keep=not dry_run)
    return _followed(climate, planned, dry_run)


def _change_window(conn: Connection, climate: Climate, caller: Caller, window_id: UUID, changes: Changes) -> Planned:
    now, window = climate.now(conn), _open(conn, window_id)
    during = _changed(window, changes, now)
    reason = window.reason if changes.reason is None else _reason(changes.reason)
    moved_away = window.move_servers if changes.move_servers is None else changes.move_servers
    after = replace(window, during=during, reason=reason, updated_at=now, move_servers=moved_away)
    moved = _cleared(conn, climate, ClearRequest(after, caller, changes.force, now)) if during != window.during else ()
    maintenance.change(conn, caller, after, now)
    if window.state is ACTIVE:
        _record_new_end(conn, caller, after, now)
    return Planned(after, moved)


def _cleared(conn: Connection, climate: Climate, request: ClearRequest) -> tuple[Outcome, ...]:
    locked = lock_leases(conn, [request.window]) if request.force else frozenset()
    return clear(conn, climate, replace(request, locked=locked))


def end(climate: Climate, caller: Caller, window_id: UUID, *, dry_run: bool = False) -> Window:
    """End or cancel a window: the host's time is free again, and it returns as soon as possible.

    Does nothing for a window that is over.
    """
    require(caller, "maintenances:delete")
    window = run(climate, _end_window, climate, caller, window_id, keep=not dry_run)
    if window.state is DONE and not dry_run:
        return_hosts(climate, _hosts_to_return(climate), _back(caller))
    return window


def _end_window(conn: Connection, climate: Climate, caller: Caller, window_id: UUID) -> Window:
    now, window = climate.now(conn), maintenance.get(conn, window_id, lock=True)
    if not window.is_open:
        return window
    state = DONE if window.state is ACTIVE else CANCELLED
    maintenance.refuse_tampered(conn, window)
    maintenance.close(conn, caller, [window.id], state, now)
    return replace(window, state=state, updated_at=now)


def get(climate: Climate, caller: Caller, window_id: UUID, at: datetime | None = None) -> Window:
    """Return a window as it is, or as it was `at` a time; raise NotFound also before it was planned."""
    require(caller, "maintenances:get")
    return run(climate, _then, window_id, at)


def _then(conn: Connection, window_id: UUID, at: datetime | None) -> Window:
    window = maintenance.get(conn, window_id)
    if at is None:
        return window
    known = journal.until(journal.read(conn, window_id), at)
    if not known:
        raise maintenance.no_window(window_id)
    then = fold(journal.of_window(known))
    changed = known[-1].fact.at if len(known) > 1 else None
    said = replace(window, during=then.during, reason=then.reason, move_servers=then.move_servers)
    return replace(said, state=WindowState(then.state), updated_at=changed)


def history(climate: Climate, caller: Caller, window_id: UUID) -> list[Entry]:
    """Return the facts of a window with their authors."""
    require(caller, "maintenances:get")
    return run(climate, _read_history, window_id)


def _read_history(conn: Connection, window_id: UUID) -> list[Entry]:
    return journal.read(conn, maintenance.get(conn, window_id).id)


def listed(climate: Climate, caller: Caller, filters: WindowFilter) -> list[Window]:
    """Return windows in one statement, in the order of creation."""
    require(caller, "maintenances:get")
    return run(climate, maintenance.listed, filters)


def _open(conn: Connection, window_id: UUID) -> Window:
    window = maintenance.get(conn, window_id, lock=True)
    if not window.is_open:
        raise Conflict(f"The maintenance window is {window.state}: only one that is planned or active can be changed")
    maintenance.refuse_tampered(conn, window)
    return window


def _period(order: WindowRequest, now: datetime) -> Period:
    start = now if order.start is None else order.start
    if start < now - GRACE:
        raise InvalidPeriod("Start date must be later than current date")
    return _ending(start, order.end, now)


def _changed(window: Window, changes: Changes, now: datetime) -> Period:
    known = window.during.start
    start = now if changes.start_now else changes.start or known
    if start != known and window.state is ACTIVE:
        raise InvalidInput("Cannot modify the start date of a maintenance window that has begun")
    if start != known and start < now - GRACE:
        raise InvalidPeriod("Start date must be later than current date")
    return _ending(start, None if changes.open_end else changes.end or window.end, now)


def _ending(start: datetime, end: datetime | None, now: datetime) -> Period:
    if end is not None and end <= now:
        raise InvalidPeriod("End date must be later than current date")
    if max(start, end or start) >= NO_END:
        raise InvalidPeriod(f"Dates must be earlier than {NO_END:%Y-%m-%d}; leave the end out where it is not known")
    return Period(start, end or NO_END)


def _reason(text: str) -> str:
    if not text.strip() or len(text) > LONGEST_REASON:
        raise InvalidInput(f"reason must be a text of 1 to {LONGEST_REASON} characters")
    return text.strip()


def _notice(window: Window, what: str) -> Notice:
    body = {"maintenance_id": str(window.id), "reason": window.reason}
    return Notice("host.maintenance", f"Host {window.name} {what}: {window.reason}", host=window.host, body=body)


def run_round(climate: Climate) -> None:
    """Begin due windows, and return the hosts whose window is over.

    Waits for a host whose last lease is still being ended. Cancels a window whose time has passed meanwhile,
    because the next one of its host may be due.
    """
    reconcile.send_moves(climate, run(climate, _begin, climate))
    run(climate, _end, climate)
    return_hosts(climate, _hosts_to_return(climate), _back(AUTHOR))


def _begin(conn: Connection, climate: Climate) -> list[HostPlace]:
    now = climate.now(conn)
    due = maintenance.beginning(conn, now)
    numbers = {window.host for window in due}
    present = pool_membership.of(conn, numbers, lock=True)
    waited_for = health.being_ended(conn, numbers, now) if numbers else frozenset()
    missed = [w for w in due if present[w.host].removed or w.during.end <= now]
    maintenance.close(conn, AUTHOR, [w.id for w in missed], CANCELLED, now)
    begun = [w for w in due if w.host not in waited_for and w not in missed]
    maintenance.begin(conn, AUTHOR, [w.id for w in begun], now)
    moved = _move(conn, [(w, present[w.host]) for w in begun], now)
    health.doubt(conn, dict.fromkeys((place.host for place in moved), None))
    return moved


def _move(conn: Connection, begun: Sequence[tuple[Window, HostPlace]], now: datetime) -> list[HostPlace]:
    """Record the moves of the hosts of these windows."""
    tokens = event_claims.tokens(conn, len(begun)) if begun else []
    moves = [
        (place, [pools.move(place, _moved(window, place, now, token))])
        for (window, place), token in zip(begun, tokens, strict=True)
    ]
    return pool_membership.record(conn, AUTHOR, moves)


def _moved(window: Window, place: HostPlace, now: datetime, token: int) -> HostMoved:
    reason, cause = WORKED_ON + window.reason, PoolCause.WINDOW
    return HostMoved(now, Pool.MAINTENANCE, reason, token, place.reservation_id, window.end, cause)


def _record_new_end(conn: Connection, author: Caller, window: Window, now: datetime) -> None:
    """Record the new end of maintenance of a host that is already in it."""
    place = pool_membership.get(conn, window.host, lock=True)
    if place.pool is Pool.MAINTENANCE:
        pool_membership.record(conn, author, [(place, [_moved(window, place, now, place.token)])])


def _end(conn: Connection, climate: Climate) -> None:
    now = climate.now(conn)
    maintenance.close(conn, AUTHOR, [window.id for window in maintenance.ending(conn, now)], DONE, now)


def _hosts_to_return(climate: Climate) -> frozenset[int]:
    """Return hosts that are in maintenance for a window, although none of theirs is active."""
    return run(climate, _maintenance_hosts)


def _maintenance_hosts(conn: Connection) -> frozenset[int]:
    there = {p.host for p in pool_membership.listed(conn, Pool.MAINTENANCE) if p.cause is PoolCause.WINDOW}
    return frozenset(there) - maintenance.active_on(conn, there) if there else frozenset()


def _back(author: Caller) -> Return:
    return Return(author, "the work on it is done", "host.maintenance")
