"""Outbox: messages wait in the database until the neighbour has confirmed them."""

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from uuid import UUID, uuid4, uuid5

import structlog
from sqlalchemy import Connection

from climate.compute.cells import neighbours
from climate.compute.cells.errors import BadMessage
from climate.compute.cells.messaging import signing
from climate.compute.cells.messaging.messages import READ_AT_MOST, RESPONSE, Message
from climate.compute.cells.messaging.signing import CONFIRMATION, Letter
from climate.compute.cells.messaging.transport import QUEUES, CellTransport, TransportError
from climate.compute.cells.models import Cell
from climate.compute.cells.state.link_cache import CellSnapshot
from climate.compute.context import Compute
from climate.compute.store.cells import cells, direct_sends
from climate.compute.store.cells import messages as cell_messages
from climate.compute.store.cells.messages import Sent, Waiting
from climate.database.connections import reading

log = structlog.get_logger(__name__)

BATCH = 100
"""Maximum number of messages taken from the outbox at once."""


def due(compute: Compute) -> list[str]:
    """Return the names of the neighbours with due messages."""
    with reading(compute.engine) as conn:
        return cell_messages.waiting(conn, compute.now(conn))


def send(
    compute: Compute,
    transport: CellTransport,
    name: str,
    snapshot: CellSnapshot | None = None,
    writing: AbstractContextManager[Connection] | None = None,
) -> int:
    """Send due messages to a neighbour; return the number that its broker accepted.

    If the broker is unreachable, the messages wait, with growing pauses of up to 30 seconds. `here` and
    `writing`: the surroundings and a connection, if the caller has them.
    """
    with compute.engine.begin() if writing is None else writing as conn:
        now = snapshot.now if snapshot is not None else compute.now(conn)
        taken = cell_messages.take(conn, name, now, BATCH)
        links = (snapshot.links if snapshot is not None else neighbours.links(compute, conn)) if taken else None
        cell = links.opened(name) if links is not None else None
    return 0 if cell is None else publish(compute, transport, (cell, now), taken)


def publish(compute: Compute, transport: CellTransport, to: tuple[Cell, datetime], taken: Sequence[Sent]) -> int:
    """Send messages stored as sent; return the number that the neighbour's broker accepted.

    `to`: the neighbour and the time. Other messages wait, as in `send`.
    """
    cell = to[0]
    sent, error = _published(compute, transport, to, taken)
    if error is None and not cell.failures:
        return sent
    with compute.engine.begin() as conn:
        if error is None:
            cells.reached(conn, cell.name)
            return sent
        now = compute.now(conn)
        cell_messages.reschedule(conn, [message.id for message in taken[sent:]], now)
        failures = cells.failed(conn, cell.name, str(error), now)
    log.warning("cell unreachable", cell=cell.name, failures=failures, reason=str(error))
    return sent


def pass_on(compute: Compute, transport: CellTransport, to: tuple[Cell, datetime], message: Message) -> None:
    """Send a message that is not stored; if the neighbour's broker is unreachable, store it for a later attempt.

    `to`: the neighbour and the time.
    """
    cell, now = to
    try:
        text = message.to_json(READ_AT_MOST)
    except BadMessage as refusal:
        log.warning("message not forwarded", cell=cell.name, method=message.method, reason=str(refusal))
        return
    letter = Letter(compute.cells.name, delivery_of(message, cell), message.type, text)
    try:
        transport.send(cell, QUEUES[message.type], _sealed(compute, cell, letter, now))
    except TransportError as error:
        log.info("message waits for the broker", cell=cell.name, method=message.method, reason=str(error))
        waiting = Waiting(message.type, message.stored().to_json(READ_AT_MOST), letter.delivery)
        with compute.engine.begin() as conn:
            # The clock of the process may be ahead, and the message would not be due when its notification is heard.
            stored_at = compute.now(conn)
            expires_at = stored_at + timedelta(seconds=compute.cells.call_timeout)
            cell_messages.store(conn, [cell.name], waiting, stored_at, expires_at)


def delivery_of(message: Message, to: Cell) -> str:
    """Return the delivery id of a message for a neighbour, which stays the same when it is sent again."""
    return str(uuid5(UUID(message.uuid), f"{message.routing_path} {to.name}"))


def confirm(compute: Compute, transport: CellTransport, cell: Cell, deliveries: Sequence[str], now: datetime) -> None:
    """Confirm received messages to a neighbour; if the confirmation is lost, the neighbour sends them again."""
    letter = Letter(compute.cells.name, str(uuid4()), CONFIRMATION, json.dumps(list(deliveries)))
    try:
        transport.send(cell, QUEUES[RESPONSE], _sealed(compute, cell, letter, now))
    except TransportError as error:
        log.info("messages not confirmed", cell=cell.name, reason=str(error))


def flush(compute: Compute, parents: Sequence[str], now: datetime) -> None:
    """Wait until all received messages are on disk, and record that these parents sent some."""
    with reading(compute.engine) as conn:
        if parents:
            cells.record_message(conn, parents, now)
        direct_sends.flush(conn)


def _published(
    compute: Compute, transport: CellTransport, to: tuple[Cell, datetime], messages: Sequence[Sent]
) -> tuple[int, TransportError | None]:
    """Return (number of sent messages, the error that stopped it)."""
    cell, now = to
    for index, message in enumerate(messages):
        letter = Letter(compute.cells.name, message.delivery, message.kind, message.body)
        try:
            transport.send(cell, QUEUES[message.kind], _sealed(compute, cell, letter, now))
        except TransportError as error:
            return index, error
    return len(messages), None


def _sealed(compute: Compute, cell: Cell, letter: Letter, now: datetime) -> dict[str, str]:
    if not cell.broker.secret:
        raise TransportError(f"Cell {cell.name} has no secret; set it with `climate cell set`")
    return signing.seal(cell.broker.secret, (compute.cells.name, cell.name), letter, now)
