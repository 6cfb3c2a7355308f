"""Records of actions on a server: the request, its time, its user and its result."""

from collections.abc import Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any

from flask import request

from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.servers import list_query
from api.compute.servers.servers import find
from api.compute.servers.view import host_id
from api.compute.zones import zone_chain
from api.paging import cut, next_links, page
from api.request_context import caller, compute, here
from climate.compute import errors
from climate.compute.models.server import Server
from climate.compute.servers import user_data_and_actions
from climate.domain.errors import NotFound

Body = dict[str, object]
Note = Mapping[str, Any]

blueprint = compute_blueprint("instance-actions")


@blueprint.get("/servers/<server_id>/os-instance-actions")
def listing(server_id: str) -> Body:
    """List the actions on a server, newest first."""
    own, _ = _subject(server_id)
    notes = user_data_and_actions.actions(compute(), own)
    if not since(58):
        return {"instanceActions": [_action(own, note) for note in notes]}
    wanted = page()
    notes, more = cut([note for note in notes if _changed_then(note)], wanted, itemgetter("request_id"))
    links: Body = {"links": next_links(here(), notes[-1]["request_id"], wanted)} if more else {}
    return {"instanceActions": [_action(own, note) for note in notes]} | links


@blueprint.get("/servers/<server_id>/os-instance-actions/<request_id>")
def show(server_id: str, request_id: str) -> Body:
    """Show one action on a server with its result."""
    own, server = _subject(server_id)
    notes = user_data_and_actions.actions(compute(), own)
    note = next((note for note in notes if note["request_id"] == request_id), None)
    if note is None:
        raise NotFound(f"Action for request_id {request_id[:80]} on instance {own} could not be found.")
    shown = _action(own, note)
    # Before 2.51 the events were for administrators.
    if since(51) or caller().is_admin:
        shown["events"] = [_event(server, note)]
    return {"instanceAction": shown}


def _subject(server_id: str) -> tuple[str, Server | None]:
    """Return the id of the server in a path, and the server; since 2.21 None for one that is deleted."""
    try:
        server = find(server_id)
    except errors.NotFound:
        own = validation.path_id(server_id)
        project_id = user_data_and_actions.owner_of_deleted(compute(), own) if since(21) else None
        if project_id is None or validation.own_project() not in (None, project_id):
            raise
        return own, None
    return server.id, server


def _changed_then(note: Note) -> bool:
    """Return whether the action was updated in the period that the query string gives."""
    moment, given = note["finished_at"] or note["started_at"], request.args
    if given.get("changes-since") and moment < list_query.moment("changes-since"):
        return False
    return not (since(66) and given.get("changes-before") and moment > list_query.moment("changes-before"))


def _action(server_id: str, note: Note) -> Body:
    shown: Body = {
        "action": note["action"],
        "instance_uuid": server_id,
        "request_id": note["request_id"],
        "user_id": note["user_id"],
        "project_id": note["project_id"],
        "start_time": _time(note["started_at"]),
        "message": note["message"],
    }
    return shown | ({"updated_at": _time(note["finished_at"] or note["started_at"])} if since(58) else {})


def _event(server: Server | None, note: Note) -> Body:
    finished = note["finished_at"]
    result = "Error" if note["message"] == user_data_and_actions.FAILED else "Success"
    event: Body = {
        "event": f"compute_{note['action']}",
        "start_time": _time(note["started_at"]),
        "finish_time": _time(finished) if finished else None,
        "result": result if finished else None,
    }
    if caller().is_admin:
        event["traceback"] = None
    if since(62):
        event["hostId"] = host_id(server) if server else ""
        event |= {"host": server.service_host if server else None} if zone_chain.sees_hosts() else {}
    return event


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}"
