"""Dispatch: the outcome of one message in one cell.

`process` runs the method of a message for this cell, and returns what must be sent on. It sends nothing itself.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog
from sqlalchemy import Connection

from climate.compute.cells.errors import BadMessage, CellError, CellServiceAPIMethodNotFound, Postpone, encode
from climate.compute.cells.messaging import routing
from climate.compute.cells.messaging.messages import (
    BROADCAST,
    RESPONSE,
    TARGETED,
    UP,
    Message,
    Response,
    read_response,
    response_to,
)
from climate.compute.cells.messaging.routing import Neighbours
from climate.compute.cells.models import Cell
from climate.compute.context import Compute
from climate.compute.store.db_errors import DATABASE_ERRORS

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CellContext:
    """Cell in which a message is processed."""

    compute: Compute
    name: str
    handlers: "Handlers"
    parents: Mapping[str, Cell] = field(default_factory=dict)
    children: Mapping[str, Cell] = field(default_factory=dict)
    max_hop_count: int = 10
    attempt: int = 1
    """Number of times that this message was passed to its handler, including this one."""
    passed_on: bool = False
    """True if the message was forwarded to further cells when it arrived."""


Write = Callable[[Connection, datetime], Sequence[tuple[Cell, Message]]]
"""Function that writes at a time, and returns messages for neighbours to be sent after the commit.

It raises `Postpone` or a database error to be retried.
"""


@dataclass(frozen=True, slots=True)
class Effect:
    """Value of a method with writes to be done in the transaction that marks its message as done."""

    write: Write
    synced: bool = True
    """True: the commit is synchronous before anything is sent."""


Handler = Callable[[CellContext, Message, Mapping[str, object]], object]
"""Method that other cells may call: (context, message, arguments) -> JSON value, or an `Effect`.

It may be called twice for one message, late, and in any order. It raises `Postpone` to be called again later.
"""


@dataclass(frozen=True, slots=True)
class Handlers:
    """Methods of a cell by type of message; nothing else can be called."""

    targeted: Mapping[str, Handler] = field(default_factory=dict)
    broadcast: Mapping[str, Handler] = field(default_factory=dict)
    upward: frozenset[str] = frozenset()
    """Methods that cells below may call here; other methods are only for cells above and this one."""
    at_top: frozenset[str] = frozenset()
    """Upward broadcasts that only the cell without parents runs."""
    queries: Mapping[str, Callable[[Mapping[str, object]], bool]] = field(default_factory=dict)
    """Targeted method -> whether it only reads with these arguments, so that it may run again at any time."""

    def joined(self, other: "Handlers") -> "Handlers":
        """Return the methods of both."""
        return Handlers(
            {**self.targeted, **other.targeted},
            {**self.broadcast, **other.broadcast},
            self.upward | other.upward,
            self.at_top | other.at_top,
            {**self.queries, **other.queries},
        )

    def only_reads(self, message: Message) -> bool:
        """Return whether the method of a targeted message only reads."""
        is_query = self.queries.get(message.method)
        return message.type == TARGETED and is_query is not None and is_query(message.kwargs)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a message in one cell."""

    sends: tuple[tuple[Cell, Message], ...] = ()
    """Messages for neighbours."""
    answer: tuple[str, Response] | None = None
    """(uuid of a message of this cell, the response to it)"""
    effect: Effect | None = None
    """Writes for the same transaction."""


def arrive(context: CellContext, message: Message) -> tuple[Outcome, bool]:
    """Return the outcome of a message at its arrival, and whether `process` has to run its method.

    Messages for other cells, responses, and broadcasts without answers are forwarded at once.
    """
    if message.type == RESPONSE:
        return _response(context, message), False
    if message.type == BROADCAST:
        if message.need_response:
            return Outcome(), True
        cells = routing.further_hops(context, message)
        runs = not (context.parents and message.direction == UP and message.method in context.handlers.at_top)
        return Outcome(sends=tuple((cell, message) for cell in cells)), runs
    if message.target_cell == message.routing_path:
        return Outcome(), True
    return _targeted(context, message), False


def process(context: CellContext, message: Message) -> Outcome:
    """Return the outcome of a message for this cell.

    Errors are logged, and become a failed response if one is needed. Only `Postpone` and database errors are raised,
    and the message is retried.
    """
    if message.type == RESPONSE:
        return _response(context, message)
    if message.type == BROADCAST:
        return _broadcast(context, message)
    return _targeted(context, message)


def first_hops(neighbours: Neighbours, message: Message) -> tuple[Cell, ...]:
    """Return the neighbours that a message of this cell is sent to; none if it is for this cell itself.

    Raise CellRoutingInconsistency, CellMaxHopCountReached.
    """
    if message.type == BROADCAST:
        return routing.further_hops(neighbours, message)
    neighbour = routing.next_hop(neighbours, message)
    return () if neighbour is None else (neighbour,)


def refuse(context: CellContext, message: Message, error: Exception) -> Outcome:
    """Return the outcome of a message that is given up: a failed response if one is needed."""
    return _respond(context, message, _failed(message, error))


def _targeted(context: CellContext, message: Message) -> Outcome:
    try:
        neighbour = routing.next_hop(context, message)
    except CellError as error:
        return refuse(context, message, error)
    if neighbour is not None:
        return Outcome(sends=((neighbour, message),))
    response, effect = _run(context, context.handlers.targeted, message)
    return replace(_respond(context, message, response), effect=effect)


def _broadcast(context: CellContext, message: Message) -> Outcome:
    """Return the outcome of a broadcast; a cell's own broadcast was sent when it was created, and only runs here.

    With collected responses, each cell answers for itself and names those that it asked.
    """
    response, effect = _run(context, context.handlers.broadcast, message)
    cells = () if message.is_mine or context.passed_on else routing.further_hops(context, message)
    sends = tuple((cell, message) for cell in cells)
    outcome = _respond(context, message, replace(response, asked=tuple(cell.name for cell in cells)))
    return Outcome(sends + outcome.sends, outcome.answer, effect)


def _run(context: CellContext, known: Mapping[str, Handler], message: Message) -> tuple[Response, Effect | None]:
    try:
        value = _allowed(context, known, message)(context, message, message.kwargs)
    except (Postpone, *DATABASE_ERRORS):
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is, the caller is told, and this cell works on
        return _failed(message, error), None
    effect = value if isinstance(value, Effect) else None
    return Response(message.routing_path, None if effect is not None else value), effect


def _allowed(context: CellContext, known: Mapping[str, Handler], message: Message) -> Handler:
    handler = known.get(message.method)
    if handler is None:
        raise CellServiceAPIMethodNotFound(f"Cell {context.name} has no method {message.method!r}.")
    if message.direction == UP and not message.is_mine and message.method not in context.handlers.upward:
        raise CellServiceAPIMethodNotFound(f"Method {message.method!r} cannot be called by a child cell.")
    return handler


def _failed(message: Message, error: Exception) -> Response:
    response = Response(message.routing_path, failure=encode(error, message.routing_path))
    log.info(
        "message of a cell failed",
        method=message.method,
        routing_path=message.routing_path,
        reason=(response.failure or {}).get("message"),
    )
    return response


def _respond(context: CellContext, message: Message, response: Response) -> Outcome:
    if not message.need_response or message.type == RESPONSE:
        return Outcome()
    answer = response_to(message, response)
    try:
        answer.to_json()
    except BadMessage as error:
        answer = response_to(message, replace(_failed(message, error), asked=response.asked))
    return _response(context, answer)


def _response(context: CellContext, message: Message) -> Outcome:
    try:
        neighbour = routing.next_hop(context, message)
        if neighbour is not None:
            return Outcome(sends=((neighbour, message),))
        return Outcome(answer=(message.response_uuid or "", read_response(message)))
    except CellError as error:
        log.warning("response dropped", cell=context.name, target=message.target_cell, reason=str(error))
        return Outcome()
