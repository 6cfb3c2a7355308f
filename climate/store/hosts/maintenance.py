"""Maintenance windows, and the allocations that keep their time free on their hosts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    delete,
    func,
    insert,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import Range

from climate.database.sql_arrays import in_array
from climate.domain.errors import InvalidInput, NotFound
from climate.domain.hosts.maintenance_facts import (
    FoldedWindow,
    WindowBegun,
    WindowChanged,
    WindowClosed,
    WindowPlanned,
    fold,
)
from climate.domain.period import Period
from climate.domain.policy import Caller
from climate.store import locks
from climate.store.journal import journal
from climate.store.leases import healing_waits, row_consistency
from climate.store.tables.hosts import hosts, windows
from climate.store.tables.leases import allocations, has, in_force

NO_END = datetime(2199, 12, 31, tzinfo=UTC)
"""End of the calendar, for a window without a known end."""


class WindowState(StrEnum):
    PLANNED = "planned"
    ACTIVE = "active"
    DONE = "done"
    CANCELLED = "cancelled"


PLANNED, ACTIVE, DONE, CANCELLED = WindowState

HELD_AS = {PLANNED: "held", ACTIVE: "active"}
"""State of the allocation that keeps the time of an open window free; that of closed windows is released."""


@dataclass(frozen=True, slots=True)
class Window:
    """A maintenance window of a host."""

    id: UUID
    host: int
    name: str
    """Name of the host."""
    during: Period
    reason: str
    state: WindowState
    created_by: str
    created_at: datetime
    updated_at: datetime | None = None
    move_servers: bool = False
    """True if servers are migrated away from the host during the window."""

    @property
    def standing(self) -> FoldedWindow:
        """Return the part of it that its facts record."""
        return FoldedWindow(self.host, self.during, self.reason, str(self.state), self.move_servers)

    @property
    def end(self) -> datetime | None:
        """Return the end, or None if it is not known."""
        return None if self.during.end == NO_END else self.during.end

    @property
    def is_open(self) -> bool:
        """Return whether the window is planned or active."""
        return self.state in (PLANNED, ACTIVE)


def row_of(window_id: UUID, standing: FoldedWindow) -> dict[str, object]:
    """Return the columns of a window that its facts determine."""
    during = range_literal(standing.during)
    return {
        "id": window_id,
        "host": standing.host,
        "during": during,
        "reason": standing.reason,
        "state": standing.state,
        "move_servers": standing.move_servers,
    }


def allocation_of(window_id: UUID, standing: FoldedWindow) -> dict[str, object]:
    """Return the allocation that keeps the time of a window free on its host."""
    shared = {"slots": 0, "vcpus": 0, "memory_mb": 0, "disk_gb": 0}
    during, state = range_literal(standing.during), kept_as(standing.state)
    own = {"host": standing.host, "during": during, "kind": "maintenance", "state": state}
    return {"reservation_id": None, "window_id": window_id, **own, **shared}


def kept_as(state: str) -> str:
    """Return the state of the allocation of a window in that state."""
    return HELD_AS.get(WindowState(state), "released")


def range_literal(period: Period) -> str:
    """Return a period in the database's notation."""
    return f'["{period.start}","{period.end}")'


def add(conn: Connection, author: Caller, window: Window) -> None:
    """Create a window and keep its time free. Nothing else may hold the host then, and its row must be locked."""
    origin = {"created_by": window.created_by, "created_at": window.created_at}
    conn.execute(insert(windows).values(**row_of(window.id, window.standing), **origin))
    conn.execute(insert(allocations).values(allocation_of(window.id, window.standing)))
    planned = WindowPlanned(window.created_at, window.host, window.during, window.reason, window.move_servers)
    journal.append_next(conn, author, [(window.id, planned)])


def get(conn: Connection, window_id: UUID, *, lock: bool = False) -> Window:
    """Return a window; with `lock` its row is locked until the transaction ends."""
    query = _WINDOWS.where(windows.c.id == window_id)
    row = conn.execute(locks.ordered(query, windows.c.id) if lock else query).one_or_none()
    if row is None:
        raise no_window(window_id)
    return _window(row)


def no_window(window_id: UUID) -> NotFound:
    return NotFound(f"Object with {{'maintenance_id': '{window_id}'}} not found")


@dataclass(frozen=True, slots=True)
class WindowFilter:
    """Filter and page of a list of windows."""

    host: int | None = None
    states: tuple[WindowState, ...] = (PLANNED, ACTIVE)
    marker: UUID | None = None
    limit: int | None = None


def listed(conn: Connection, filters: WindowFilter) -> list[Window]:
    """Return windows in the order of their creation. Raise InvalidInput for an unknown marker."""
    query = _WINDOWS.where(windows.c.state.in_(filters.states)).order_by(windows.c.created_at, windows.c.id)
    query = query if filters.host is None else query.where(windows.c.host == filters.host)
    if filters.marker is not None:
        place = select(windows.c.created_at, windows.c.id).where(windows.c.id == filters.marker)
        row = conn.execute(place).one_or_none()
        if row is None:
            raise InvalidInput(f"marker {filters.marker} is not the id of a maintenance window")
        query = query.where(tuple_(windows.c.created_at, windows.c.id) > tuple_(row.created_at, row.id))
    return [_window(row) for row in conn.execute(query.limit(filters.limit))]


def beginning(conn: Connection, now: datetime) -> list[Window]:
    """Return planned windows that are due to begin, locked; skip those that others are changing."""
    due = _WINDOWS.where(begins(now))
    return _locked(conn, due)


def ending(conn: Connection, now: datetime) -> list[Window]:
    """Return active windows whose time is over, locked; skip those that others are changing."""
    due = _WINDOWS.where(ends(now))
    return _locked(conn, due)


def begins(now: datetime | ColumnElement[datetime]) -> ColumnElement[bool]:
    """Return the condition that a planned window is due to begin."""
    return and_(windows.c.state == PLANNED, func.lower(windows.c.during) <= now)


def ends(now: datetime | ColumnElement[datetime]) -> ColumnElement[bool]:
    """Return the condition that the time of an active window is over."""
    return and_(windows.c.state == ACTIVE, func.upper(windows.c.during) <= now)


def _locked(conn: Connection, due: Select[*tuple[object, ...]]) -> list[Window]:
    """Lock those of the windows that nobody has locked, in the order of the numbers of their hosts."""
    rows = conn.execute(locks.ordered(due, windows.c.id, skip_locked=True))
    return sorted((_window(row) for row in rows), key=lambda window: window.host)


def lock_open(conn: Connection, host: int) -> list[UUID]:
    """Lock the open windows of a host and return their ids. Call this before the host is locked."""
    return locks.lock_windows(conn, windows.c.host == host, has(windows.c.state, PLANNED, ACTIVE))


def active_on(conn: Connection, numbers: Collection[int]) -> frozenset[int]:
    """Return those of the hosts that are in maintenance now."""
    query = select(windows.c.host).where(in_array(windows.c.host, sorted(numbers)), windows.c.state == ACTIVE)
    return frozenset(conn.scalars(query))


def moving(conn: Connection, numbers: Collection[int]) -> frozenset[int]:
    """Return those of the hosts that are in maintenance now, with their servers to be migrated away."""
    query = select(windows.c.host).where(windows.c.host.in_(sorted(numbers)), windows.c.state == ACTIVE)
    return frozenset(conn.scalars(query.where(windows.c.move_servers)))


def begin(conn: Connection, author: Caller, ids: Sequence[UUID], now: datetime) -> None:
    """Mark these windows as active."""
    if ids:
        conn.execute(update(windows).where(windows.c.id.in_(ids)).values(state=ACTIVE, updated_at=now))
        conn.execute(update(allocations).where(allocations.c.window_id.in_(ids)).values(state=kept_as(ACTIVE)))
        journal.append_next(conn, author, [(window_id, WindowBegun(now)) for window_id in ids])


def close(conn: Connection, author: Caller, ids: Sequence[UUID], state: WindowState, now: datetime) -> None:
    """Close windows that ended or were cancelled, and release their hosts."""
    if ids:
        conn.execute(update(windows).where(windows.c.id.in_(ids)).values(state=state, updated_at=now))
        conn.execute(update(allocations).where(allocations.c.window_id.in_(ids)).values(state=kept_as(state)))
        journal.append_next(conn, author, [(window_id, WindowClosed(now, str(state))) for window_id in ids])
        healing_waits.wake(conn)


def change(conn: Connection, author: Caller, after: Window, now: datetime) -> None:
    """Update a window; as for `add`, nothing else may hold the host then."""
    own = _range(after.during)
    kept = update(allocations).where(allocations.c.window_id == after.id)
    conn.execute(kept.values(during=own))
    changed = update(windows).where(windows.c.id == after.id)
    conn.execute(changed.values(during=own, reason=after.reason, updated_at=now, move_servers=after.move_servers))
    changed_to = WindowChanged(now, after.during, after.reason, after.move_servers)
    journal.append_next(conn, author, [(after.id, changed_to)])
    healing_waits.wake(conn)


def refuse_tampered(conn: Connection, window: Window) -> None:
    """Raise Tampered unless a locked window matches its facts."""
    known = journal.of_window(journal.read(conn, window.id))
    row_consistency.refuse(f"maintenance window {window.id}", window.standing, fold(known) if known else None)


def others(conn: Connection, window: Window) -> list[Window]:
    """Return the open windows of its host that overlap with it."""
    query = _WINDOWS.where(windows.c.host == window.host, windows.c.id != window.id)
    query = query.where(has(windows.c.state, PLANNED, ACTIVE), windows.c.during.overlaps(_range(window.during)))
    return [_window(row) for row in conn.execute(query.order_by(windows.c.during))]


def stop_cleaning(conn: Connection, host: int, during: Period) -> None:
    """Release cleaning times of a host: cleaning does not continue during maintenance."""
    a = allocations
    mine = (a.c.host == host, a.c.kind == "cleaning", in_force(a), a.c.during.overlaps(_range(during)))
    conn.execute(delete(a).where(*mine, func.lower(a.c.during) >= during.start))
    conn.execute(update(a).where(*mine).values(during=func.tstzrange(func.lower(a.c.during), during.start)))


def _range(period: Period) -> Range[datetime]:
    return Range(period.start, period.end)


_WINDOWS: Select[*tuple[object, ...]] = select(windows, hosts.c.hypervisor_hostname).join(
    hosts, hosts.c.id == windows.c.host
)


def _window(row: Row[*tuple[object, ...]]) -> Window:
    return Window(
        id=row.id,
        host=row.host,
        name=row.hypervisor_hostname,
        during=Period(row.during.lower, row.during.upper),
        reason=row.reason,
        state=WindowState(row.state),
        created_by=row.created_by,
        created_at=row.created_at,
        updated_at=row.updated_at,
        move_servers=row.move_servers,
    )
