"""Servers: asked for, listed, shown, renamed and deleted."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from api.body import read_object
from api.compute import asked, server_body, server_query, server_view
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.server_body import Wanted
from api.compute.server_view import Behind
from api.current import caller, climate, compute, here, request_id
from api.paging import next_links, page, unknown_marker
from climate.compute import boot as compute_boot
from climate.compute import lending, operations, services
from climate.compute.addressing import Who
from climate.compute.cells import build_start, top_builds
from climate.compute.cells.build_start import Sleep
from climate.compute.errors import NotFound
from climate.compute.host import Service
from climate.compute.server import DELETE, Server
from climate.compute.store import servers
from climate.domain.errors import InvalidInput
from climate.service import boot as leased_boot

Body = dict[str, Any]

blueprint = compute_blueprint("servers")

CHANGED = frozenset({"name", "description", "accessIPv4", "accessIPv6"})
IGNORED = frozenset({"OS-DCF:diskConfig", "hostname"})
"""What clients send and what changes nothing here."""


def who(server_id: str) -> Who:
    """Who changes the server in a path."""
    return Who(asked.path_id(server_id), asked.own_project(), by())


def by() -> dict[str, str]:
    """Who asks, for the list of what was asked of a server."""
    return {"project_id": caller().project_id, "user_id": caller().user_id, "request_id": request_id()}


@blueprint.post("/servers")
def create() -> tuple[Body, int]:
    """Boot servers: at once, on a lease by `reservation`, or asleep until a lease by `reserved`."""
    asked.may_write()
    wanted = server_body.read(read_object())
    build_id, first = _in_a_cell(wanted) if compute().cells.is_api else _here(wanted)
    if wanted.build_id_only:
        return {"reservation_id": build_id}, 202
    answer = {
        "id": first,
        "links": server_view.links(f"servers/{first}"),
        "OS-DCF:diskConfig": "MANUAL",
        "security_groups": [server_view.DEFAULT_GROUP],
        "adminPass": wanted.password or secrets.token_urlsafe(9),
    }
    return {"server": answer}, 202


def _here(wanted: Wanted) -> tuple[str, str]:
    """(id of the build, id of its first server)"""
    made = _reserve(wanted) if wanted.reserved else _boot(wanted)
    return made[0].build_id, made[0].id


def _in_a_cell(wanted: Wanted) -> tuple[str, str]:
    """As `_here`, in the cell that the scheduler of cells chooses; leases are those of that cell."""
    sleep = Sleep(wanted.lease_params) if wanted.reserved else None
    started = build_start.start(compute(), wanted.request, sleep, top_builds.begun)
    return started.build_id, started.server_ids[0]


def _boot(wanted: Wanted) -> list[Server]:
    for reservation in wanted.reservations:
        if not lending.is_lent_from_outside(compute(), reservation, caller().project_id):
            leased_boot.admit(climate(), caller(), reservation)
    return compute_boot.boot(compute(), wanted.request)


def _reserve(wanted: Wanted) -> list[Server]:
    made: list[Server] = []

    def make(server_id: str) -> None:
        made.append(compute_boot.reserve(compute(), wanted.request, server_id))

    leased_boot.reserve(climate(), caller(), wanted.lease_params, make)
    return made


@blueprint.get("/servers")
def listing() -> Body:
    """Servers, by name and id only."""
    found, links = _listed()
    return {"servers": [server_view.brief(server) for server in found]} | links


@blueprint.get("/servers/detail")
def detailed() -> Body:
    """Servers with all there is to know."""
    found, links = _listed()
    behind = _behind(found)
    return {"servers": [server_view.full(server, behind) for server in found]} | links


@blueprint.get("/servers/<server_id>")
def show(server_id: str) -> Body:
    """One server."""
    server = find(server_id)
    return {"server": server_view.full(server, _behind([server]))}


@blueprint.put("/servers/<server_id>")
def describe(server_id: str) -> Body:
    """Give a server another name or description, or say at which addresses it is reached."""
    asked.may_write()
    body = asked.part(read_object(), "server")
    unknown = sorted(set(body) - CHANGED - IGNORED)
    if unknown or not body:
        raise InvalidInput(
            f"server: only {', '.join(sorted(CHANGED))} can be changed, not {', '.join(unknown)[:200]!r}"
        )
    words: dict[str, str | None] = {}
    if "name" in body:
        words["name"] = asked.name(body["name"])
    if "description" in body:
        words["description"] = asked.description(body["description"])
    for version in (4, 6):
        if f"accessIPv{version}" in body:
            words[f"access_ipv{version}"] = asked.address(body[f"accessIPv{version}"], version)
    server = operations.describe(compute(), who(server_id), words)
    return {"server": server_view.full(server, _behind([server]))}


@blueprint.delete("/servers/<server_id>")
def delete(server_id: str) -> tuple[str, int]:
    """Delete a server; it is seen until that is done."""
    asked.may_write()
    operations.ask(compute(), who(server_id), DELETE)
    return "", 204


def find(server_id: str) -> Server:
    """The server in a path, which must be the caller's or the caller an administrator."""
    asked.may_read()
    return operations.get(compute(), asked.path_id(server_id), asked.own_project())


def _listed() -> tuple[list[Server], Body]:
    asked.may_read()
    wanted = page()
    query = server_query.listing(wanted)
    if wanted.marker is not None:
        query = replace(query, marker=asked.uuid(wanted.marker, "marker"))
    try:
        found = operations.listed(compute(), query)
    except NotFound:
        raise unknown_marker(str(wanted.marker)) from None
    more, found = len(found) > wanted.limit, found[: wanted.limit]
    return found, {"servers_links": next_links(here(), found[-1].id, wanted)} if more else {}


def _behind(found: Sequence[Server]) -> Behind:
    """What the caller is shown of these servers besides."""
    if not (caller().is_admin and since(3)):
        return server_view.NOTHING
    hosts = {service.host: _state(service) for service in services.listed(compute())} if since(16) else {}
    with compute().engine.connect() as conn:
        return Behind(hosts, servers.user_data(conn, [server.id for server in found]))


def _state(service: Service) -> str:
    if service.forced_down:
        return "DOWN"
    if not service.up:
        return "UNKNOWN"
    return "UP" if service.enabled else "MAINTENANCE"
