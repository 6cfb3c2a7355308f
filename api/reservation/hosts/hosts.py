"""Hosts that can be reserved: register, list, show, update and delete."""

from datetime import datetime

from flask.typing import ResponseReturnValue

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation import pages
from api.reservation.dates import maybe, stamp
from api.reservation.hosts.schema import HostAnswer, HostChanges, HostOrder, HostsAnswer, Registering, capabilities
from api.reservation.leases.request_options import DryRun, Repeatable, key_of
from api.reservation.leases.schema import LeaseAt
from api.reservation.view_decorator import PREFIX, Operation, Read, nothing, serve
from climate.service.hosts import inventory
from climate.service.hosts.inventory import RegistrationOptions
from climate.store.hosts.hosts import Host

blueprint = Blueprint("os-hosts", __name__, url_prefix=PREFIX, description="Hosts that can be reserved.")


@serve(blueprint, "GET", "/os-hosts", Operation("oshosts:get", {200: HostsAnswer}, query=pages.Paged))
def list_hosts(query: Read) -> ResponseReturnValue:
    """List hosts."""
    part = pages.requested()
    result = inventory.listed(climate(), caller(), part.marker, part.fetch)
    return pages.listing("hosts", result, part, host_body)


@serve(
    blueprint,
    "POST",
    "/os-hosts",
    Operation(
        "oshosts:post",
        {201: HostAnswer, 200: HostAnswer},
        query=Registering,
        headers=Repeatable,
        body=HostOrder,
        refuses=(404, 409, 422),
        example={"name": "compute-1", "gpu": "a100"},
    ),
)
def register_host(query: Read, headers: Read, body: Read) -> ResponseReturnValue:
    """Register a host of the cloud in the reservation pool; with `drain`, as soon as its last server is gone.

    A dry run answers 200 instead of 201.
    """
    extra = {name: str(value) for name, value in capabilities(body["extra"], removable=False).items()}
    made = inventory.register(climate(), caller(), body["name"], extra, RegistrationOptions(key_of(headers), **query))
    return {"host": host_body(made)}, 200 if query["dry_run"] else 201


@serve(
    blueprint, "GET", "/os-hosts/<host_id>", Operation("oshosts:get", {200: HostAnswer}, query=LeaseAt, refuses=(404,))
)
def show_host(host_id: str, query: Read) -> ResponseReturnValue:
    """Show a host; with `at`, its extra capabilities at that time."""
    return _host_at(host_id, query.get("at"))


def _host_at(host_id: str, at: datetime | None = None) -> Read:
    return {"host": host_body(inventory.get(climate(), caller(), host_id, at))}


@serve(
    blueprint,
    "PUT",
    "/os-hosts/<host_id>",
    Operation(
        "oshosts:put",
        {200: HostAnswer},
        query=DryRun,
        body=HostChanges,
        refuses=(404, 409),
        example={"gpu": "h100", "rack": None},
        shows=_host_at,
    ),
)
def change_host(host_id: str, query: Read, body: Read) -> ResponseReturnValue:
    """Update extra capabilities of a host; null removes one."""
    extra = capabilities(body, removable=True)
    return {"host": host_body(inventory.update(climate(), caller(), host_id, extra, dry_run=query["dry_run"]))}


@serve(
    blueprint,
    "DELETE",
    "/os-hosts/<host_id>",
    Operation("oshosts:delete", {204: None}, query=DryRun, refuses=(404, 409)),
)
def remove_host(host_id: str, query: Read) -> ResponseReturnValue:
    """Delete a host from the reservation pool; the cloud schedules ordinary servers on it again."""
    inventory.remove(climate(), caller(), host_id, dry_run=query["dry_run"])
    return nothing()


def host_body(host: Host) -> dict[str, object]:
    """Return a host as Blazar shows it: its extra capabilities are keys like the others."""
    return {
        **host.extra,
        **host.own,
        "id": str(host.id),
        "created_at": stamp(host.created_at),
        "updated_at": maybe(stamp, host.updated_at),
    }
