"""Messages to other cells: cast, broadcast and call.

A message is written to the outbox in the caller's transaction; the cells process sends it after the commit. A call
stays there until it is answered or its time is over, and is sent again meanwhile.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection

from climate.compute.cells import neighbours
from climate.compute.cells.errors import CellError, CellTimeout
from climate.compute.cells.messaging import messages
from climate.compute.cells.messaging.dispatch import first_hops
from climate.compute.cells.messaging.messages import DOWN, Direction, Message, read_body
from climate.compute.context import Compute
from climate.compute.store.cells import direct_sends
from climate.compute.store.cells import messages as cell_messages
from climate.compute.store.cells.messages import ReceivedMessage, Waiting


def cast(
    compute: Compute,
    conn: Connection,
    target: str,
    method: str,
    kwargs: Mapping[str, object],
    direction: Direction = DOWN,
) -> None:
    """Send a message without response to the cell at a path, or to a neighbour by name.

    Does nothing if cells are not enabled. Raise CellRoutingInconsistency for an unknown neighbour, BadMessage for
    arguments that are not JSON.
    """
    post(compute, conn, (target, direction), (method, kwargs))


def post(
    compute: Compute,
    conn: Connection,
    to: tuple[str, Direction],
    what: tuple[str, Mapping[str, object]],
    seconds: float | None = None,
) -> None:
    """Cast `what` = (method, arguments) to `to` = (path, direction); dropped if not sent within `seconds`."""
    options = compute.cells
    if options.enabled:
        message = messages.targeted(options.name, to[0], *what, to[1], options.max_hop_count)
        _post(compute, conn, message, seconds)


def broadcast(
    compute: Compute,
    conn: Connection,
    direction: Direction,
    method: str,
    kwargs: Mapping[str, object],
    *,
    run_locally: bool = False,
) -> None:
    """Send a message to all cells above or below this one, and to itself with `run_locally`.

    Does nothing if cells are not enabled.
    """
    options = compute.cells
    if not options.enabled:
        return
    message = messages.broadcast(options.name, method, kwargs, direction, options.max_hop_count)
    send(compute, conn, message, run_locally=run_locally)


def send(
    compute: Compute, conn: Connection, message: Message, *, run_locally: bool = False, seconds: float | None = None
) -> None:
    """Send a message of this cell, also to itself with `run_locally`; dropped if not sent within `seconds`."""
    _post(compute, conn, message, seconds)
    if run_locally:
        _post_here(compute, conn, message)


def call(
    compute: Compute, target: str, method: str, kwargs: Mapping[str, object], seconds: float | None = None
) -> object:
    """Run a method in the cell at a path below this one; return its value.

    Raise the method's error if its class may be sent, CellRoutingInconsistency, and CellTimeout after `seconds` (None:
    the setting cells_call_timeout).
    """
    limit = compute.cells.call_timeout if seconds is None else seconds
    return wait(compute, start_call(compute, target, method, kwargs, limit), limit)


def start_call(compute: Compute, target: str, method: str, kwargs: Mapping[str, object], seconds: float) -> str:
    """Send the message of a call; return its uuid for `wait`."""
    options = compute.cells
    if not options.enabled:
        raise CellError("Cells are not enabled; set CLIMATE_CELLS_ENABLE=true")
    message = messages.targeted(options.name, target, method, kwargs, DOWN, options.max_hop_count).as_call()
    with compute.engine.begin() as conn:
        # After a crash of the database its caller gets an error, so a synchronous commit is not needed.
        direct_sends.unsynced(conn)
        expires_at = compute.now(conn) + timedelta(seconds=seconds)
        cell_messages.expect(conn, message.uuid, expires_at)
        _post(compute, conn, message, seconds)
    return message.uuid


def wait(compute: Compute, uuid: str, seconds: float) -> Any:
    """Return the value of a call; raises as `call` does. A later response is dropped."""
    bodies = cell_messages.wait_for(compute.engine, uuid, seconds)
    if not bodies:
        raise CellTimeout(f"{CellTimeout.__doc__} after {seconds:g} s")
    return read_body(next(iter(bodies.values()))).value_or_raise()


def _post(compute: Compute, conn: Connection, message: Message, seconds: float | None = None) -> None:
    """Store a message of this cell for its first hops, or for this cell itself."""
    cells = first_hops(neighbours.links(compute, conn).around, message)
    if not cells and message.type == messages.TARGETED:
        _post_here(compute, conn, message)
        return
    now = compute.now(conn)
    expires_at = None if seconds is None else now + timedelta(seconds=seconds)
    waiting = Waiting(message.type, message.to_json(), message.uuid, message.repeats)
    cell_messages.store(conn, [cell.name for cell in cells], waiting, now, expires_at)


def _post_here(compute: Compute, conn: Connection, message: Message) -> None:
    here = ReceivedMessage("", message.uuid, message.type, message.stored().to_json())
    direct_sends.store(conn, [here], (), compute.now(conn))
