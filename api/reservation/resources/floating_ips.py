"""Floating IPs that can be reserved: register, list, show and delete them, and list their allocations."""

from collections.abc import Sequence
from functools import partial

from flask.typing import ResponseReturnValue

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation import pages
from api.reservation.dates import maybe, stamp
from api.reservation.hosts.schema import AllocationQuery, OneAllocationQuery
from api.reservation.leases.request_options import DryRun, Repeatable, key_of
from api.reservation.resources import resource_allocations
from api.reservation.resources.floating_ip_schema import (
    AddressAllocationAnswer,
    AddressAllocationsAnswer,
    FloatingIpAnswer,
    FloatingIpOrder,
    FloatingIpsAnswer,
)
from api.reservation.view_decorator import PREFIX, Operation, Read, nothing, serve
from climate.service import floating_ips
from climate.store.floating_ips import Allocated, FloatingIp

blueprint = Blueprint(
    "floatingips", __name__, url_prefix=PREFIX, description="Floating IPs that can be reserved, and their allocations."
)


@serve(blueprint, "GET", "/floatingips", Operation("floatingips:get", {200: FloatingIpsAnswer}, query=pages.Paged))
def list_floating_ips(query: Read) -> ResponseReturnValue:
    """List floating IPs that can be reserved."""
    part = pages.requested()
    result = floating_ips.listed(climate(), caller(), part.marker, part.fetch)
    return pages.listing("floatingips", result, part, floating_ip_body)


@serve(
    blueprint,
    "POST",
    "/floatingips",
    Operation(
        "floatingips:post",
        {201: FloatingIpAnswer, 200: FloatingIpAnswer},
        query=DryRun,
        headers=Repeatable,
        body=FloatingIpOrder,
        refuses=(404, 409, 422),
        example={"floating_network_id": "public", "floating_ip_address": "203.0.113.7"},
    ),
)
def register_floating_ip(query: Read, headers: Read, body: Read) -> ResponseReturnValue:
    """Register an address of an external network as a floating IP that can be reserved.

    A dry run answers 200 instead of 201.
    """
    network, address = body["floating_network_id"], body["floating_ip_address"]
    made = floating_ips.register(climate(), caller(), network, address, key_of(headers), dry_run=query["dry_run"])
    return {"floatingip": floating_ip_body(made)}, 200 if query["dry_run"] else 201


@serve(
    blueprint,
    "GET",
    "/floatingips/allocations",
    Operation("floatingips:allocations", {200: AddressAllocationsAnswer}, query=AllocationQuery),
)
def list_address_allocations(query: Read) -> ResponseReturnValue:
    """List floating IPs that can be reserved, with their current and future reservations."""
    find = partial(floating_ips.allocations, climate(), caller())
    return resource_allocations.listing(find, lambda known, taken: _allocation(known, taken, query))


@serve(
    blueprint,
    "GET",
    "/floatingips/<floatingip_id>",
    Operation("floatingips:get", {200: FloatingIpAnswer}, refuses=(404,)),
)
def show_floating_ip(floatingip_id: str, query: Read) -> ResponseReturnValue:
    """Show a floating IP that can be reserved."""
    return {"floatingip": floating_ip_body(floating_ips.get(climate(), caller(), floatingip_id))}


@serve(
    blueprint,
    "DELETE",
    "/floatingips/<floatingip_id>",
    Operation("floatingips:delete", {204: None}, query=DryRun, refuses=(404, 409)),
)
def remove_floating_ip(floatingip_id: str, query: Read) -> ResponseReturnValue:
    """Delete a floating IP from those that can be reserved."""
    floating_ips.remove(climate(), caller(), floatingip_id, dry_run=query["dry_run"])
    return nothing()


@serve(
    blueprint,
    "GET",
    "/floatingips/<floatingip_id>/allocation",
    Operation("floatingips:allocations", {200: AddressAllocationAnswer}, query=OneAllocationQuery, refuses=(404,)),
)
def show_address_allocation(floatingip_id: str, query: Read) -> ResponseReturnValue:
    """Show one floating IP with its current and future reservations."""
    known, taken = floating_ips.allocation(climate(), caller(), floatingip_id)
    return {"allocation": _allocation(known, taken, query)}


def floating_ip_body(known: FloatingIp) -> dict[str, object]:
    """Return a floating IP as Blazar shows it."""
    return {
        "id": str(known.id),
        "floating_network_id": known.network_id,
        "subnet_id": known.subnet_id,
        "floating_ip_address": known.address,
        "reservable": True,
        "created_at": stamp(known.created_at),
        "updated_at": maybe(stamp, known.updated_at),
    }


def _allocation(known: FloatingIp, taken: Sequence[Allocated], query: Read) -> dict[str, object]:
    shown = [body for _, body in resource_allocations.chosen(taken, query)]
    return {"resource_id": str(known.id), "floating_ip_address": known.address, "reservations": shown}
