"""Live migrations for administrators: start, force to complete, and abort."""

from flask import Response

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.servers.actions import action_bodies
from api.compute.servers.servers import find, who
from api.request_context import compute
from api.schema.body import Body
from climate.compute import server_operations
from climate.compute.migrations import live_migration_requests
from climate.domain.errors import NotFound
from climate.whole_numbers import whole_number

blueprint = compute_blueprint("live-migrations")


def migrate(server_id: str, details: object) -> Response:
    """Migrate a running server to another host.

    `disk_over_commit` (to 2.24) has no effect: the scheduler checks the disk.  `force` (2.30 to 2.67) does not
    switch the scheduler's filters off.
    """
    validation.may_administer()
    given = _form().read_value(details, "os-migrateLive")
    server_operations.live_migrate(compute(), who(server_id), given["host"], given["block_migration"])
    return Response(status=202)


@blueprint.delete("/servers/<server_id>/migrations/<migration_id>")
def abort(server_id: str, migration_id: str) -> Response:
    """Abort a live migration that is running (2.24) or queued (2.65)."""
    validation.may_administer()
    _since(24)
    server = find(server_id)
    live_migration_requests.abort(compute(), server.id, _number(migration_id), early=since(65))
    return Response(status=202)


@blueprint.post("/servers/<server_id>/migrations/<migration_id>/action")
def act(server_id: str, migration_id: str) -> Response:
    """Force a running live migration to complete (2.22): the server is paused until it has moved."""
    validation.may_administer()
    _since(22)
    server = find(server_id)
    action_bodies.FORCE_COMPLETE.read(read_object())
    live_migration_requests.force_complete(compute(), server.id, _number(migration_id))
    return Response(status=202)


def _form() -> Body:
    """Return the schema of `os-migrateLive` at the microversion of the request."""
    if not since(25):
        return action_bodies.LIVE_TO_24
    return action_bodies.LIVE_TO_67 if since(30) and not since(68) else action_bodies.LIVE


def _since(minor: int) -> None:
    if not since(minor):
        raise NotFound(f"The resource could not be found: it needs microversion 2.{minor} or later.")


def _number(text: str) -> int:
    number = whole_number(text)
    if number is None:
        raise NotFound(f"Live migration {text[:40]} could not be found.")
    return number
