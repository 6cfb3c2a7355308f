"""Servers: asked for, listed, shown, renamed and deleted."""

import secrets
from collections.abc import Callable, Sequence
from typing import Any

from api.body import read_object
from api.compute import asked, server_body, server_query, server_view, zone_lease_boot, zone_lists
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.server_body import Wanted
from api.compute.server_view import Behind
from api.compute.zone_lease_boot import BootedElsewhere
from api.current import caller, climate, compute, here, request_id
from api.paging import next_links, page, unknown_marker
from climate.compute import asking, lending, services, upkeep
from climate.compute import boot as compute_boot
from climate.compute.errors import NoValidHost
from climate.compute.host import Service
from climate.compute.server import DELETE, Server
from climate.compute.store import server_lists, servers
from climate.domain.errors import InvalidInput
from climate.service import boot as leased_boot

Body = dict[str, Any]

blueprint = compute_blueprint("servers")

CHANGED = frozenset({"name", "description", "accessIPv4", "accessIPv6"})
IGNORED = frozenset({"OS-DCF:diskConfig", "hostname"})
"""What clients send and what changes nothing here."""


def by() -> dict[str, str]:
    """Who asks, for the list of what was asked of a server."""
    return {"project_id": caller().project_id, "user_id": caller().user_id, "request_id": request_id()}


@blueprint.post("/servers")
def create() -> tuple[Body, int]:
    """Boot servers: at once, on a lease by `reservation`, or asleep until a lease by `reserved`."""
    asked.may_write()
    wanted = server_body.read(read_object())
    made: Sequence[Server | BootedElsewhere] = _reserve(wanted) if wanted.reserved else _boot(wanted)
    if wanted.build_id_only:
        return {"reservation_id": made[0].build_id}, 202
    first = made[0]
    answer = {
        "id": first.id,
        "links": server_view.links(f"servers/{first.id}"),
        "OS-DCF:diskConfig": "MANUAL",
        "security_groups": [server_view.DEFAULT_GROUP],
        "adminPass": wanted.password or secrets.token_urlsafe(9),
    }
    return {"server": answer}, 202


def _boot(wanted: Wanted) -> Sequence[Server | BootedElsewhere]:
    """The servers, made here or, on a lease with parts in child zones and no room here, in one of these."""
    elsewhere = []
    for reservation in wanted.reservations:
        if not lending.is_lent_from_outside(compute(), reservation, caller().project_id):
            lease = leased_boot.admit(climate(), caller(), reservation)
            elsewhere += zone_lease_boot.parts(lease, reservation)
    try:
        return compute_boot.boot(compute(), wanted.request, strict=bool(elsewhere))
    except NoValidHost:
        if not elsewhere:
            raise
        return [zone_lease_boot.boot(wanted, elsewhere)]


def _reserve(wanted: Wanted) -> list[Server]:
    made: list[Server] = []

    def make(server_id: str) -> None:
        made.append(compute_boot.reserve(compute(), wanted.request, server_id))

    leased_boot.reserve(climate(), caller(), wanted.lease_params, make)
    return made


@blueprint.get("/servers")
def listing() -> Body:
    """Servers, by name and id only."""
    found, page_of = _listed()
    return page_of([server_view.brief(server) for server in found])


@blueprint.get("/servers/detail")
def detailed() -> Body:
    """Servers with all there is to know."""
    found, page_of = _listed()
    behind = _behind(found)
    return page_of([server_view.full(server, behind) for server in found])


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
    server = upkeep.describe(compute(), asked.path_id(server_id), words, project_id=asked.own_project())
    return {"server": server_view.full(server, _behind([server]))}


@blueprint.delete("/servers/<server_id>")
def delete(server_id: str) -> tuple[str, int]:
    """Delete a server; it is seen until that is done."""
    asked.may_write()
    asking.ask(compute(), asked.path_id(server_id), DELETE, project_id=asked.own_project(), by=by())
    return "", 204


def find(server_id: str) -> Server:
    """The server in a path, which must be the caller's or the caller an administrator."""
    asked.may_read()
    return asking.get(compute(), asked.path_id(server_id), asked.own_project())


def _listed() -> tuple[list[Server], Callable[[list[Body]], Body]]:
    """The servers of this zone on the page that is asked for, and the body made of their views."""
    asked.may_read()
    wanted = page()
    query = server_query.listing(wanted)
    is_local = True
    with compute().engine.connect() as conn:
        if wanted.marker is not None:
            last = servers.get(conn, asked.uuid(wanted.marker, "marker"))
            is_local = last is not None and query.wanted.get("project_id", last.project_id) == last.project_id
            if not is_local and not (last is None and zone_lists.is_recursive()):
                raise unknown_marker(wanted.marker)
        found = server_lists.listed(conn, query) if is_local else []
    more, found = len(found) > wanted.limit, found[: wanted.limit]
    links = {"servers_links": next_links(here(), found[-1].id, wanted)} if more else {}
    return found, lambda views: zone_lists.joined(views, links, wanted, is_local_marker=is_local)


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
