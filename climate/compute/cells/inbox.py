"""Receiving: messages are checked, stored, confirmed, and then processed."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import structlog
from sqlalchemy import Connection

from climate.compute.cells import messages, neighbours, outbox, routing, signing
from climate.compute.cells.cell import Cell
from climate.compute.cells.dispatch import CellContext, Handlers, Outcome, process, refuse
from climate.compute.cells.errors import BadMessage, CellError, Postpone
from climate.compute.cells.messages import READ_AT_MOST
from climate.compute.cells.signing import CONFIRMATION, Letter
from climate.compute.cells.transport import CellTransport, Envelope
from climate.compute.context import Compute
from climate.compute.store import cell_messages, cells
from climate.compute.store.cell_messages import Arrived
from climate.compute.store.failures import DATABASE_ERRORS

log = structlog.get_logger(__name__)

LEASE = 120.0
"""Seconds after which a message is processed again whose process has died."""

BATCH = 10
"""Messages that are taken from the inbox at once."""

MOST_ATTEMPTS = 30
"""Attempts at which the database may refuse a message before it is given up."""


@dataclass(slots=True)
class _Post:
    """The letters of one batch: those to store, and those to confirm."""

    known: Mapping[str, Cell]
    stored: list[Arrived] = field(default_factory=list)
    confirmed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    deleted: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def receive(compute: Compute, transport: CellTransport, envelopes: Sequence[object]) -> int:
    """Store the messages in these envelopes and confirm them to their senders; the number of new ones.

    An envelope that is forged, foreign, too old or malformed is logged and
    dropped; one that was here before is confirmed again.
    """
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        post = _Post(neighbours.with_secrets(compute, conn, *_senders(envelopes)))
        for envelope in envelopes:
            _open(compute, post, envelope, now)
        for sender, deliveries in post.deleted.items():
            cell_messages.confirm(conn, sender, deliveries)
        new = cell_messages.arrived(conn, post.stored, now)
        cells.seen(conn, list(post.confirmed), now)
    for message in post.stored:
        if (message.sender, message.delivery) not in new:
            log.info("a message of a cell came twice", cell=message.sender, delivery=message.delivery)
    for sender, deliveries in post.confirmed.items():
        outbox.confirm(compute, transport, post.known[sender], deliveries, now)
    return len(new)


def work(compute: Compute, handlers: Handlers, kind: str) -> int:
    """Process messages of a type that are due; their number."""
    with compute.engine.begin() as conn:
        taken = cell_messages.take_arrived(conn, kind, compute.now(conn), LEASE, BATCH)
    for message in taken:
        _work_on(compute, handlers, message)
    return len(taken)


def _senders(envelopes: Sequence[object]) -> list[str]:
    found = set()
    for envelope in envelopes:
        try:
            found.add(signing.sender_of(envelope))
        except BadMessage:
            continue  # logged when it is opened
    return sorted(found)


def _open(compute: Compute, post: _Post, envelope: Any, now: datetime) -> None:
    try:
        sender = post.known.get(signing.sender_of(envelope))
        if sender is None:
            raise BadMessage("Its sender is not a neighbour")
        letter = signing.opened(sender.broker.secret, compute.cells.name, envelope, now)
    except BadMessage as refusal:
        log.warning("a message is refused", reason=str(refusal), **_named(envelope))
        return
    if letter.kind == CONFIRMATION:
        post.deleted[sender.name] += _deliveries(letter)
        return
    post.confirmed[sender.name].append(letter.delivery)
    try:
        message = messages.from_json(letter.body).arrived(compute.cells.name, compute.cells.max_hop_count)
        if message.type != letter.kind:
            raise BadMessage(f"A message {message.type} came as {letter.kind}")
        routing.check_arrival(message, sender)
    except CellError as refusal:
        log.warning("a message is refused", reason=str(refusal), **_named(envelope))
        return
    post.stored.append(Arrived(sender.name, letter.delivery, letter.kind, letter.body))


def _named(envelope: Envelope) -> dict[str, str]:
    """The sender and receiver that an envelope names, for the log."""
    given = envelope if isinstance(envelope, dict) else {}
    return {key: str(given.get(key))[:80] for key in ("sender", "receiver", "delivery")}


def _deliveries(letter: Letter) -> list[str]:
    try:
        found = json.loads(letter.body)
        return [signing.delivery(item) for item in found] if isinstance(found, list) else []
    except (ValueError, BadMessage):
        return []


def _work_on(compute: Compute, handlers: Handlers, arrived: Arrived) -> None:
    message = messages.from_json(arrived.body)
    if arrived.sender:
        message = message.arrived(compute.cells.name, compute.cells.max_hop_count)
    try:
        context = _context(compute, handlers, arrived)
        outcome = process(context, message)
    except Postpone as wait:
        with compute.engine.begin() as conn:
            cell_messages.postpone(conn, arrived, wait.seconds, compute.now(conn))
        return
    except DATABASE_ERRORS as error:
        log.warning("a message waits for the database", method=message.method, error=type(error).__name__)
        if arrived.attempts < MOST_ATTEMPTS:
            with compute.engine.begin() as conn:
                cell_messages.postpone(conn, arrived, min(30.0, float(arrived.attempts)), compute.now(conn))
            return
        outcome = refuse(_context(compute, handlers, arrived), message, error)
    with compute.engine.begin() as conn:
        cell_messages.done(conn, arrived)
        _carry_out(compute, conn, outcome)


def _context(compute: Compute, handlers: Handlers, arrived: Arrived) -> CellContext:
    with compute.engine.connect() as conn:
        around = neighbours.around(conn)
    name, most = compute.cells.name, compute.cells.max_hop_count
    return CellContext(compute, name, handlers, around.parents, around.children, most, arrived.attempts)


def _carry_out(compute: Compute, conn: Connection, outcome: Outcome) -> None:
    now = compute.now(conn)
    for cell, message in outcome.sends:
        try:
            text = message.to_json(READ_AT_MOST)
        except BadMessage as refusal:
            log.warning("a message is not handed on", cell=cell.name, method=message.method, reason=str(refusal))
            continue
        cell_messages.put(conn, [cell.name], message.type, text, now)
    if outcome.answer is None:
        return
    uuid, response = outcome.answer
    if not cell_messages.answer(conn, uuid, response.cell_name, response.body(), now):
        log.info("a response is dropped: nobody waits for it", cell=response.cell_name)
