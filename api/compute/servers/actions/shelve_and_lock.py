"""Server actions: shelve, offload, unshelve, lock, unlock, and the reset of a state."""

from flask import Response

from api.compute import validation
from api.compute.servers.actions import action_bodies
from api.compute.servers.servers import find, who
from api.request_context import compute
from climate.compute import server_operations
from climate.compute.errors import Conflict
from climate.compute.models.server import SHELVED_OFFLOADED, VM_STATES


def shelve(server_id: str, details: object) -> Response:
    """Shelve the server into an image and remove it from its host."""
    validation.may_write()
    server_operations.shelve(compute(), who(server_id))
    return Response(status=202)


def offload(server_id: str, details: object) -> Response:
    """Accept the offload of a shelved server, which is on no host already."""
    validation.may_administer()
    server = find(server_id)
    if server.status != SHELVED_OFFLOADED:
        state = VM_STATES[server.status]
        raise Conflict(f"Cannot 'shelveOffload' instance {server.id} while it is in vm_state {state}")
    return Response(status=202)


def unshelve(server_id: str, details: object) -> Response:
    """Unshelve the server onto a host."""
    validation.may_write()
    given = action_bodies.UNSHELVE.read_value(details, "unshelve")
    server_operations.unshelve(compute(), who(server_id), given["zone"])
    return Response(status=202)


def lock(server_id: str, details: object) -> Response:
    """Lock the server, so that only administrators can change it."""
    validation.may_write()
    given = action_bodies.LOCK.read_value(details, "lock")
    server_operations.lock(compute(), who(server_id), given["reason"])
    return Response(status=202)


def unlock(server_id: str, details: object) -> Response:
    """Unlock the server."""
    validation.may_write()
    server_operations.unlock(compute(), who(server_id))
    return Response(status=202)


def reset(server_id: str, details: object) -> Response:
    """Reset the state of the server (administrator)."""
    validation.may_administer()
    given = action_bodies.RESET_STATE.read_value(details, "os-resetState")
    server_operations.reset_state(compute(), who(server_id), given["state"])
    return Response(status=202)
