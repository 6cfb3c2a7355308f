"""Actions on a server: the single key of the body names the action."""

from collections.abc import Callable, Mapping

from flask import Response, jsonify
from werkzeug.exceptions import NotImplemented as NoSuchThing

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.servers import addresses, reserved_servers
from api.compute.servers.actions import action_bodies, migrate, resize_and_rebuild, security_groups, shelve_and_lock
from api.compute.servers.admin import live_migrations
from api.compute.servers.servers import find, who
from api.request_context import compute
from climate.compute import server_operations
from climate.compute.errors import Conflict
from climate.compute.models.server import (
    DELETE,
    PAUSE,
    RESUME,
    REVERT,
    REWIRE,
    START,
    STOP,
    SUSPEND,
    UNPAUSE,
    UNRESCUE,
)
from climate.domain.errors import InvalidInput

Action = Callable[[str, object], Response]

blueprint = compute_blueprint("actions")

WISHES = {
    "os-start": START,
    "os-stop": STOP,
    "pause": PAUSE,
    "unpause": UNPAUSE,
    "suspend": SUSPEND,
    "resume": RESUME,
    "revertResize": REVERT,
    "unrescue": UNRESCUE,
    "forceDelete": DELETE,
}
"""Actions without parameters."""

NO_CONSOLES = "Interactive consoles are not supported; use os-getConsoleOutput for the console log."


@blueprint.post("/servers/<server_id>/action")
def act(server_id: str) -> Response:
    """Run an action on a server."""
    body = read_object()
    if len(body) != 1:
        raise InvalidInput(f"The body must name one action; known are {', '.join(sorted(ACTIONS))}")
    name, details = next(iter(body.items()))
    if name not in ACTIONS:
        raise InvalidInput(f"Unknown action {name[:80]!r}; known are {', '.join(sorted(ACTIONS))}")
    own = validation.path_id(server_id)
    try:
        return ACTIONS[name](own, details)
    except Conflict as refusal:
        raise reserved_servers.explained(own, refusal) from None


@blueprint.post("/servers/<server_id>/remote-consoles")
def remote_console(server_id: str) -> Response:
    """Refuse a remote console: none are available."""
    find(server_id)
    raise NoSuchThing(NO_CONSOLES)


def _wish(name: str) -> Action:
    def request_task(server_id: str, details: object) -> Response:
        validation.may_write()
        server_operations.request_task(compute(), who(server_id), WISHES[name])
        return Response(status=202)

    return request_task


def _plug_again(server_id: str, details: object) -> Response:
    """Plug in the interfaces of the server, and configure them, again (administrator)."""
    validation.may_administer()
    server_operations.request_task(compute(), who(server_id), REWIRE)
    return Response(status=202)


def _reboot(server_id: str, details: object) -> Response:
    validation.may_write()
    given = action_bodies.REBOOT_BODY.read_value(details, "reboot")
    server_operations.request_task(compute(), who(server_id), given["type"])
    return Response(status=202)


def _restore(server_id: str, details: object) -> Response:
    """Refuse to restore a server: one that is deleted is gone at once."""
    validation.may_write()
    there = find(server_id)
    raise Conflict(f"Cannot 'restore' instance {there.id} while it is {there.status}: it is not deleted.")


def _console(server_id: str, details: object) -> Response:
    validation.may_read()
    given = action_bodies.CONSOLE_OUTPUT.read_value(details, "os-getConsoleOutput")
    output = server_operations.console_output(compute(), who(server_id), given["length"])
    if given["length"]:  # as in Nova, the end behind the last line break counts as a line
        output = "\n".join(output.split("\n")[-given["length"] :])
    return jsonify({"output": output})


def _no_console(server_id: str, details: object) -> Response:
    return remote_console(server_id)


ACTIONS: Mapping[str, Action] = (
    {name: _wish(name) for name in WISHES}
    | addresses.ACTIONS
    | security_groups.ACTIONS
    | {
        "reboot": _reboot,
        "createImage": resize_and_rebuild.create_image,
        "createBackup": resize_and_rebuild.create_backup,
        "restore": _restore,
        "injectNetworkInfo": _plug_again,
        "resetNetwork": _plug_again,
        "resize": resize_and_rebuild.resize,
        "confirmResize": resize_and_rebuild.confirm,
        "migrate": migrate.migrate,
        "evacuate": migrate.evacuate,
        "os-migrateLive": live_migrations.migrate,
        "rebuild": resize_and_rebuild.rebuild,
        "rescue": resize_and_rebuild.rescue,
        "shelve": shelve_and_lock.shelve,
        "shelveOffload": shelve_and_lock.offload,
        "unshelve": shelve_and_lock.unshelve,
        "lock": shelve_and_lock.lock,
        "unlock": shelve_and_lock.unlock,
        "os-resetState": shelve_and_lock.reset,
        "os-getConsoleOutput": _console,
        "os-getVNCConsole": _no_console,
        "os-getSPICEConsole": _no_console,
        "os-getSerialConsole": _no_console,
    }
)
