"""Actions on a server: one key of the body says which."""

from collections.abc import Callable, Mapping
from typing import Any

from flask import Response, jsonify

from api.body import read_object
from api.compute import asked
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.servers import by, compute, find
from api.current import deployment
from climate.compute import asking, lifecycle
from climate.compute.server import REBOOT, RESUME, START, STOP, SUSPEND
from climate.domain.errors import InvalidInput

Action = Callable[[str, Any], Response]

blueprint = compute_blueprint("actions")

WISHES = {"os-start": START, "os-stop": STOP, "reboot": REBOOT, "suspend": SUSPEND, "resume": RESUME}
"""Actions that only want a server to become something."""


@blueprint.post("/servers/<server_id>/action")
def act(server_id: str) -> Response:
    """Do something with a server."""
    body = read_object()
    if len(body) != 1:
        raise InvalidInput(f"The body must name one action; known are {', '.join(sorted(ACTIONS))}")
    name, details = next(iter(body.items()))
    if name not in ACTIONS:
        raise InvalidInput(f"There is no such action: {name[:80]}; known are {', '.join(sorted(ACTIONS))}")
    return ACTIONS[name](asked.path_id(server_id), details)


def _wish(name: str) -> Action:
    def ask(server_id: str, details: Any) -> Response:
        asked.may_write()
        if name == "reboot":
            _check_reboot(details)
        asking.ask(compute(), server_id, WISHES[name], project_id=asked.own_project(), by=by())
        return Response(status=202)

    return ask


def _check_reboot(details: Any) -> None:
    kind = details.get("type") if isinstance(details, dict) else None
    if not isinstance(kind, str) or kind.upper() not in ("SOFT", "HARD"):
        raise InvalidInput("reboot: type must be SOFT or HARD")


def _create_image(server_id: str, details: Any) -> Response:
    asked.may_write()
    if not isinstance(details, dict):
        raise InvalidInput("createImage must be an object")
    name = asked.name(details.get("name"), "createImage.name")
    asked.metadata(details.get("metadata") or {})
    made = asking.snapshot(compute(), server_id, name, project_id=asked.own_project(), by=by())
    answer = jsonify({"image_id": made}) if since(45) else Response()
    answer.status_code = 202
    answer.headers["Location"] = f"{deployment().settings.base_url}/image/v2/images/{made}"
    return answer


def _console(server_id: str, details: Any) -> Response:
    server = find(server_id)
    length = details.get("length") if isinstance(details, dict) else None
    lines = None if length is None or length in (-1, "-1") else asked.count(length, "length")
    if server.node is None:
        return jsonify({"output": ""})
    return jsonify({"output": compute().driver.console(lifecycle.guest(server), lines)})


ACTIONS: Mapping[str, Action] = {name: _wish(name) for name in WISHES} | {
    "createImage": _create_image,
    "os-getConsoleOutput": _console,
}
