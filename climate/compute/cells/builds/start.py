"""Start of a build at the API cell: its servers get their ids here, and a cell boots them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import Connection

from climate.compute.cells.builds import request as build_request
from climate.compute.cells.builds import scheduler, top_cell_servers
from climate.compute.cells.builds.request import Build
from climate.compute.cells.messaging import send
from climate.compute.context import Compute
from climate.compute.models.request import BootRequest
from climate.compute.servers import create


class Started(NamedTuple):
    """Build on its way to a cell."""

    build_id: str
    server_ids: tuple[str, ...]


class Sleep(NamedTuple):
    """RESERVED server that waits for a lease of its cell."""

    lease_params: object


class CellBuild(NamedTuple):
    """Servers of a request that go to one cell."""

    cell: str
    """Path of the cell."""
    hints: Mapping[str, object]
    """Hints of the request as that cell interprets them."""
    number: int
    """Number of its servers."""


def start(compute: Compute, request: BootRequest, sleep: Sleep | None = None, cell: str | None = None) -> Started:
    """Store the servers of a request at the top cell, and pass the request to the scheduler of cells.

    `cell`: path of the only possible cell. Raise BadRequest for values that cannot be resolved at the API cell, and
    QuotaExceeded.
    """
    build_id = create.new_build_id(compute)
    with compute.engine.begin() as conn:
        ids = tuple(top_cell_servers.begun(compute, conn, request, build_id))
        build = build_request.build_of(conn, request, build_id, ids)
        if sleep is not None:
            build = replace(build, reserved=True, lease_params=sleep.lease_params)
        _send(compute, conn, replace(build, cell=cell))
    return Started(build_id, ids)


def split(compute: Compute, request: BootRequest, cell_builds: Sequence[CellBuild]) -> Started:
    """Store the servers of a request at the top cell, and send those of each cell there as a separate build.

    The quota applies to the whole request; if it allows fewer servers, the last builds are reduced. Raise BadRequest
    for values that cannot be resolved at the API cell, and QuotaExceeded.
    """
    build_id = create.new_build_id(compute)
    with compute.engine.begin() as conn:
        ids = tuple(top_cell_servers.begun(compute, conn, request, build_id))
        spare, first = max(0, len(ids) - request.least), 0
        for planned in cell_builds:
            mine = ids[first : first + planned.number]
            if mine:
                least = max(1, len(mine) - spare)
                part = replace(request, hints=planned.hints, count=len(mine), least=least)
                # Two builds that pass through one cell are distinguished by their ids.
                build = build_request.build_of(conn, part, create.new_build_id(compute) if first else build_id, mine)
                _send(compute, conn, replace(build, cell=planned.cell, whole=len(ids), first=first))
            first += len(mine)
    return Started(build_id, ids)


def _send(compute: Compute, conn: Connection, build: Build) -> None:
    if not scheduler.CellScheduler().sent_at_once(compute, conn, build):
        # The cells process retries, and reports the error.
        send.cast(compute, conn, compute.cells.name, scheduler.RUN_INSTANCE, build.to_kwargs())
