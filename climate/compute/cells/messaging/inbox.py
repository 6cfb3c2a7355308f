"""Inbox: messages are checked, stored, confirmed, and then processed.

A call is kept by the cell that asks, which repeats its question. Cells on the way store and confirm nothing of it.
"""

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import structlog
from sqlalchemy import Connection

from climate import strict_json
from climate.compute import one_by_one
from climate.compute.cells.errors import BadMessage, CellError, Postpone
from climate.compute.cells.messaging import messages, outbox, routing, signing
from climate.compute.cells.messaging.dispatch import CellContext, Effect, Handlers, Outcome, arrive, process, refuse
from climate.compute.cells.messaging.messages import READ_AT_MOST, Message
from climate.compute.cells.messaging.pipeline import Pipeline, Task
from climate.compute.cells.messaging.signing import CONFIRMATION, Letter
from climate.compute.cells.messaging.transport import CellTransport, Envelope
from climate.compute.cells.neighbours import Links
from climate.compute.cells.state.link_cache import CellSnapshot, read
from climate.compute.context import Compute
from climate.compute.store.cells import cells, direct_sends
from climate.compute.store.cells import messages as cell_messages
from climate.compute.store.cells.direct_sends import OF_ITSELF, Key, Outgoing, StoreOutcome
from climate.compute.store.cells.messages import ReceivedMessage, Sent
from climate.compute.store.db_errors import DATABASE_ERRORS

log = structlog.get_logger(__name__)

LEASE = 120.0
"""Seconds after which a message of a dead process is processed again."""

BATCH = 10
"""Maximum number of messages taken from the inbox at once."""

MOST_ATTEMPTS = 30
"""Number of database errors after which a message is given up."""


@dataclass(frozen=True, slots=True)
class _Arrival:
    """Decoded message, and its immediate outcome."""

    arrived: ReceivedMessage
    message: Message
    outcome: Outcome
    is_stored: bool
    """False: it changes nothing when it comes again, or the cell that asks sends it again."""


@dataclass(slots=True)
class _Post:
    """Letters of one batch: those to store, and those to confirm."""

    context: CellContext
    links: Links
    pipeline: Pipeline | None
    arrivals: dict[Key, _Arrival] = field(default_factory=dict)
    confirmed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    deleted: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    taken: Counter[str] = field(default_factory=Counter)
    """Messages that this process continues with, by type."""

    def add(self, sender: str, letter: Letter, message: Message) -> None:
        """Add a valid message, without duplicates."""
        if (sender, letter.delivery) in self.arrivals:
            return
        outcome, runs = arrive(self.context, message)
        arrived = ReceivedMessage(sender, letter.delivery, letter.kind, letter.body, waits=0.0 if runs else None)
        if runs and self.pipeline is not None and self.taken[letter.kind] < self.pipeline.room(letter.kind):
            self.taken[letter.kind] += 1
            arrived = replace(arrived, attempts=1, waits=LEASE)
        stored = outcome.answer is None and not (message.repeats and self._needs_no_store(message, outcome, arrived))
        self.arrivals[sender, letter.delivery] = _Arrival(arrived, message, outcome, stored)

    def _needs_no_store(self, message: Message, outcome: Outcome, arrived: ReceivedMessage) -> bool:
        """Return whether a message that the asking cell sends again is sent on or read now."""
        if arrived.waits is not None:
            return bool(arrived.attempts) and self.context.handlers.only_reads(message)
        return _are_reachable(self.links, outcome)


def receive(
    compute: Compute, transport: CellTransport, envelopes: Sequence[object], pipeline: Pipeline | None = None
) -> int:
    """Store the messages in these envelopes and confirm them to their senders; return the number of new ones.

    Messages for other cells are forwarded in the same transaction. With a pipeline, messages that the asking cell sends
    again are not confirmed, and forwarded without being stored; so are queries processed. Forged, foreign, expired or
    malformed envelopes are logged and dropped; duplicates are confirmed again.
    """
    here = pipeline.here() if pipeline is not None else None
    with _writing(compute, pipeline) as conn:
        links, now = here or read(compute, conn)
        handlers = pipeline.handlers if pipeline is not None else Handlers()
        post = _Post(_context(compute, handlers, links), links, pipeline)
        for envelope in envelopes:
            _open(compute, post, envelope, now)
        for sender, deliveries in post.deleted.items():
            cell_messages.confirm(conn, sender, deliveries)
        _answer(conn, [one.outcome for one in post.arrivals.values()], now)
        kept = _store(conn, post, now)
        new = list(_new(post.arrivals, kept.new))
        if pipeline is None:
            cells.record_message(conn, list(post.confirmed), now)
    if pipeline is not None:
        _send(CellSnapshot(links, now), kept.mine, pipeline)
        _dispatch(post, new, pipeline, now)
        return len(new)
    for sender, deliveries in post.confirmed.items():
        if (cell := links.opened(sender)) is not None:
            outbox.confirm(compute, transport, cell, deliveries, now)
    return len(new)


def work(compute: Compute, handlers: Handlers, kind: str, pipeline: Pipeline | None = None) -> int:
    """Process due messages of a type; return their number."""
    here = pipeline.here() if pipeline is not None else None
    with _writing(compute, pipeline) as conn:
        now = here.now if here is not None else compute.now(conn)
        taken = cell_messages.take_arrived(conn, kind, now, LEASE, BATCH)
        links = (here or read(compute, conn)).links if taken else None

    def finish_one(arrived: ReceivedMessage) -> None:
        message = messages.from_json(arrived.body)
        if arrived.sender:
            message = message.arrived(compute.cells.name, compute.cells.max_hop_count)
        if links is not None:
            finish(compute, handlers, Task(arrived, message, links), pipeline)

    one_by_one.each("messages of cells", taken, finish_one, lambda arrived: arrived.delivery)
    return len(taken)


def finish(compute: Compute, handlers: Handlers, task: Task, pipeline: Pipeline | None = None) -> None:
    """Process a message that was taken."""
    arrived, message = task.arrived, task.message.stored() if task.is_stored else task.message
    passed_on = bool(arrived.sender) and not message.need_response
    context = replace(_context(compute, handlers, task.links), attempt=arrived.attempts, passed_on=passed_on)
    if pipeline is not None and not task.is_stored:
        _read_now(task, context, pipeline)
        return
    try:
        _complete(compute, task, process(context, message), pipeline)
    except Postpone as wait:
        with compute.engine.begin() as conn:
            cell_messages.postpone(conn, arrived, wait.seconds, compute.now(conn))
        return
    except DATABASE_ERRORS as error:
        log.warning("message waits for the database", method=message.method, error=type(error).__name__)
        if arrived.attempts < MOST_ATTEMPTS:
            with compute.engine.begin() as conn:
                cell_messages.postpone(conn, arrived, min(30.0, float(arrived.attempts)), compute.now(conn))
            return
        _complete(compute, task, refuse(context, message, error), pipeline)


def _read_now(task: Task, context: CellContext, pipeline: Pipeline) -> None:
    """Answer a query that is not stored. If the database is away, the cell that asks sends it again."""
    try:
        outcome = process(context, task.message)
    except (Postpone, *DATABASE_ERRORS) as error:
        log.warning("query not answered", method=task.message.method, error=type(error).__name__)
        return
    here = pipeline.here()
    if _are_reachable(task.links, outcome):
        _pass_on(CellSnapshot(task.links, here.now), outcome, pipeline)
        return
    with pipeline.writing() as conn:
        direct_sends.store(conn, (), _outgoing(task.links, OF_ITSELF, outcome, None), here.now)


def _complete(compute: Compute, task: Task, outcome: Outcome, pipeline: Pipeline | None) -> None:
    """Store the outcome of a message with its method's writes, mark it as done, and send."""
    arrived = task.arrived
    here = pipeline.here() if pipeline is not None else None
    with _writing(compute, pipeline, outcome.effect) as conn:
        now = here.now if here is not None else compute.now(conn)
        written = outcome.effect.write(conn, now) if outcome.effect is not None else ()
        _answer(conn, [outcome], now)
        all_sends = replace(outcome, sends=(*outcome.sends, *written))
        outgoing = _outgoing(task.links, (arrived.sender, arrived.delivery), all_sends, pipeline)
        kept = direct_sends.store(conn, (), outgoing, now, arrived)
    _send(CellSnapshot(task.links, now), kept.mine, pipeline)


def _writing(
    compute: Compute, pipeline: Pipeline | None, effect: Effect | None = None
) -> AbstractContextManager[Connection]:
    """Return a transaction; a pipeline confirms later, so statements without an effect are committed one by one."""
    if pipeline is None or (effect is not None and effect.synced):
        return compute.engine.begin()
    return pipeline.writing() if effect is None else pipeline.lazy.engine.begin()


def _context(compute: Compute, handlers: Handlers, links: Links) -> CellContext:
    name, most, around = compute.cells.name, compute.cells.max_hop_count, links.around
    return CellContext(compute, name, handlers, around.parents, around.children, most)


def _new(arrivals: Mapping[Key, _Arrival], stored: Container[Key]) -> Iterator[_Arrival]:
    """Yield the arrivals that are not duplicates."""
    for key, one in arrivals.items():
        if key in stored or not one.is_stored:
            yield one
        else:
            _log_duplicate(*key)


def _log_duplicate(cell: str, delivery: str) -> None:
    log.info("duplicate message of a cell", cell=cell, delivery=delivery)


def _dispatch(post: _Post, new: Sequence[_Arrival], pipeline: Pipeline, now: datetime) -> None:
    for one in new:
        if one.arrived.attempts:
            pipeline.process(Task(one.arrived, one.message, post.links, one.is_stored))
        elif not one.is_stored:
            _pass_on(CellSnapshot(post.links, now), one.outcome, pipeline)
    for sender, deliveries in post.confirmed.items():
        if (cell := post.links.opened(sender)) is not None:
            pipeline.confirm(cell, deliveries)


def _send(snapshot: CellSnapshot, sent: Mapping[str, Sequence[Sent]], pipeline: Pipeline | None) -> None:
    for name, listed in sent.items():
        cell = snapshot.links.opened(name)
        if cell is not None and pipeline is not None:
            pipeline.send(cell, listed, snapshot.now)


def _pass_on(snapshot: CellSnapshot, outcome: Outcome, pipeline: Pipeline) -> None:
    """Send the messages of an outcome without storing them."""
    for neighbour, message in outcome.sends:
        if (cell := snapshot.links.opened(neighbour.name)) is not None:
            pipeline.pass_on(cell, message, snapshot.now)


def _are_reachable(links: Links, outcome: Outcome) -> bool:
    """Return whether the brokers of all neighbours of an outcome's messages were reachable lately."""
    return all(links.rows[cell.name].cell.failures == 0 for cell, _ in outcome.sends)


def _open(compute: Compute, post: _Post, envelope: Any, now: datetime) -> None:
    try:
        sender = post.links.opened(signing.sender_of(envelope))
        if sender is None:
            raise BadMessage("Its sender is not a neighbour")
        letter = signing.opened(sender.broker.secret, compute.cells.name, envelope, now)
    except BadMessage as refusal:
        log.warning("message refused", reason=str(refusal), **_named(envelope))
        return
    if letter.kind == CONFIRMATION:
        post.deleted[sender.name] += _deliveries(letter)
        return
    try:
        message = messages.from_json(letter.body).arrived(compute.cells.name, compute.cells.max_hop_count)
        if message.type != letter.kind:
            raise BadMessage(f"A message of type {message.type} was sent as {letter.kind}")
        routing.check_arrival(message, sender)
    except CellError as refusal:
        log.warning("message refused", reason=str(refusal), **_named(envelope))
        post.confirmed[sender.name].append(letter.delivery)
        return
    if post.pipeline is None or not message.repeats:
        post.confirmed[sender.name].append(letter.delivery)
        post.add(sender.name, letter, message.stored())
    elif post.pipeline.is_new(envelope["signature"]):
        post.add(sender.name, letter, message)
    else:
        _log_duplicate(sender.name, letter.delivery)


def _named(envelope: Envelope) -> dict[str, str]:
    """Return the sender and receiver that an envelope names, for the log."""
    given = envelope if isinstance(envelope, dict) else {}
    # The envelope is not authenticated yet, so unprintable characters are escaped.
    return {key: ascii(str(given.get(key))[:80])[1:-1] for key in ("sender", "receiver", "delivery")}


def _deliveries(letter: Letter) -> list[str]:
    try:
        result = strict_json.parse(letter.body)
        return [signing.delivery(item) for item in result] if isinstance(result, list) else []
    except (ValueError, BadMessage):
        return []


def _store(conn: Connection, post: _Post, now: datetime) -> StoreOutcome:
    outgoing: list[Outgoing] = []
    stored = {key: one for key, one in post.arrivals.items() if one.is_stored}
    for key, one in stored.items():
        outgoing += _outgoing(post.links, key, one.outcome, post.pipeline)
    arrived = [one.arrived for one in stored.values()]
    return direct_sends.store(conn, arrived, outgoing, now) if arrived else StoreOutcome()


def _outgoing(links: Links, because: Key, outcome: Outcome, pipeline: Pipeline | None) -> list[Outgoing]:
    """Return the outgoing messages of an outcome; a pipeline itself sends those to neighbours that were reachable."""
    result: list[Outgoing] = []
    for cell, message in outcome.sends:
        try:
            text = message.stored().to_json(READ_AT_MOST)
        except BadMessage as refusal:
            log.warning("message not forwarded", cell=cell.name, method=message.method, reason=str(refusal))
            continue
        direct = pipeline is not None and links.rows[cell.name].cell.failures == 0
        result.append(Outgoing(cell.name, message.type, text, outbox.delivery_of(message, cell), because, direct))
    return result


def _answer(conn: Connection, outcomes: Sequence[Outcome], now: datetime) -> None:
    """Store responses to messages of this cell; only the first counts, so this is idempotent."""
    for outcome in outcomes:
        if outcome.answer is None:
            continue
        uuid, response = outcome.answer
        if not cell_messages.answer(conn, uuid, response.cell_name, response.body(), now):
            log.info("response dropped: nobody waits for it", cell=response.cell_name)
