"""Start of a build at the API cell: its servers get their ids here, and a cell boots them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection

from climate.compute.cells.builds import request as build_request
from climate.compute.cells.builds import scheduler, top_cell
from climate.compute.cells.builds.request import Build
from climate.compute.cells.messaging import send
from climate.compute.context import Compute
from climate.compute.models.request import BootRequest
from climate.compute.servers import create


class Started(NamedTuple):
    """A build on its way to a cell."""

    build_id: str
    server_ids: tuple[str, ...]


class Sleep(NamedTuple):
    """A server that is to wait for a lease of the cell that it is in."""

    lease_params: Any


class Share(NamedTuple):
    """Servers of a request that go to one cell."""

    cell: str
    """Path of the cell."""
    hints: Mapping[str, Any]
    """The hints of the request as that cell understands them."""
    number: int
    """Of its servers."""


def start(compute: Compute, request: BootRequest, sleep: Sleep | None = None, cell: str | None = None) -> Started:
    """Store the servers of a request at the top cell, and hand the request to the scheduler of cells.

    With `cell` the request goes to the cell at that path.  Raises BadRequest for what cannot be followed from the API
    cell, and QuotaExceeded.
    """
    build_id = create.new_build_id(compute)
    with compute.engine.begin() as conn:
        ids = tuple(top_cell.begun(compute, conn, request, build_id))
        build = build_request.made(conn, request, build_id, ids)
        if sleep is not None:
            build = replace(build, reserved=True, lease_params=sleep.lease_params)
        _send(compute, conn, replace(build, cell=cell))
    return Started(build_id, ids)


def split(compute: Compute, request: BootRequest, shares: Sequence[Share]) -> Started:
    """Store the servers of a request at the top cell, and send each share of them to its cell as a build of its own.

    The request counts against the quota as a whole; where that allows fewer servers, the last shares are cut.
    Raises BadRequest for what cannot be followed from the API cell, and QuotaExceeded.
    """
    build_id = create.new_build_id(compute)
    with compute.engine.begin() as conn:
        ids = tuple(top_cell.begun(compute, conn, request, build_id))
        spare, first = max(0, len(ids) - request.least), 0
        for share in shares:
            mine = ids[first : first + share.number]
            if mine:
                least = max(1, len(mine) - spare)
                part = replace(request, hints=share.hints, count=len(mine), least=least)
                # A cell that two shares pass through knows them apart by their ids.
                build = build_request.made(conn, part, create.new_build_id(compute) if first else build_id, mine)
                _send(compute, conn, replace(build, cell=share.cell, whole=len(ids), first=first))
            first += len(mine)
    return Started(build_id, ids)


def _send(compute: Compute, conn: Connection, build: Build) -> None:
    if not scheduler.CellScheduler().sent_at_once(compute, conn, build):
        # The cells process tries again, and tells what is wrong.
        send.cast(compute, conn, compute.cells.name, scheduler.RUN_INSTANCE, build.to_kwargs())
