"""Actions that move a server to another host, for administrators."""

import secrets

from flask import Response, jsonify

from api.compute import validation
from api.compute.microversion import since
from api.compute.servers.actions import action_bodies
from api.compute.servers.servers import find, who
from api.request_context import compute
from api.schema.body import Body
from climate.compute import server_operations
from climate.domain.errors import InvalidInput


def migrate(server_id: str, details: object) -> Response:
    """Migrate a server cold; the move must be confirmed.  Since 2.56 the request may name the host.

    Before that Nova ignores the value, and clients send an object without a host.
    """
    validation.may_administer()
    if details not in (None, {}, {"host": None}) and not since(56):
        find(server_id)
        raise InvalidInput("migrate must be null or without a host; an object that names a host needs 2.56 or later")
    given = action_bodies.MIGRATE.read_value(details, "migrate")
    server_operations.migrate(compute(), who(server_id), given["host"])
    return Response(status=202)


def evacuate(server_id: str, details: object) -> Response:
    """Rebuild a server on another host, because its own host is down.

    `onSharedStorage` and `adminPass` have no effect: the service checks whether it has the disk, and no
    password is injected.  `force` (2.29 to 2.67) does not switch the scheduler's filters off.
    """
    validation.may_administer()
    given = _evacuate_form().read_value(details, "evacuate")
    server_operations.evacuate(compute(), who(server_id), given["host"])
    return (
        Response(status=200) if since(14) else jsonify({"adminPass": given.get("password") or secrets.token_urlsafe(9)})
    )


def _evacuate_form() -> Body:
    """Return the schema of `evacuate` at the microversion of the request."""
    if not since(14):
        return action_bodies.EVACUATE_TO_13
    return action_bodies.EVACUATE_29_TO_67 if since(29) and not since(68) else action_bodies.EVACUATE
