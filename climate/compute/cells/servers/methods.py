"""Handlers of messages about servers: commands go down, reports go up."""

from contextlib import suppress
from datetime import datetime

import structlog
from sqlalchemy import Connection

from climate.compute.cells.errors import BadMessage, CellServiceAPIMethodNotFound, Postpone
from climate.compute.cells.messaging import send
from climate.compute.cells.messaging.after_commit import OutgoingMessages
from climate.compute.cells.messaging.dispatch import CellContext, Effect, Handlers
from climate.compute.cells.messaging.messages import DOWN, UP, Message
from climate.compute.cells.messaging.pipeline import Pipeline
from climate.compute.cells.servers import allowed_methods, healing, report_fields, sync
from climate.compute.cells.servers.allowed_methods import Args
from climate.compute.context import Compute
from climate.compute.errors import ComputeError, Conflict, NotFound
from climate.compute.models.server import DELETE, is_id
from climate.compute.servers import actions
from climate.compute.servers.actions import By
from climate.compute.store.cells import changes

log = structlog.get_logger(__name__)

RUN = "run_compute_api_method"
DELETE_EVERYWHERE = "instance_delete_everywhere"
SYNC = "sync_instances"
REFUSED = "instance_command_refused_at_top"

HARD, SOFT = "hard", "soft"
"""Values of delete_type. Both delete the server, because there is no soft delete."""

PATIENCE = 12
"""Number of attempts at a command, within half a minute, before earlier commands count as lost."""


def update_at_top(context: CellContext, message: Message, kwargs: Args) -> Effect | None:
    """Store reports of servers; only the top cell does."""
    if context.parents or not (reports := sync.usable(message.source, kwargs.get("instances"))):
        return None
    compute = context.compute

    def order(conn: Connection, cell: str, server_id: str) -> None:
        send.cast(compute, conn, cell, RUN, order_of(server_id, "delete", {}, _NOBODY))

    def write(conn: Connection, now: datetime) -> tuple[()]:
        sync.store(conn, message.source, reports, order, now)
        return ()

    # The message is confirmed later, when this is on disk.
    return Effect(write, synced=False)


def destroy_at_top(context: CellContext, message: Message, kwargs: Args) -> None:
    """Store tombstones of deleted servers; only the top cell does."""
    if not context.parents:
        sync.destroy_at_top(context.compute, message.source, kwargs.get("instances"))


def fault_at_top(context: CellContext, message: Message, kwargs: Args) -> None:
    """Put servers without a cell into ERROR; only the top cell does."""
    if not context.parents:
        sync.fault_at_top(context.compute, kwargs.get("instances"), kwargs.get("message"))


def refused_at_top(context: CellContext, message: Message, kwargs: Args) -> None:
    """Revert the top cell's changes for a command that the cell of the server refused."""
    if not context.parents:
        sync.take_back(context.compute, message.source, _server_id(kwargs), kwargs.get("noted"))


def delete_everywhere(context: CellContext, message: Message, kwargs: Args) -> None:
    """Delete a server whose cell is unknown, if it is here."""
    server_id = _server_id(kwargs)
    if kwargs.get("delete_type") not in (HARD, SOFT):
        raise BadMessage(f"delete_type must be {HARD} or {SOFT}, got {str(kwargs.get('delete_type'))[:40]!r}")
    with suppress(NotFound):
        actions.request_task(context.compute, server_id, DELETE, by=_by(kwargs))


def sync_instances(context: CellContext, message: Message, kwargs: Args) -> None:
    """Report the requested servers of this cell."""
    if not context.parents:
        return
    since = kwargs.get("updated_since")
    wanted = healing.HealRequest(
        project_id=str(kwargs["project_id"]) if kwargs.get("project_id") else None,
        updated_since=datetime.fromisoformat(since) if isinstance(since, str) else None,
        deleted=bool(kwargs.get("deleted")),
    )
    healing.sync(context.compute, wanted)


def request_sync(compute: Compute, kwargs: Args) -> None:
    """Request reports from all cells below: of `project_id`, changed since `updated_since`, or `deleted` too.

    Does nothing if cells are not enabled.
    """
    with compute.engine.begin() as conn:
        send.broadcast(compute, conn, DOWN, SYNC, kwargs)


def run_compute_api_method(context: CellContext, message: Message, kwargs: Args) -> object:
    """Run a method of the Compute API on a server of this cell; return its value.

    Raise CellServiceAPIMethodNotFound for a method that is not allowed, and the method's own errors. Raise NotFound for
    a server that is not here, which is reported to the top cell.
    """
    method, server_id = str(kwargs.get("method"))[:64], _server_id(kwargs)
    args, by, number = kwargs.get("args"), _by(kwargs), kwargs.get("command")
    if not isinstance(args, dict) or not isinstance(number, int | None):
        raise BadMessage(f"The arguments of {method!r} must be an object, and its command a number.")
    compute = context.compute
    try:
        if method in allowed_methods.CALLS:
            return allowed_methods.CALLS[method](compute, server_id, args, by)
        if method in allowed_methods.COMMANDS:
            _run_command(context, server_id, kwargs, by)
            return None
    except NotFound:
        _report_if_gone(compute, server_id)
        raise
    except KeyError as missing:
        raise BadMessage(f"{method} has no argument {missing}.") from None
    raise CellServiceAPIMethodNotFound(f"Detected attempt to run unknown method {method!r} in a cell.")


def _run_command(context: CellContext, server_id: str, kwargs: Args, by: By) -> None:
    """Run a command once, after earlier ones; a refused command is recorded with the reason.

    The server is reported afterwards. A command waits for earlier ones for a limited time, because they may be lost.
    """
    compute, method, number = context.compute, kwargs["method"], kwargs.get("command")
    run = allowed_methods.COMMANDS[method]
    if number is None:
        run(compute, server_id, kwargs["args"], by)
        return
    refusal: ComputeError | None = None
    with compute.engine.begin() as conn:
        last = changes.last_command(conn, server_id)
        if number <= last:
            log.info("command of the top cell not repeated", server=server_id, method=method, command=number)
            raise Conflict(f"Command {number} of instance {server_id} was run, or a later one was.")
        if number > last + 1 and context.attempt < PATIENCE:
            raise Postpone(min(5.0, 0.05 * 2**context.attempt))
        try:
            run(compute, server_id, kwargs["args"], by)
        except ComputeError as error:
            refusal = error
        if refusal is not None and kwargs.get("noted"):
            details = {"instance_uuid": server_id, "noted": kwargs["noted"]}
            send.broadcast(compute, conn, UP, REFUSED, details)
        changes.acted(conn, server_id, number, str(refusal)[:1000] if refusal else None)
        changes.note(conn, [server_id])
    if refusal is not None:
        raise refusal


def _report_if_gone(compute: Compute, server_id: str) -> None:
    with suppress(NotFound):
        actions.get(compute, server_id)
        return
    with compute.engine.begin() as conn:
        changes.note(conn, [server_id])


def order_of(server_id: str, method: str, args: Args, by: By, number: int | None = None) -> dict[str, object]:
    """Return the arguments of RUN; `number`: sequence number of a command that runs once, in order.

    A command may also have `noted`: the top cell's changes, which are reverted if it is refused.
    """
    return {"instance_uuid": server_id, "method": method, "args": dict(args), "by": dict(by), "command": number}


def report_changes(compute: Compute, pipeline: Pipeline | None = None) -> int:
    """Report servers with noted changes; return their number.

    With a pipeline this process sends the reports itself. A database crash that loses a report restores the notes, so
    the commit may be asynchronous.
    """
    if pipeline is None:
        return sync.report_changes(compute, teller(compute))
    handing = OutgoingMessages(pipeline)
    count = sync.report_changes(pipeline.lazy, handing.store)
    handing.send()
    return count


def teller(compute: Compute) -> sync.Tell:
    """Return the function that sends reports to all cells above, through the outbox."""
    return lambda conn, method, kwargs: send.broadcast(compute, conn, UP, method, kwargs)


def _server_id(kwargs: Args) -> str:
    server_id = kwargs.get("instance_uuid")
    if not isinstance(server_id, str) or not is_id(server_id):
        raise BadMessage(f"instance_uuid must be the id of a server, got {str(server_id)[:40]!r}")
    return server_id


_NOBODY: By = {"project_id": "", "user_id": "", "request_id": ""}


def _by(kwargs: Args) -> By:
    """Return the requester, for the list of actions."""
    given = kwargs.get("by")
    given = given if isinstance(given, dict) else {}
    return {key: str(given.get(key) or "")[: report_fields.LONGEST_TEXT] for key in _NOBODY}


HANDLERS = Handlers(
    targeted={RUN: run_compute_api_method},
    broadcast={
        sync.UPDATE: update_at_top,
        sync.DESTROY: destroy_at_top,
        sync.FAULT: fault_at_top,
        REFUSED: refused_at_top,
        DELETE_EVERYWHERE: delete_everywhere,
        SYNC: sync_instances,
    },
    queries={RUN: lambda kwargs: kwargs.get("method") in allowed_methods.QUERIES},
    upward=frozenset({sync.UPDATE, sync.DESTROY, sync.FAULT, REFUSED}),
    at_top=frozenset({sync.UPDATE, sync.DESTROY, sync.FAULT, REFUSED}),
)
