"""Migrations of servers with their source, destination and result, for administrators."""

from collections.abc import Callable, Mapping
from datetime import datetime

from flask import request

from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.cells import unreachable_cells
from api.compute.microversion import since
from api.compute.servers import list_query
from api.compute.servers.servers import find
from api.compute.servers.view import links
from api.paging import MOST, Page, next_links, page, unknown_marker
from api.request_context import compute, here
from climate.compute.errors import NotFound
from climate.compute.migrations import evacuation_plan
from climate.compute.migrations import listing as migrations
from climate.compute.models.migration import LIVE, UNDER_WAY, Migration
from climate.domain.errors import InvalidInput
from climate.whole_numbers import whole_number

Body = dict[str, object]

blueprint = compute_blueprint("migrations")

BYTES = tuple(f"{what}_{part}_bytes" for what in ("memory", "disk") for part in ("total", "processed", "remaining"))

FILTERS: Mapping[str, tuple[str, Callable[[object, str], object]]] = {
    "instance_uuid": ("server_id", validation.uuid),
    "host": ("host", validation.name),
    "source_compute": ("source_host", validation.name),
    "status": ("status", validation.name),
    "migration_type": ("type", validation.name),
}
"""Key of the query -> its column, and the function that reads the value."""


@blueprint.get("/os-migrations")
def listing() -> Body:
    """List the migrations of all servers, newest first, in pages since 2.59."""
    validation.may_administer()
    wanted = {name: read(request.args[key], key) for key, (name, read) in FILTERS.items() if request.args.get(key)}
    wanted_page = page() if since(59) else Page(MOST, None, asked=False)
    if since(59):
        wanted |= _changed()
    marker = None if wanted_page.marker is None else validation.uuid(wanted_page.marker, "marker")
    try:
        result = migrations.listed(compute(), wanted, wanted_page.limit + 1, after=marker)
    except NotFound:
        raise unknown_marker(str(wanted_page.marker)) from None
    more, result = len(result) > wanted_page.limit, result[: wanted_page.limit]
    shown: Body = {"migrations": [_view(one) for one in result]}
    return shown | (
        {"migrations_links": next_links(here(), result[-1].uuid, wanted_page)} if more and since(59) else {}
    )


@blueprint.get("/servers/<server_id>/migrations")
def of_server(server_id: str) -> Body:
    """List the running live migrations of a server (2.23)."""
    server = _server(server_id)
    wanted = {"server_id": server, "type": LIVE, "statuses": list(UNDER_WAY)}
    return {"migrations": [_live(one) for one in migrations.listed(compute(), wanted, MOST)]}


@blueprint.get("/servers/<server_id>/migrations/<migration_id>")
def show(server_id: str, migration_id: str) -> Body:
    """Show a running live migration of a server (2.23)."""
    server = _server(server_id)
    number = whole_number(migration_id)
    if number is None:
        raise _unknown(server, migration_id)
    wanted = {"id": number, "server_id": server, "type": LIVE, "statuses": list(UNDER_WAY)}
    result = migrations.listed(compute(), wanted, 1)
    if not result:
        raise _unknown(server, migration_id)
    return {"migration": _live(result[0])}


@blueprint.get("/os-hosts/<name>/moves")
def moves(name: str) -> Body:
    """Preview an evacuation of a host (beyond Nova): the target of each server, or the reason why it cannot move."""
    validation.may_administer()
    unreachable_cells.check_is_here(name)
    return {
        "moves": [
            {
                "server": {"id": step.server.id, "name": step.server.name, "project_id": step.server.project_id},
                "source_node": step.server.node,
                "action": step.action,
                "dest_node": step.node,
                "dest_compute": step.service_host,
                "reason": step.reason,
            }
            for step in evacuation_plan.plan(compute(), name)
        ]
    }


def _server(server_id: str) -> str:
    validation.may_administer()
    if not since(23):
        raise NotFound("The resource could not be found: migrations of a server are shown since 2.23.")
    return find(server_id).id


def _unknown(server_id: str, migration_id: str) -> NotFound:
    return NotFound(f"Migration {migration_id[:40]} for server {server_id} is not live and under way.")


def _changed() -> dict[str, datetime]:
    given: dict[str, datetime] = {}
    if request.args.get("changes-since"):
        given["changed_since"] = list_query.moment("changes-since")
    if since(66) and request.args.get("changes-before"):
        given["changed_before"] = list_query.moment("changes-before")
    if len(given) == 2 and given["changed_since"] > given["changed_before"]:
        raise InvalidInput("The value of changes-since must be less than or equal to changes-before.")
    return given


def _common(one: Migration) -> Body:
    shown: Body = {
        "id": one.id,
        "source_compute": one.source_host,
        "source_node": one.source_node,
        "dest_compute": one.dest_host,
        "dest_node": one.dest_node,
        "dest_host": one.dest_ip,
        "status": one.status,
        "created_at": _time(one.created_at),
        "updated_at": _time(one.updated_at),
    }
    return shown | ({"uuid": one.uuid} if since(59) else {})


def _view(one: Migration) -> Body:
    shown = _common(one) | {
        "instance_uuid": one.server_id,
        "old_instance_type_id": one.old_flavor,
        "new_instance_type_id": one.new_flavor,
    }
    if not since(23):
        return shown
    is_live = one.type == LIVE and one.status in UNDER_WAY
    path = f"servers/{one.server_id}/migrations/{one.id}"
    return shown | {"migration_type": one.type} | ({"links": links(path)} if is_live else {})


def _live(one: Migration) -> Body:
    return _common(one) | {"server_uuid": one.server_id} | {key: one.progress.get(key) for key in BYTES}


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}"
