"""Servers: asked for, listed, shown, renamed and deleted."""

import secrets
from collections.abc import Mapping
from typing import Any

from flask import request

from api.body import read_object
from api.compute import asked, server_body, server_view
from api.compute.blueprint import compute_blueprint
from api.compute.server_body import Wanted
from api.current import caller, climate, deployment, request_id
from api.paging import Page, next_links, page, unknown_marker
from climate.compute import Compute, asking
from climate.compute import boot as compute_boot
from climate.compute.server import DELETE, Server
from climate.compute.store import servers, wishes
from climate.compute.store.servers import ServerQuery
from climate.domain.errors import Forbidden, NotFound
from climate.service import boot as leased_boot

Body = dict[str, Any]

blueprint = compute_blueprint("servers")


def compute() -> Compute:
    return deployment().compute


def by() -> dict[str, str]:
    """Who asks, for the list of what was asked of a server."""
    return {"project_id": caller().project_id, "user_id": caller().user_id, "request_id": request_id()}


@blueprint.post("/servers")
def create() -> tuple[Body, int]:
    """Boot servers: at once, on a lease by `reservation`, or asleep until a lease by `reserved`."""
    asked.may_write()
    wanted = server_body.read(read_object())
    made = _reserve(wanted) if wanted.reserved else _boot(wanted)
    if wanted.build_id_only:
        return {"reservation_id": made[0].build_id}, 202
    first = made[0]
    answer = {
        "id": first.id,
        "links": server_view.links(f"servers/{first.id}"),
        "OS-DCF:diskConfig": "MANUAL",
        "security_groups": [server_view.DEFAULT_GROUP],
        "adminPass": secrets.token_urlsafe(9),
    }
    return {"server": answer}, 202


def _boot(wanted: Wanted) -> list[Server]:
    for reservation in wanted.reservations:
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
    return {"servers": [server_view.full(server) for server in found]} | links


@blueprint.get("/servers/<server_id>")
def show(server_id: str) -> Body:
    """One server."""
    return {"server": server_view.full(find(server_id))}


@blueprint.put("/servers/<server_id>")
def rename(server_id: str) -> Body:
    """Give a server another name."""
    asked.may_write()
    body = asked.part(read_object(), "server")
    server = find(server_id)
    if "name" in body:
        with compute().engine.begin() as conn:
            servers.rename(conn, server.id, asked.name(body["name"]), compute().now(conn))
    return {"server": server_view.full(find(server_id))}


@blueprint.delete("/servers/<server_id>")
def delete(server_id: str) -> tuple[str, int]:
    """Delete a server; it is seen until that is done."""
    asked.may_write()
    asking.ask(compute(), asked.path_id(server_id), DELETE, project_id=asked.own_project(), by=by())
    return "", 204


@blueprint.get("/servers/<server_id>/metadata")
def metadata(server_id: str) -> Body:
    """The metadata of a server."""
    return {"metadata": dict(find(server_id).metadata)}


@blueprint.post("/servers/<server_id>/metadata")
def add_metadata(server_id: str) -> Body:
    """Add to the metadata of a server, or change it."""
    asked.may_write()
    added = asked.metadata(asked.part(read_object(), "metadata"))
    return {"metadata": _set_metadata(server_id, added)}


@blueprint.delete("/servers/<server_id>/metadata/<key>")
def drop_metadata(server_id: str, key: str) -> tuple[str, int]:
    """Take one key out of the metadata of a server."""
    asked.may_write()
    if key not in find(server_id).metadata:
        raise NotFound("Metadata item was not found")
    _set_metadata(server_id, {key: None})
    return "", 204


@blueprint.get("/servers/<server_id>/os-instance-actions")
def asked_of(server_id: str) -> Body:
    """What was asked of a server, newest first."""
    server = find(server_id)
    with compute().engine.connect() as conn:
        notes = wishes.notes(conn, server.id)
    return {"instanceActions": [_action(server, note) for note in notes]}


def find(server_id: str) -> Server:
    """The server in a path, which must be the caller's or the caller an administrator."""
    asked.may_read()
    return asking.get(compute(), asked.path_id(server_id), asked.own_project())


def _set_metadata(server_id: str, changes: Mapping[str, str | None]) -> dict[str, str]:
    own = find(server_id)
    with compute().engine.begin() as conn:
        server = servers.get(conn, own.id, lock=True)
        if server is None:
            raise NotFound(f"Instance {server_id} could not be found.")
        merged = {key: value for key, value in {**server.metadata, **changes}.items() if value is not None}
        servers.set_metadata(conn, server.id, asked.metadata(merged), compute().now(conn))
    return merged


def _listed() -> tuple[list[Server], Body]:
    asked.may_read()
    wanted = page()
    query = _query(wanted)
    with compute().engine.connect() as conn:
        if wanted.marker is not None:
            last = servers.get(conn, asked.uuid(wanted.marker, "marker"))
            if last is None or query.project_id not in (None, last.project_id):
                raise unknown_marker(wanted.marker)
        found = servers.listed(conn, query)
    more, found = len(found) > wanted.limit, found[: wanted.limit]
    url = f"{deployment().settings.base_url}{request.path}"
    return found, {"servers_links": next_links(url, found[-1].id, wanted)} if more else {}


def _query(wanted: Page) -> ServerQuery:
    args, admin = request.args, caller().is_admin
    everybody = asked.query_flag("all_tenants")
    if everybody and not admin:
        raise Forbidden("Policy doesn't allow os_compute_api:servers:index:get_all_tenants to be performed.")
    theirs = args.get("project_id") or args.get("tenant_id")
    status = args.get("status")
    return ServerQuery(
        project_id=theirs if everybody else caller().project_id,
        name=args.get("name") or None,
        status=status.upper() if status else None,
        host=(args.get("host") or args.get("node")) if admin else None,
        user_id=args.get("user_id") if admin else None,
        image=args.get("image") or None,
        flavor=args.get("flavor") or None,
        ip=args.get("ip") or None,
        marker=wanted.marker,
        limit=wanted.limit + 1,
    )


def _action(server: Server, note: Body) -> Body:
    return {
        "action": note["action"],
        "instance_uuid": server.id,
        "request_id": note["request_id"],
        "user_id": note["user_id"],
        "project_id": note["project_id"],
        "start_time": f"{note['started_at']:%Y-%m-%dT%H:%M:%S.%f}",
        "updated_at": f"{note['started_at']:%Y-%m-%dT%H:%M:%S.%f}",
        "message": note["message"],
    }
