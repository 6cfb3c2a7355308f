"""Actions that move a server to another host, for administrators."""

import secrets
from typing import Any

from flask import Response, jsonify

from api.compute import validation
from api.compute.microversion import since
from api.compute.servers.servers import who
from api.request_context import compute
from climate.compute import operations
from climate.domain.errors import InvalidInput


def migrate(server_id: str, details: Any) -> Response:
    """Migrate a server cold; the move must be confirmed.  Since 2.56 the request may name the host."""
    validation.may_administer()
    if details is not None and not since(56):
        raise InvalidInput("migrate must be null; an object that names a host needs 2.56 or later")
    given = {} if details is None else validation.details("migrate", details)
    if set(given) - {"host"}:
        raise InvalidInput('migrate must be null or like {"host": "node-2"}')
    operations.migrate(compute(), who(server_id), _host("migrate", given))
    return Response(status=202)


def evacuate(server_id: str, details: Any) -> Response:
    """Rebuild a server on another host, because its own host is down.

    `onSharedStorage` and `adminPass` have no effect: the service checks whether it has the disk, and no
    password is injected.  `force` (2.29 to 2.67) does not switch the scheduler's filters off.
    """
    validation.may_administer()
    given = validation.details("evacuate", details)
    allowed = {"host", "adminPass"} | ({"force"} if since(29) and not since(68) else set())
    allowed |= set() if since(14) else {"onSharedStorage"}
    if unknown := sorted(set(given) - allowed):
        raise InvalidInput(f"evacuate: {unknown[0][:80]!r} cannot be set; known are {', '.join(sorted(allowed))}")
    for flag in ("force", "onSharedStorage"):
        if flag in given:
            validation.flag(given[flag], f"evacuate.{flag}")
    password = validation.name(given["adminPass"], "evacuate.adminPass") if "adminPass" in given else None
    operations.evacuate(compute(), who(server_id), _host("evacuate", given))
    return Response(status=200) if since(14) else jsonify({"adminPass": password or secrets.token_urlsafe(9)})


def _host(action: str, given: dict[str, Any]) -> str | None:
    host = given.get("host")
    return None if host is None else validation.name(host, f"{action}.host")
