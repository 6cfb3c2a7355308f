"""Allocation of amounts of inventories for a period.

An amount is allocated under the locked rows of all inventories of its class, read in a new statement and hence a new
snapshot. The quick way never waits: it skips rows that others hold. The patient way waits for them in the order of
their numbers. An advisory lock lets one patient allocation run at a time (climate.store.allocation.hosts).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Connection, Row, Select, Uuid, bindparam, func, or_, select, text
from sqlalchemy.dialects.postgresql import ARRAY, Range

from climate.domain.errors import NotEnoughStorage
from climate.domain.facts import FOREVER, AmountHold
from climate.domain.period import Period
from climate.domain.status import EventKind
from climate.store import locks
from climate.store.allocation.hosts import HORIZON, HORIZON_ROWS, MustWait
from climate.store.tables.inventories import inventories, inventory_allocations
from climate.store.tables.leases import events, has, in_force, reservations

MOST_STARTS = 200
"""Maximum number of later starts that are tried for the explanation of a shortage."""


@dataclass(frozen=True, slots=True)
class AmountRequest:
    """Request for `pieces` of `piece` units each, of one class, for the whole `window`; a piece is not divided."""

    resource_type: str
    resource_class: str
    piece: int
    pieces: int
    window: Period
    own: tuple[UUID, ...] = ()
    """Reservations whose present amounts count as free."""
    present: Mapping[int, int] | None = None
    """Pieces that the reservation has of each inventory now, by its number."""
    must: bool = False
    """True if these are in use and must not move."""
    taken: tuple[AmountHold, ...] = ()
    """Amounts that this request has just allocated, and that are not in the database yet."""


class Short(NotEnoughStorage):
    """Not enough storage available"""

    def __init__(self, wanted: AmountRequest) -> None:
        super().__init__()
        self.wanted = wanted


@dataclass(frozen=True, slots=True)
class Room:
    """A suitable inventory, and the number of its pieces that are free for the whole window."""

    number: int
    total: int
    free: int
    pieces: int
    closed: bool = False
    """True if only those that use it already may have pieces of it."""


_PEAKS = text("""
    WITH held AS (
        SELECT number, amount, GREATEST(lower(during), :start) AS at, upper(during) AS until
        FROM inventory_allocations
        WHERE number = ANY(:numbers) AND state IN ('held', 'active') AND during && tstzrange(:start, :end)
            AND reservation_id <> ALL(:own)),
    edges AS (SELECT number, at, amount FROM held UNION ALL SELECT number, until, -amount FROM held),
    levels AS (
        SELECT number, sum(sum(amount)) OVER (PARTITION BY number ORDER BY at) AS level FROM edges GROUP BY number, at)
    SELECT number, CAST(max(level) AS bigint) AS level FROM levels GROUP BY number
""").bindparams(bindparam("numbers", type_=ARRAY(BigInteger)), bindparam("own", type_=ARRAY(Uuid)))


def peaks(conn: Connection, numbers: Iterable[int], window: Period, own: Sequence[UUID] = ()) -> dict[int, int]:
    """Return the peak usage of each inventory in the window, without reservations of `own`."""
    asked = {"numbers": list(numbers), "own": list(own), "start": window.start, "end": window.end}
    return {row.number: row.level for row in conn.execute(_PEAKS, asked)}


def pick(conn: Connection, request: AmountRequest, *, patient: bool) -> dict[int, int]:
    """Return the number of pieces of each inventory, by its number; their rows stay locked until the transaction ends.

    Raise TryPatiently if the quick way does not suffice, and NotEnoughStorage if the patient way does not.
    """
    if patient:
        locks.lock_host_allocation(conn)
    else:
        locks.note_others(conn)
    suiting = locks.ordered(_suiting(request), inventories.c.number, skip_locked=not patient)
    numbers = [row.number for row in conn.execute(suiting)]
    chosen = _divided(request, _rooms(conn, request, numbers))
    if chosen is None and not patient:
        raise MustWait()
    if chosen is None:
        raise Short(request)
    return chosen


def lock(conn: Connection, numbers: Collection[int]) -> None:
    """Lock the rows of inventories, in the order of their numbers."""
    rows = select(inventories.c.number).where(inventories.c.number.in_(sorted(numbers)))
    conn.execute(locks.ordered(rows, inventories.c.number))


def rooms(conn: Connection, request: AmountRequest) -> list[Room]:
    """Return the suitable inventories: those that the reservation uses first, then the fullest."""
    present = request.present or {}
    known = _rooms(conn, request, [row.number for row in conn.execute(_suiting(request))])
    return sorted(known, key=lambda room: (room.number not in present, room.free, room.number))


def _suiting(request: AmountRequest) -> Any:
    """Return the condition for inventories that are open, or that the reservation uses already."""
    open_or_own = or_(~inventories.c.closed, inventories.c.number.in_(list(request.present or ())))
    return select(inventories.c.number, inventories.c.total, inventories.c.closed).where(
        inventories.c.resource_type == request.resource_type,
        inventories.c.resource_class == request.resource_class,
        inventories.c.removed_at.is_(None),
        open_or_own,
    )


def _rooms(conn: Connection, request: AmountRequest, numbers: Sequence[int]) -> list[Room]:
    """Return the suitable inventories; one may have been changed or removed before its row was locked."""
    rows = conn.execute(_suiting(request).where(inventories.c.number.in_(numbers)).order_by(inventories.c.number)).all()
    taken = peaks(conn, [row.number for row in rows], request.window, request.own)
    return [_room(request, row, taken.get(row.number, 0)) for row in rows]


def _room(request: AmountRequest, row: Row[*tuple[object, ...]], taken: int) -> Room:
    chosen = sum(hold.amount for hold in request.taken if hold.number == row.number)
    free = max(0, row.total - taken - chosen)
    pieces = free // request.piece
    if row.closed:
        pieces = min(pieces, (request.present or {}).get(row.number, 0))
    return Room(row.number, row.total, free, pieces, row.closed)


def _divided(request: AmountRequest, rooms: Sequence[Room]) -> dict[int, int] | None:
    """Return pieces by inventory, or None if there are too few.

    Prefer inventories that the reservation uses already, then the fullest one with enough room, else as few as
    possible.
    """
    chosen = _those_present(request, rooms)
    if chosen is None:
        return None
    left = request.pieces - sum(chosen.values())
    open_ = [replace(room, pieces=room.pieces - chosen.get(room.number, 0)) for room in rooms]
    whole = sorted((room for room in open_ if room.pieces >= left), key=lambda room: (room.free, room.number))
    for room in whole[:1] or sorted(open_, key=lambda room: (-room.pieces, room.number)):
        count = min(room.pieces, left)
        chosen[room.number], left = chosen.get(room.number, 0) + count, left - count
    return None if left else {number: count for number, count in sorted(chosen.items()) if count}


def _those_present(request: AmountRequest, rooms: Sequence[Room]) -> dict[int, int] | None:
    """Return the pieces that the reservation keeps in its inventories; None if one that must not move has to."""
    left, chosen, pieces = request.pieces, dict[int, int](), {room.number: room.pieces for room in rooms}
    for number, had in (request.present or {}).items():
        count = min(had, left, pieces.get(number, 0))
        if request.must and count < min(had, request.pieces):
            return None
        chosen[number], left = count, left - count
    return chosen


@dataclass(frozen=True, slots=True)
class Kept:
    """A reservation that keeps resources after its lease, and the event that ended the lease."""

    reservation_id: UUID
    end_event: UUID


def retained(conn: Connection) -> list[Kept]:
    """Return the reservations that keep resources although their leases have ended."""
    return [Kept(*row) for row in conn.execute(KEPT)]


def _kept_query() -> Select[Any]:
    held, end = inventory_allocations, events
    return (
        select(held.c.reservation_id, end.c.id)
        .join(reservations, reservations.c.id == held.c.reservation_id)
        .join(end, end.c.lease_id == reservations.c.lease_id)
        .where(has(held.c.state, "active"), func.upper(held.c.during) >= FOREVER)
        .where(end.c.kind == EventKind.END, end.c.status == "DONE")
        .distinct()
    )


KEPT = _kept_query()
"""Query of `kept`."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """Explanation of a shortage: total of the class, free amount, and the earliest start that would fit."""

    total: int
    free: int
    fits_from: datetime | None


def shortage(conn: Connection, request: AmountRequest) -> Shortage:
    """Return the explanation of a shortage. Read a bounded number of allocations in a bounded future."""
    rows = conn.execute(_suiting(request)).all()
    rooms = _rooms(conn, request, [row.number for row in rows])
    shortage = Shortage(sum(room.total for room in rooms), sum(room.free for room in rooms), None)
    if request.must or sum(room.total // request.piece for room in rooms) < request.pieces:
        return shortage
    until = FOREVER if request.window.end >= FOREVER else request.window.end + HORIZON
    held = inventory_allocations
    taken = conn.execute(
        select(held.c.number, held.c.amount, func.lower(held.c.during), func.upper(held.c.during))
        .where(held.c.number.in_([row.number for row in rows]), in_force(held))
        .where(held.c.reservation_id.not_in(request.own), held.c.during.overlaps(Range(request.window.start, until)))
        .order_by(func.lower(held.c.during))
        .limit(HORIZON_ROWS)
    ).all()
    known_until = taken[-1][2] if len(taken) == HORIZON_ROWS else until
    return replace(
        shortage,
        fits_from=_earliest(request, rows, [AmountHold(n, a, Period(s, e)) for n, a, s, e in taken], known_until),
    )


def _earliest(
    request: AmountRequest, rows: Sequence[Row[*tuple[object, ...]]], taken: Sequence[AmountHold], known_until: datetime
) -> datetime | None:
    """Return the first later start that fits; candidates are the ends of other allocations."""
    starts = sorted({hold.during.end for hold in taken if hold.during.end > request.window.start})
    for start in starts[:MOST_STARTS]:
        window = _moved(request.window, start)
        if window is None or window.end > known_until:
            return None
        rooms = [_room(request, row, _peak(row.number, taken, window)) for row in rows]
        if _divided(request, rooms) is not None:
            return start
    return None


def _moved(window: Period, start: datetime) -> Period | None:
    """Return the window moved to a later start, with the same length, or still without an end."""
    if window.end < FOREVER:
        return Period(start, start + (window.end - window.start))
    return Period(start, FOREVER) if start < FOREVER else None


def _peak(number: int, taken: Sequence[AmountHold], window: Period) -> int:
    edges: dict[datetime, int] = {}
    for hold in taken:
        if hold.number == number and hold.during.overlaps(window):
            start = max(hold.during.start, window.start)
            edges[start] = edges.get(start, 0) + hold.amount
            edges[hold.during.end] = edges.get(hold.during.end, 0) - hold.amount
    return max(accumulate(edges[at] for at in sorted(edges)), default=0)
