"""Sub-leases of a lease: create and list. Each is a lease, which is shown, changed and deleted as one."""

from uuid import UUID

from flask.typing import ResponseReturnValue
from structlog.contextvars import bind_contextvars

from api import unreadable_leases
from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation.dates import NOW
from api.reservation.ids import path_id
from api.reservation.leases import reservation_specs
from api.reservation.leases.lease_view import lease_body
from api.reservation.leases.request_options import DryRun, Repeatable, key_of, tag
from api.reservation.leases.schema import LeaseAnswer
from api.reservation.leases.subleases_schema import EXAMPLE, TERMS, SubleaseBody, SubleasesAnswer
from api.reservation.view_decorator import PREFIX, Operation, Read, serve
from climate.domain.lease import Lease
from climate.service.subleases import create, listing
from climate.service.subleases.create import SubleaseOrder
from climate.store.hosts.hosts import HOST_TYPE

PATH = "/leases/<lease_id>/subleases"

blueprint = Blueprint("subleases", __name__, url_prefix=PREFIX, description="Hosts of leases for other projects.")


@serve(blueprint, "GET", PATH, Operation("leases:get", {200: SubleasesAnswer}, refuses=(404,)))
def list_subleases(lease_id: str, query: Read) -> ResponseReturnValue:
    """List the sub-leases of a lease, oldest first, for members of its project and administrators."""
    found = listing.of_parent(climate(), caller(), _id(lease_id))
    unreadable_leases.warn(found)
    return {"subleases": [lease_body(lease) for lease in found if isinstance(lease, Lease)]}


@serve(
    blueprint,
    "POST",
    PATH,
    Operation(
        "leases:post",
        {201: LeaseAnswer, 200: LeaseAnswer},
        query=DryRun,
        headers=Repeatable,
        body=SubleaseBody,
        refuses=(404, 409, 422),
        example=EXAMPLE,
    ),
)
def create_sublease(lease_id: str, query: Read, headers: Read, body: Read) -> ResponseReturnValue:
    """Create a sub-lease: hosts of the lease for another project, for a part of its time.

    Hosts with servers are taken only after a warning, so an earlier start is refused with 409.  A dry run answers 200
    instead of 201.
    """
    order = SubleaseOrder(
        name=body["name"],
        project_id=body["project_id"],
        user_id=body["user_id"],
        start=None if body["start_date"] == NOW else body["start_date"],
        end=body["end_date"],
        before_end=body["before_end_date"],
        hosts=body["hosts"],
        host_names=tuple(body["host_names"]),
        reservation_id=body["reservation_id"],
        terms=_terms(body),
    )
    made = create.create(climate(), caller(), _id(lease_id), order, key_of(headers), dry_run=query["dry_run"])
    return {"lease": lease_body(made)}, 200 if query["dry_run"] else 201, tag(made.version)


def _terms(body: Read) -> Read:
    """Return the terms of the reservation, as its plugin reads them."""
    given = {name: body[name] for name in TERMS if name in body}
    read = reservation_specs.read_new(climate().plugins, {"resource_type": HOST_TYPE, "min": 1, "max": 1, **given})
    return {name: read[name] for name in given}


def _id(text: str) -> UUID:
    lease_id = path_id(text, f"Object with {{'lease_id': '{text[:80]}'}} not found")
    bind_contextvars(lease_id=str(lease_id))
    return lease_id
