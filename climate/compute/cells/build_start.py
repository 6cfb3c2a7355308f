"""Start of a build at the API cell: its servers get their ids here, and a cell boots them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import uuid4

from sqlalchemy import Connection

from climate.compute import boot
from climate.compute.cells import build_request, messaging, scheduler
from climate.compute.context import Compute
from climate.compute.request import BootRequest

Begun = Callable[[Compute, Connection, BootRequest, str], Sequence[str]]
"""Stores the servers of a build at the top cell: (context, transaction, request, build id) -> their ids."""


class Started(NamedTuple):
    """A build on its way to a cell."""

    build_id: str
    server_ids: tuple[str, ...]


class Sleep(NamedTuple):
    """A server that is to wait for a lease of the cell that it is in."""

    lease_params: Any


def unrecorded(compute: Compute, conn: Connection, request: BootRequest, build_id: str) -> Sequence[str]:
    """Return new ids, and store nothing at the top cell."""
    return [str(uuid4()) for _ in range(request.count)]


def start(
    compute: Compute,
    request: BootRequest,
    sleep: Sleep | None = None,
    begun: Begun = unrecorded,
    cell: str | None = None,
) -> Started:
    """Hand a request to the scheduler of cells; with `cell` it goes to the cell at that path.

    Raises BadRequest for what cannot be followed from the API cell, and what `begun` raises.
    """
    build_id = boot.new_build_id()
    with compute.engine.begin() as conn:
        ids = tuple(begun(compute, conn, request, build_id))
        build = build_request.made(conn, request, build_id, ids)
        if sleep is not None:
            build = replace(build, reserved=True, lease_params=sleep.lease_params)
        build = replace(build, cell=cell)
        messaging.cast(compute, conn, compute.cells.name, scheduler.RUN_INSTANCE, build.to_kwargs())
    return Started(build_id, ids)
