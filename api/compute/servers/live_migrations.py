"""Live migrations for administrators: start, force to complete, and abort."""

from typing import Any

from flask import Response

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.servers.servers import find, who
from api.request_context import compute
from climate.compute import operations
from climate.compute.migrations import live_requests
from climate.compute.migrations.live_requests import AUTO
from climate.domain.errors import InvalidInput, NotFound

FORCE = "force_complete"

blueprint = compute_blueprint("live-migrations")


def migrate(server_id: str, details: Any) -> Response:
    """Migrate a running server to another host.

    `disk_over_commit` (to 2.24) has no effect: the scheduler checks the disk.  `force` (2.30 to 2.67) does not
    switch the scheduler's filters off.
    """
    validation.may_administer()
    given = validation.details("os-migrateLive", details)
    needed = {"host", "block_migration"} | (set() if since(25) else {"disk_over_commit"})
    allowed = needed | ({"force"} if since(30) and not since(68) else set())
    if unknown := sorted(set(given) - allowed):
        raise InvalidInput(f"os-migrateLive: {unknown[0][:80]!r} cannot be set; known are {', '.join(sorted(allowed))}")
    if missing := sorted(needed - set(given)):
        raise InvalidInput(f"os-migrateLive: {missing[0]} must be given")
    for flag in allowed & {"disk_over_commit", "force"} & set(given):
        validation.flag(given[flag], f"os-migrateLive.{flag}")
    host = None if given["host"] is None else validation.name(given["host"], "os-migrateLive.host")
    operations.live_migrate(compute(), who(server_id), host, _block(given["block_migration"]))
    return Response(status=202)


@blueprint.delete("/servers/<server_id>/migrations/<migration_id>")
def abort(server_id: str, migration_id: str) -> Response:
    """Abort a live migration that is running (2.24) or queued (2.65)."""
    validation.may_administer()
    _since(24)
    server = find(server_id)
    live_requests.abort(compute(), server.id, _number(migration_id), early=since(65))
    return Response(status=202)


@blueprint.post("/servers/<server_id>/migrations/<migration_id>/action")
def act(server_id: str, migration_id: str) -> Response:
    """Force a running live migration to complete (2.22): the server is paused until it has moved."""
    validation.may_administer()
    _since(22)
    server = find(server_id)
    if read_object() != {FORCE: None}:
        raise InvalidInput(f'The body must be {{"{FORCE}": null}}')
    live_requests.force_complete(compute(), server.id, _number(migration_id))
    return Response(status=202)


def _block(value: Any) -> bool | str:
    if value == AUTO and since(25):
        return AUTO
    return validation.flag(value, "os-migrateLive.block_migration")


def _since(minor: int) -> None:
    if not since(minor):
        raise NotFound(f"The resource could not be found: it needs microversion 2.{minor} or later.")


def _number(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise NotFound(f"Live migration {text[:40]} could not be found.")
    return int(text)
