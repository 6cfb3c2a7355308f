"""Allocation of capacity on shared hosts for a period; the same two ways as `hosts`.

The quick way locks the rows of the fullest hosts that seem to have capacity and that nobody else is booking. It counts
again in a new statement. It never waits. If that is not enough, the caller repeats the request the patient way. Usage
of a host is counted at every instant of the window, in one statement for all hosts.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, Select
from sqlalchemy.dialects.postgresql import Range

from climate.domain.errors import Busy, NotEnoughHosts
from climate.domain.hosts import shared_capacity
from climate.domain.hosts.requirements import Requirement
from climate.domain.hosts.shared_capacity import Room, Size, SlotRequest, Use
from climate.domain.period import Period
from climate.store import locks
from climate.store.allocation import resource_classes
from climate.store.allocation.hosts import HORIZON, PATIENT_LOOKS, MustWait
from climate.store.allocation.resource_classes import Taken
from climate.store.allocation.shared_capacity_queries import PARTS, Search, search

HORIZON_ROWS = 3000
"""Maximum number of allocations that are read to compute when the request would fit."""


class NotEnoughRoom(NotEnoughHosts):
    """Not enough hosts available"""

    def __init__(self, wanted: "CapacityRequest") -> None:
        super().__init__()
        self.wanted = wanted


@dataclass(frozen=True, slots=True)
class CapacityRequest:
    """Request for slots that are free for the whole `window`."""

    requirement: Requirement
    window: Period
    order: SlotRequest
    own: frozenset[UUID] = frozenset()
    """Reservations whose present slots count as free."""
    beside: Sequence[Use] = ()
    """Uses that this request has just allocated, and that are in no table yet."""
    keep: tuple[int, ...] = field(default=())
    """Hosts to prefer over all others."""
    without: tuple[int, ...] = field(default=())
    """Hosts to exclude."""
    grace: timedelta = timedelta(0)
    """Part of the window that follows the lease's period."""
    soon: bool = False
    """True if hosts that are off may not be up in time."""
    classes: Mapping[str, int] = field(default_factory=dict)
    """Amounts of resource classes per slot."""
    classes_beside: Sequence[Taken] = ()
    """Resource classes that this request has just allocated."""
    project_id: str = ""
    """Project of the request: hosts with authorized projects are for those only."""
    together: frozenset[UUID] = frozenset()
    """Reservations whose whole hosts count as free, because they are chosen together with these slots."""
    giving_way: frozenset[UUID] = frozenset()
    """Reservations of preemptible leases whose hosts count as free, and are taken if no other have room."""

    @property
    def statements(self) -> Search:
        return search(self.requirement, bool(self.giving_way))

    @property
    def must(self) -> tuple[int, ...]:
        """Return the hosts that are in use already; they need not match the requirements any more."""
        return tuple(self.order.kept)


def pick(conn: Connection, request: CapacityRequest, *, patient: bool) -> Mapping[int, int]:
    """Return slots by number of host for the request; the hosts' rows stay locked until the transaction ends.

    Raise TryPatiently if the quick way does not suffice, and Cramped if the patient way does not.
    """
    return _patiently(conn, request) if patient else _quickly(conn, request)


def candidates(conn: Connection, request: CapacityRequest) -> list[Row[int, *tuple[int, ...]]]:
    """Return (number, free sizes) of all hosts with room for a slot, best first."""
    return list(conn.execute(request.statements.candidates, _parameters(request, numbers=None)))


def _quickly(conn: Connection, request: CapacityRequest) -> Mapping[int, int]:
    result = _read_rooms(conn, request, request.statements.quick)
    locks.note_hosts(conn, (room.host for room in result))
    chosen = (
        shared_capacity.choose(_recheck(conn, request, [room.host for room in result]), request.order)
        if result
        else None
    )
    if chosen is None:
        raise MustWait()
    return chosen


def _patiently(conn: Connection, request: CapacityRequest) -> Mapping[int, int]:
    locks.lock_host_allocation(conn)
    for _ in range(PATIENT_LOOKS):
        # With resource classes, the number of hosts that suffice is not known from sizes alone.
        statements = request.statements
        look = statements.ranked if request.classes else statements.best
        seen = shared_capacity.choose(_read_rooms(conn, request, look), request.order)
        if seen is None:
            raise NotEnoughRoom(request)
        locks.lock_hosts(conn, seen)
        chosen = shared_capacity.choose(_recheck(conn, request, list(seen)), request.order)
        if chosen is not None:
            return chosen
    raise Busy("The hosts are being booked by others right now; try again shortly")


def _read_rooms(conn: Connection, request: CapacityRequest, statement: Select[Any]) -> list[Room]:
    return _capped(conn, request, [Room(*row) for row in conn.execute(statement, _parameters(request, numbers=None))])


def _capped(conn: Connection, request: CapacityRequest, rooms: list[Room]) -> list[Room]:
    """Return the rooms, each limited to the slots that the resource classes allow."""
    if not request.classes or not rooms:
        return rooms
    numbers = [room.host for room in rooms]
    fit = resource_classes.fitting(conn, numbers, request.classes, request.window, request.own, request.classes_beside)
    return [Room(room.host, min(room.free, fit.get(room.host, 0))) for room in rooms]


def _recheck(conn: Connection, request: CapacityRequest, numbers: Sequence[int]) -> list[Room]:
    """Return the rooms of locked hosts, in the order given; their suitability is checked again."""
    given = _parameters(request, numbers=sorted(numbers))
    result = {row.id: row.free for row in conn.execute(request.statements.again, given)}
    return _capped(conn, request, [Room(number, result[number]) for number in numbers if number in result])


def _parameters(request: CapacityRequest, *, numbers: Collection[int] | None) -> Mapping[str, object]:
    order, window = request.order, request.window
    return {
        "start": window.start,
        "during": Range(window.start, window.end),
        "own": list(request.own),
        "beside": _json(request.beside),
        "vcpus": order.size.vcpus,
        "memory_mb": order.size.memory_mb,
        "disk_gb": order.size.disk_gb,
        "amount": order.amount,
        "least": order.least,
        "most": order.most,
        "keep": list(request.keep),
        "must": list(request.must),
        "without": list(request.without),
        "soon": request.soon,
        "project_id": request.project_id,
        "numbers": numbers,
        "together": list(request.together),
        "giving_way": list(request.giving_way),
    }


def _json(beside: Sequence[Use]) -> str:
    rows = [
        {
            "host": use.host,
            "begins": use.during.start,
            "ends": use.during.end,
            **dict(zip(PARTS, use.size.parts, strict=True)),
        }
        for use in beside
        if use.size
    ]
    return json.dumps(rows, default=str)


def ends(conn: Connection, request: CapacityRequest) -> list[datetime]:
    """Return the ends of the allocations on the matching hosts, of a bounded number of them."""
    given = {**_parameters(request, numbers=None), "until": request.window.end + HORIZON, "limit": HORIZON_ROWS}
    return [row.ends for row in conn.execute(request.statements.uses, given)]


@dataclass(frozen=True, slots=True)
class Shortage:
    """Explanation of a shortage: number of slots, of matching hosts, and the alternatives."""

    matching: int
    fitting: int
    fits_from: datetime | None = None
    lasts_until: datetime | None = None
    """Time from which slots that are in use are allocated to others."""


def shortage(conn: Connection, request: CapacityRequest) -> Shortage:
    """Return the explanation of a shortage. Read a bounded number of allocations in a bounded future."""
    order, window, statements = request.order, request.window, request.statements
    until = window.end + HORIZON
    given = {**_parameters(request, numbers=None), "least": 1, "until": until, "limit": HORIZON_ROWS}
    capacities = {row.id: Size(*row[1:]) for row in conn.execute(statements.capacities, given)}
    rooms = _capped(conn, request, [Room(*row) for row in conn.execute(statements.rooms, given)])
    shortage = Shortage(len(capacities), shared_capacity.fitting(order, rooms))
    if request.classes:
        return shortage  # Their availability is not computed: a start that fits by size alone may not fit.
    rows = conn.execute(statements.uses, given).all()
    known_until = rows[-1].begins if len(rows) == HORIZON_ROWS else until
    uses = [
        Use(row.host, Period(row.begins, row.ends), Size(*row[-3:]) if row.slots else None)
        for row in rows
        if row.host in capacities  # Other hosts were opened or registered between the two statements.
    ]
    uses += [use for use in request.beside if use.host in capacities]
    if order.kept:
        return replace(shortage, lasts_until=shared_capacity.lasts_until(capacities, uses, order, window))
    return replace(shortage, fits_from=shared_capacity.earliest_fit(capacities, uses, order, window, known_until))
