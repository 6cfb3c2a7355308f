"""Sending: messages wait in the database until the neighbour has confirmed them."""

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import uuid4

import structlog

from climate.compute.cells import neighbours
from climate.compute.cells.cell import Cell
from climate.compute.cells.messaging import signing
from climate.compute.cells.messaging.messages import RESPONSE
from climate.compute.cells.messaging.signing import CONFIRMATION, Letter
from climate.compute.cells.messaging.transport import QUEUES, CellTransport, TransportError
from climate.compute.cells.state.link_cache import Here
from climate.compute.context import Compute
from climate.compute.store.cells import cells, handover
from climate.compute.store.cells import messages as cell_messages
from climate.compute.store.cells.messages import Sent
from climate.connections import reading

log = structlog.get_logger(__name__)

BATCH = 100
"""Messages that are taken from the outbox at once."""


def due(compute: Compute) -> list[str]:
    """Return the names of the neighbours that messages are due to."""
    with reading(compute.engine) as conn:
        return cell_messages.waiting(conn, compute.now(conn))


def send(compute: Compute, transport: CellTransport, name: str, here: Here | None = None) -> int:
    """Send what is due to a neighbour; the number of messages that its broker has taken.

    When the broker cannot be reached, the messages wait, and the pause before the
    next attempt grows up to 30 seconds.  `here`: the surroundings, where the caller knows them.
    """
    with compute.engine.begin() as conn:
        now = here.now if here is not None else compute.now(conn)
        taken = cell_messages.take(conn, name, now, BATCH)
        links = (here.links if here is not None else neighbours.links(compute, conn)) if taken else None
        cell = links.opened(name) if links is not None else None
    return 0 if cell is None else publish(compute, transport, (cell, now), taken)


def publish(compute: Compute, transport: CellTransport, to: tuple[Cell, datetime], taken: Sequence[Sent]) -> int:
    """Send messages that are stored as sent; the number of those that the neighbour's broker has taken.

    `to`: the neighbour and the time.  The others wait, as in `send`.
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
        cell_messages.put_back(conn, [message.id for message in taken[sent:]], now)
        failures = cells.failed(conn, cell.name, str(error), now)
    log.warning("a cell cannot be reached", cell=cell.name, failures=failures, reason=str(error))
    return sent


def confirm(compute: Compute, transport: CellTransport, cell: Cell, deliveries: Sequence[str], now: datetime) -> None:
    """Tell a neighbour which of its messages have arrived; if that is lost, it sends them again."""
    letter = Letter(compute.cells.name, str(uuid4()), CONFIRMATION, json.dumps(list(deliveries)))
    try:
        transport.send(cell, QUEUES[RESPONSE], _sealed(compute, cell, letter, now))
    except TransportError as error:
        log.info("messages could not be confirmed", cell=cell.name, reason=str(error))


def flush(compute: Compute, parents: Sequence[str], now: datetime) -> None:
    """Wait until all that was received is on the disk, and note that these parents have sent some of it."""
    with reading(compute.engine) as conn:
        if parents:
            cells.seen(conn, parents, now)
        handover.flush(conn)


def _published(
    compute: Compute, transport: CellTransport, to: tuple[Cell, datetime], messages: Sequence[Sent]
) -> tuple[int, TransportError | None]:
    """(messages that were sent, the error that ended it)."""
    cell, now = to
    for place, message in enumerate(messages):
        letter = Letter(compute.cells.name, message.delivery, message.kind, message.body)
        try:
            transport.send(cell, QUEUES[message.kind], _sealed(compute, cell, letter, now))
        except TransportError as error:
            return place, error
    return len(messages), None


def _sealed(compute: Compute, cell: Cell, letter: Letter, now: datetime) -> dict[str, str]:
    if not cell.broker.secret:
        raise TransportError(f"Cell {cell.name} has no secret; set it with `climate cell set`")
    return signing.seal(cell.broker.secret, (compute.cells.name, cell.name), letter, now)
