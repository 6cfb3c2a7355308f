"""Start of a build at the API cell: its servers get their ids here, and a cell boots them."""

from dataclasses import replace
from typing import Any, NamedTuple

from climate.compute import boot
from climate.compute.cells import build_request, messaging, scheduler, top_builds
from climate.compute.context import Compute
from climate.compute.request import BootRequest


class Started(NamedTuple):
    """A build on its way to a cell."""

    build_id: str
    server_ids: tuple[str, ...]


class Sleep(NamedTuple):
    """A server that is to wait for a lease of the cell that it is in."""

    lease_params: Any


def start(compute: Compute, request: BootRequest, sleep: Sleep | None = None, cell: str | None = None) -> Started:
    """Store the servers of a request at the top cell, and hand the request to the scheduler of cells.

    With `cell` the request goes to the cell at that path.  Raises BadRequest for what cannot be followed from the API
    cell, and QuotaExceeded.
    """
    build_id = boot.new_build_id()
    with compute.engine.begin() as conn:
        ids = tuple(top_builds.begun(compute, conn, request, build_id))
        build = build_request.made(conn, request, build_id, ids)
        if sleep is not None:
            build = replace(build, reserved=True, lease_params=sleep.lease_params)
        build = replace(build, cell=cell)
        if not scheduler.CellScheduler().sent_at_once(compute, conn, build):
            # The cells process tries again, and tells what is wrong.
            messaging.cast(compute, conn, compute.cells.name, scheduler.RUN_INSTANCE, build.to_kwargs())
    return Started(build_id, ids)
