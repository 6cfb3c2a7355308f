"""Allocations of hosts: the reservations of each host, now and later."""

from collections.abc import Sequence

from flask.typing import ResponseReturnValue

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation import pages
from api.reservation.dates import date
from api.reservation.hosts.schema import AllocationAnswer, AllocationQuery, AllocationsAnswer, OneAllocationQuery
from api.reservation.view_decorator import PREFIX, Operation, Read, serve
from climate.service.hosts import inventory
from climate.store.allocation.hosts import Allocated

blueprint = Blueprint("allocations", __name__, url_prefix=PREFIX, description="Allocations of hosts.")


@serve(
    blueprint,
    "GET",
    "/os-hosts/allocations",
    Operation("oshosts:get_allocations", {200: AllocationsAnswer}, query=AllocationQuery),
)
def list_allocations(query: Read) -> ResponseReturnValue:
    """List hosts with their current and future reservations."""
    part = pages.requested()
    result = inventory.allocations(climate(), caller(), part.marker, part.fetch)
    return pages.listing("allocations", result, part, lambda row: _body(row[0], row[1], query))


@serve(
    blueprint,
    "GET",
    "/os-hosts/<host_id>/allocation",
    Operation("oshosts:get_allocations", {200: AllocationAnswer}, query=OneAllocationQuery, refuses=(404,)),
)
def show_allocation(host_id: str, query: Read) -> ResponseReturnValue:
    """Show one host with its current and future reservations."""
    host, held = inventory.allocation(climate(), caller(), host_id)
    return {"allocation": _body(host, held, query)}


def _body(host: int, held: Sequence[Allocated], query: Read) -> dict[str, object]:
    asked = {"lease_id": query.get("lease_id"), "reservation_id": query.get("reservation_id")}
    shown = [
        {
            "id": str(one.reservation_id),
            "lease_id": str(one.lease_id),
            "start_date": date(one.start),
            "end_date": date(one.end),
        }
        for one in held
        if asked["lease_id"] in (None, str(one.lease_id)) and asked["reservation_id"] in (None, str(one.reservation_id))
    ]
    return {"resource_id": str(host), "reservations": shown}
