"""Boots of builds that other cells send, together with the leases of this cell."""

from collections.abc import Sequence
from uuid import UUID

from climate.compute import Compute
from climate.compute.cells.builds import request as build_request
from climate.compute.cells.builds import scheduler
from climate.compute.cells.builds.request import Build
from climate.compute.cells.builds.scheduler import RunHere
from climate.compute.cells.errors import NoCellsAvailable
from climate.compute.errors import BadRequest
from climate.compute.servers import create
from climate.compute.store.cells import messages, resources
from climate.context import Climate
from climate.database.connections import reading
from climate.domain import errors
from climate.domain.policy import ADMIN, Caller
from climate.domain.status import LeaseStatus
from climate.service.leases import lease_servers, leases


def runner(climate: Climate) -> RunHere:
    """Return the boot function of this cell: on a lease by `reservation`, asleep until a lease by `reserved`, or at
    once.
    """

    def run(compute: Compute, build: Build) -> Sequence[str]:
        try:
            if build.reserved:
                return _reserve(climate, compute, build)
            for reservation in build.reservations:
                _admit(climate, build, reservation)
            return scheduler.run_here(compute, build)
        except errors.ClimateError as error:
            raise BadRequest(str(error)) from error

    return run


def _admit(climate: Climate, build: Build, reservation: str) -> None:
    """Raise an error unless the build may use a reservation of this cell.

    A lease of the top cell may start slightly before its part here: NoCellsAvailable makes the build wait.
    """
    try:
        lease_servers.admit(climate, _caller(build), reservation)
    except errors.Conflict as refusal:
        status = leases.of_reservation(climate, _caller(build), UUID(reservation)).status if build.cell else None
        if status in (LeaseStatus.PENDING, LeaseStatus.STARTING):
            raise NoCellsAvailable(str(refusal)) from refusal
        raise


def _reserve(climate: Climate, compute: Compute, build: Build) -> Sequence[str]:
    """Store one server that sleeps, and its lease; once, however often the build arrives."""
    (server_id,) = build.server_ids
    with reading(compute.engine) as conn:
        if messages.is_done(conn, build.build_id) or resources.existing_servers(conn, build.server_ids):
            return build.server_ids
        request = build_request.boot_request(conn, build)

    def reserve_server(made: str) -> None:
        create.reserve(compute, request, made, build_id=build.build_id)

    lease_servers.reserve(climate, _caller(build), build.lease_params, reserve_server, server_id)
    with compute.engine.begin() as conn:
        messages.once(conn, build.build_id)
    return build.server_ids


def _caller(build: Build) -> Caller:
    """Return the user of the top cell that requested the build."""
    roles = frozenset({ADMIN}) if build.admin else frozenset({"member"})
    return Caller(build.user_id, build.project_id, roles, build.request_id)
