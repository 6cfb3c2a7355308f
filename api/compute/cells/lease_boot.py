"""Boot of servers on leases with hosts in other cells: the request goes to the cell that has the reservation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from api.compute.servers.request_body import ServerRequest
from api.request_context import caller, climate, compute
from climate.compute.cells.builds import estimate
from climate.compute.cells.builds.start import CellBuild
from climate.compute.errors import ComputeError
from climate.compute.models.request import BootRequest
from climate.domain.errors import Conflict, InvalidInput, NotFound, Unavailable
from climate.domain.lease import Lease
from climate.domain.lease_part import Part
from climate.domain.status import PartState
from climate.service.leases import lease_servers


@dataclass(frozen=True, slots=True)
class CellRequest:
    """A request for servers, and the path of the cell that must build them; None: any cell."""

    request: BootRequest
    cell: str | None = None
    cell_builds: tuple[CellBuild, ...] = ()
    """Cells among which the servers are divided if no cell has room for all."""


def cell_request(request: ServerRequest) -> CellRequest:
    """Return the request with the reservation ids of the cell that has the hosts of the lease.

    A reservation that no lease of this cell has may belong to a cell below, which
    checks it.  Raises the errors of `climate.service.leases.lease_servers.admit` for leases of this
    cell, and Conflict if no cell of the lease has room.
    """
    leases = _leases(request)
    if not leases:
        return CellRequest(request.request)
    if len(request.reservations) > 1:
        raise InvalidInput("On a lease with parts in cells, servers are booted on one reservation at a time")
    ((reservation, lease),) = leases.items()
    parts = [part for part in lease.reservation(UUID(reservation)).parts if part.cell]
    there = [_cell_request(request.request, part) for part in parts if part.state is PartState.CONFIRMED]
    if not there:
        raise Conflict(f"The reservation {reservation} has no hosts in a cell: nothing can boot on it here")
    return there[0] if len(there) == 1 else _with_room(there)


def _leases(request: ServerRequest) -> dict[str, Lease]:
    """Return the leases of this cell by reservation."""
    result = {}
    for reservation in request.reservations:
        try:
            result[reservation] = lease_servers.admit(climate(), caller(), reservation)
        except NotFound:
            continue
    return result


def _cell_request(request: BootRequest, part: Part) -> CellRequest:
    hints = {**request.hints, "reservation": str(part.reservation_id)}
    return CellRequest(replace(request, hints=hints), part.cell)


def _with_room(there: list[CellRequest]) -> CellRequest:
    """Return the first cell with room for all servers, or several cells that have room for enough of them together."""
    result = estimate.capacities(compute(), [estimate.draft(compute(), one.request, one.cell) for one in there])
    rooms = [(one, 0 if isinstance(room, ComputeError) else room) for one, room in zip(there, result, strict=True)]
    request = there[0].request
    for one, room in rooms:
        if room >= request.count:
            return one
    if sum(room for _, room in rooms) >= request.least:
        return _divided(request, rooms)
    if all(isinstance(room, ComputeError) for room in result):
        raise Unavailable("No cell of the lease answers: try again")
    message = "; ".join(f"cell {one.cell}: room for {room}" for one, room in rooms)
    raise Conflict(f"The cells of the lease have no room for {request.least} servers: {message}")


def _divided(request: BootRequest, rooms: Sequence[tuple[CellRequest, int]]) -> CellRequest:
    """Divide the servers over as few cells as possible."""
    cell_builds, left = [], request.count
    for one, room in sorted(rooms, key=lambda pair: -pair[1]):
        if (count := min(room, left)) > 0:
            cell_builds.append(CellBuild(one.cell or "", one.request.hints, count))
            left -= count
    return CellRequest(replace(request, count=request.count - left), cell_builds=tuple(cell_builds))
