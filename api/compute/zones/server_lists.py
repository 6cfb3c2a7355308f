"""Lists of servers over the zones below, by reservation_id or with recurse_zones."""

from typing import Any

from flask import request

from api.compute import validation
from api.compute.zones import link_rewriting, routing, zone_chain
from api.paging import Page, next_links, unknown_marker
from api.request_context import caller, compute, here
from climate.compute.zones import listing
from climate.compute.zones.client_interface import ChildRequest
from climate.compute.zones.listing import ChildServers, ServerFilter

Body = dict[str, Any]

NOT_PASSED_ON = frozenset({"limit", "marker", "all_tenants", "project_id", "tenant_id", "user_id", "host", "node"})
"""Conditions with another meaning in other zones."""


def is_recursive() -> bool:
    """Return whether the list includes servers of child zones."""
    return bool(request.args.get("reservation_id")) or validation.query_flag("recurse_zones")


def joined(local: list[Body], links: Body, page: Page, *, is_local_marker: bool) -> Body:
    """Return the page of local servers, followed by servers of child zones if there is room for them.

    Administrators of this zone also see which child zones did not answer.
    """
    if links or not is_recursive():
        return {"servers": local} | links
    result = listing.gather(compute(), _request(), _query())
    below = result.servers
    if page.marker is not None and not is_local_marker:
        below = _after(below, page.marker)
    room = page.limit - len(local)
    servers = [*local, *(link_rewriting.listed(server) for server in below[:room])]
    more = {"servers_links": next_links(here(), servers[-1]["id"], page)} if len(below) > room and servers else {}
    return {"servers": servers} | more | _silent(result)


def _after(servers: list[Body], marker: str) -> list[Body]:
    ids = [server["id"] for server in servers]
    if marker not in ids:
        raise unknown_marker(marker)
    return servers[ids.index(marker) + 1 :]


def _silent(gathered: ChildServers) -> Body:
    if not gathered.silent or not zone_chain.sees_hosts():
        return {}
    return {"unreachable_zones": [{"id": zone.id, "api_url": zone.api_url} for zone in gathered.silent]}


def _query() -> ServerFilter:
    build_id = request.args.get("reservation_id")
    if not caller().is_admin:
        return ServerFilter(caller().project_id, build_id)
    everybody = validation.query_flag("all_tenants")
    project = (request.args.get("project_id") or request.args.get("tenant_id")) if everybody else None
    if project is None and not (everybody or build_id):
        project = caller().project_id
    return ServerFilter(project, build_id)


def _request() -> ChildRequest:
    query = {key: value for key, value in request.args.items() if key not in NOT_PASSED_ON}
    if _query().project_id is None:
        query["all_tenants"] = "1"
    path = "/servers/detail" if request.path.endswith("/detail") else "/servers"
    return ChildRequest(
        "GET",
        path,
        query=query | {"recurse_zones": "true"},
        headers=routing.headers(),
        chain=zone_chain.chain(),
    )
