"""All that reservations could have of what is free, for a choice together with the others of their lease.

Nothing is locked here. Whoever chooses locks the rows of the choice, and reads the candidates again in a new statement.
If the choice is not possible any more, the caller chooses again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection

from climate.domain.facts import FOREVER
from climate.domain.hosts.matching import NO_ROOMS, Demand
from climate.domain.hosts.min_cost_flow import Whole
from climate.domain.hosts.packing import Rooms, Slots
from climate.domain.period import Period
from climate.store.allocation import floating_ips, inventories, resource_classes, shared_capacity
from climate.store.allocation.floating_ips import AddressRequest
from climate.store.allocation.host_queries import parameters
from climate.store.allocation.hosts import HostRequest
from climate.store.allocation.inventories import AmountRequest
from climate.store.allocation.shared_capacity import CapacityRequest
from climate.store.allocation.shared_capacity_queries import PARTS

DURING, AFTER = "during", "after"
"""Storage until the lease's end, and for ever after it: volumes that are kept need both."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Demand of a reservation, with what it could have."""

    demand: Demand
    rooms: Rooms = field(default_factory=lambda: NO_ROOMS)
    """What is free of the shared ones among the candidates."""
    names: Mapping[int, str] = field(default_factory=dict)
    """Addresses by their numbers."""


def of_hosts(conn: Connection, request: HostRequest) -> Candidates:
    """Return the free hosts that match."""
    statement = request.statements.candidates
    levels = {row.id: row.level for row in conn.execute(statement, parameters(request))}
    return Candidates(Whole(list(levels), request.least, request.most, frozenset(request.must), levels))


def of_capacity(conn: Connection, request: CapacityRequest) -> Candidates:
    """Return the hosts with room for a slot, and all that is free on them."""
    order = request.order
    rows = shared_capacity.candidates(conn, request)
    rooms: dict[int, dict[str, int]] = {row.id: dict(zip(PARTS, row[1:], strict=True)) for row in rows}
    if request.classes and rooms:
        known = resource_classes.free(
            conn, list(rooms), request.classes, request.window, request.own, request.classes_beside
        )
        for host, room in rooms.items():
            room.update(known.get(host, {}))
    size = {**dict(zip(PARTS, order.size.parts, strict=True)), **request.classes}
    return Candidates(Slots(list(rooms), order.amount, size, order.affinity, order.kept), rooms)


def of_addresses(conn: Connection, request: AddressRequest) -> Candidates:
    """Return the free addresses of the network. Raise Short if a required one is not free."""
    names = {one.number: one.address for one in floating_ips.free(conn, request)}
    required = {number for number, name in names.items() if name in request.required}
    must = frozenset({*request.must, *required})
    return Candidates(Whole(list(names), request.amount, request.amount, must), names=names)


def of_amounts(conn: Connection, request: AmountRequest, until: Period) -> Candidates:
    """Return the inventories of the class; `until` is the window of reservations that keep nothing after their end."""
    during = inventories.rooms(conn, replace(request, window=until))
    rooms = {room.number: {DURING: room.free} for room in during}
    size = {DURING: request.piece}
    if request.window.end >= FOREVER:
        later = inventories.rooms(conn, replace(request, window=Period(until.end, FOREVER)))
        for room in later:
            rooms.setdefault(room.number, {})[AFTER] = room.free
        size[AFTER] = request.piece
    had = request.present or {}
    caps = {room.number: had.get(room.number, 0) for room in during if room.closed}
    kept = had if request.must else {}
    return Candidates(Slots([room.number for room in during], request.pieces, size, None, kept, caps), rooms)
