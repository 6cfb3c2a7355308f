"""Estimates: capacity of a cell for the servers of a build, before the build is sent there."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import monotonic
from uuid import uuid4

from climate.compute.cells.builds import request as build_request
from climate.compute.cells.builds.request import Build
from climate.compute.cells.messaging import send
from climate.compute.cells.messaging.dispatch import CellContext, Handlers
from climate.compute.cells.messaging.messages import Message
from climate.compute.context import Compute
from climate.compute.errors import ComputeError
from climate.compute.models.request import BootRequest
from climate.compute.zones.builds import selection
from climate.database.connections import reading

ESTIMATE = "estimate_run_instance"
"""Method of a cell that returns how many servers of a build fit there."""


def estimate(context: CellContext, message: Message, kwargs: Mapping[str, object]) -> int:
    """Return the number of servers of a build that fit in this cell now; nothing is reserved.

    Raise CellError for a flavor, image or network that is not here.
    """
    build = build_request.read(kwargs)
    with reading(context.compute.engine) as conn:
        request = build_request.boot_request(conn, build)
    return selection.room(context.compute, replace(request, least=1))


def draft(compute: Compute, request: BootRequest, cell: str | None) -> Build:
    """Return a build for an estimate of the cell at a path; its ids belong to no server."""
    ids = [str(uuid4()) for _ in range(request.count)]
    with reading(compute.engine) as conn:
        return replace(build_request.build_of(conn, request, "r-estimate", ids), cell=cell)


def capacities(compute: Compute, builds: Sequence[Build]) -> list[int | ComputeError]:
    """Return the capacity for each of these builds in its cell, or the error; all are asked in parallel."""
    seconds = compute.cells.call_timeout
    until = monotonic() + seconds
    sent = [_send(compute, build, seconds) for build in builds]
    return [one if isinstance(one, ComputeError) else _room(compute, one, until) for one in sent]


def _send(compute: Compute, build: Build, seconds: float) -> str | ComputeError:
    try:
        return send.start_call(compute, build.cell or "", ESTIMATE, build.to_kwargs(), seconds)
    except ComputeError as error:
        return error


def _room(compute: Compute, uuid: str, until: float) -> int | ComputeError:
    try:
        return int(send.wait(compute, uuid, max(0.0, until - monotonic())) or 0)
    except ComputeError as error:
        return error


HANDLERS = Handlers(targeted={ESTIMATE: estimate}, queries={ESTIMATE: lambda kwargs: True})
