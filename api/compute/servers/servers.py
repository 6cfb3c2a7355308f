"""Servers: create, list, show, update and delete."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.cells import lease_boot as cell_lease_boot
from api.compute.microversion import since
from api.compute.servers import list_query, request_body, reserved_servers, view
from api.compute.servers.request_body import ServerRequest
from api.compute.servers.server_bodies import CHANGED
from api.compute.servers.view import ServerDetails
from api.compute.zones import lease_boot as zone_lease_boot
from api.compute.zones import routing, server_lists, zone_chain
from api.paging import next_links, page, unknown_marker
from api.request_context import caller, climate, compute, here, request_id
from climate.compute import server_operations
from climate.compute.cells.builds import start
from climate.compute.cells.builds.start import Sleep
from climate.compute.errors import NotFound
from climate.compute.models.node import Service
from climate.compute.models.server import DELETE, Server
from climate.compute.network.operations import security_groups
from climate.compute.nodes import services
from climate.compute.servers import create as compute_boot
from climate.compute.servers import user_data_and_actions, volume_attachments
from climate.compute.servers.create import Offered
from climate.compute.servers.interfaces.interfaces import Requester
from climate.compute.zones.builds import placement, single_shot
from climate.compute.zones.builds.placement import ChildRoute, Make
from climate.compute.zones.builds.single_shot import FirstServer
from climate.service.leases import lease_servers

Body = dict[str, object]

blueprint = compute_blueprint("servers")


def who(server_id: str) -> Requester:
    """Return the user who acts on the server in a path."""
    return Requester(validation.path_id(server_id), validation.own_project(), by())


def by() -> dict[str, str]:
    """Return the requester for the record of actions."""
    return {"project_id": caller().project_id, "user_id": caller().user_id, "request_id": request_id()}


@blueprint.post("/servers")
def create() -> tuple[Body, int]:
    """Boot servers: at once, on a lease by `reservation`, or asleep until a lease by `reserved`."""
    validation.may_write()
    wanted = request_body.read(read_object())
    made = boot(wanted)
    if wanted.build_id_only:
        return {"reservation_id": made.reservation_id}, 202
    answer = {
        "id": made.server_id,
        "links": view.links(f"servers/{made.server_id}"),
        "OS-DCF:diskConfig": wanted.request.disk_config,
        "security_groups": [{"name": name} for name in wanted.security_groups],
        "adminPass": view.password(wanted.password),
    }
    return {"server": answer}, 202


def boot(request: ServerRequest) -> FirstServer:
    """Return the first server of a request, in this zone or in a child."""
    if compute().cells.is_api:
        return _in_a_cell(request)
    parts = zone_lease_boot.parts(request_body.admit(request))
    order = request.order
    if order is not None:
        make = _reserved_at(request) if request.reserved else _booted_at(request)
        made = placement.place(compute(), request.request, order, ChildRoute(zone_chain.chain(), parts), make)
        return FirstServer(made, order.reservation_id)
    if request.reserved:
        return single_shot.reserve(compute(), request.request, lambda: _reserve(request), zone_chain.chain())
    return single_shot.boot(compute(), request.request, zone_chain.chain(), parts)


def _in_a_cell(request: ServerRequest) -> FirstServer:
    """Return the first server of a request, in the cells of its lease or in those that the cell scheduler chooses.

    A reserved server and its lease are in the cell that was chosen.
    """
    sleep = Sleep(request.lease_params) if request.reserved else None
    aimed = cell_lease_boot.cell_request(request)
    if aimed.cell_builds:
        started = start.split(compute(), aimed.request, aimed.cell_builds)
    else:
        started = start.start(compute(), aimed.request, sleep, aimed.cell)
    return FirstServer(started.server_ids[0], started.build_id)


def _booted_at(request: ServerRequest) -> Make:
    return lambda offered: compute_boot.place(compute(), request.request, offered)[0]


def _reserved_at(request: ServerRequest) -> Make:
    return lambda offered: _reserve(request, offered)


def _reserve(request: ServerRequest, offered: Offered | None = None) -> Server:
    made: list[Server] = []

    def reserve_server(server_id: str) -> None:
        made.append(compute_boot.reserve(compute(), request.request, server_id, offered))

    lease_servers.reserve(climate(), caller(), request.lease_params, reserve_server)
    return made[0]


@blueprint.get("/servers")
def listing() -> Body:
    """List servers by name and id only."""
    servers, page_of = _listed()
    return page_of([view.brief(server) for server in servers])


@blueprint.get("/servers/detail")
def detailed() -> Body:
    """List servers with all details."""
    servers, page_of = _listed()
    known = behind(servers)
    return page_of([view.full(server, known) for server in servers])


@blueprint.get("/servers/<server_id>")
def show(server_id: str) -> Body:
    """One server."""
    server = find(server_id)
    return {"server": view.full(server, behind([server]))}


@blueprint.put("/servers/<server_id>")
def describe(server_id: str) -> Body:
    """Update the name, the description or the access addresses of a server."""
    validation.may_write()
    words = CHANGED.read(read_object())
    server = server_operations.describe(compute(), who(server_id), words)
    return {"server": view.changed(server, behind([server]))}


@blueprint.delete("/servers/<server_id>")
def delete(server_id: str) -> tuple[str, int]:
    """Delete a server, which is listed until that is done.  The lease of a reserved server ends with it."""
    validation.may_write()
    reserved_servers.end_reservation(server_id)
    server_operations.request_task(compute(), who(server_id), DELETE)
    return "", 204


def find(server_id: str) -> Server:
    """Return the server in a path; it must belong to the caller's project unless the caller is an administrator."""
    validation.may_read()
    found_id = validation.path_id(server_id)
    routing.answer_known(found_id)
    return server_operations.get(compute(), found_id, validation.own_project())


def _listed() -> tuple[list[Server], Callable[[list[Body]], Body]]:
    """Return the servers of this zone on the requested page, and the body with their views."""
    validation.may_read()
    wanted = page(may_be_empty=True)
    query = list_query.listing(wanted)
    if wanted.marker is not None:
        query = replace(query, marker=validation.uuid(wanted.marker, "marker"))
    is_local = True
    try:
        servers = server_operations.listed(compute(), query)
    except NotFound:  # the marker may be a server of a child zone
        if not server_lists.is_recursive():
            raise unknown_marker(str(wanted.marker)) from None
        servers, is_local = [], False
    more, servers = 0 < wanted.limit < len(servers), servers[: wanted.limit]
    links: Body = {"servers_links": next_links(here(), servers[-1].id, wanted)} if more else {}
    return servers, lambda views: server_lists.joined(views, links, wanted, is_local_marker=is_local)


def behind(servers: Sequence[Server]) -> ServerDetails:
    """Return what the caller's role and microversion add to these servers."""
    attached = volume_attachments.of_servers(compute(), [server.id for server in servers])
    groups = _group_names(servers)
    if not (caller().is_admin and since(3)):
        return ServerDetails(volumes=attached, security_groups=groups)
    hosts = {service.host: _state(service) for service in services.listed(compute())} if since(16) else {}
    user_data = user_data_and_actions.user_data(compute(), [server.id for server in servers])
    return ServerDetails(hosts, user_data, attached, groups)


def _group_names(servers: Sequence[Server]) -> dict[str, list[str]]:
    """Return the names of the security groups of those servers that have others than `default` alone."""
    chosen = [server for server in servers if server.security_groups is not None]
    groups_of = security_groups.named(compute(), chosen) if chosen else {}
    return {server_id: [group.name for group in groups] for server_id, groups in groups_of.items()}


def _state(service: Service) -> str:
    if service.forced_down:
        return "DOWN"
    if not service.up:
        return "UNKNOWN"
    return "UP" if service.enabled else "MAINTENANCE"
