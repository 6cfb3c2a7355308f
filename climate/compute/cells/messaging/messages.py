"""Messages between cells, and their JSON form."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self
from uuid import UUID, uuid4

from climate import strict_json
from climate.compute.cells.errors import BadMessage, decode
from climate.compute.cells.messaging import paths
from climate.compute.errors import ComputeError
from climate.strict_json import BadJson

ODD_TEXT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
"""Escapes of characters that receivers reject: U+0000 and unpaired surrogates."""

MessageType = Literal["targeted", "broadcast", "response"]
Direction = Literal["up", "down"]

TARGETED: MessageType = "targeted"
BROADCAST: MessageType = "broadcast"
RESPONSE: MessageType = "response"
TYPES: tuple[MessageType, ...] = (TARGETED, BROADCAST, RESPONSE)
UP: Direction = "up"
DOWN: Direction = "down"
PARSE_RESPONSES = "parse_responses"
"""Method name of a response."""

LARGEST = 1024 * 1024
"""Maximum size in bytes of a new message as JSON."""
READ_AT_MOST = LARGEST + 64 * 1024
"""Maximum size in bytes of a received message; the routing path grows on the way."""
DEEPEST = 256
"""Maximum nesting of received JSON; a report contains those of all cells below."""


@dataclass(frozen=True, slots=True)
class Message:
    """Message as it is in one cell, whose name is the last of the routing path."""

    type: MessageType
    method: str
    kwargs: Mapping[str, object]
    direction: Direction
    uuid: str
    routing_path: str
    """Path from the cell that created the message to this one."""
    hop_count: int
    """Number of cells in the routing path."""
    max_hop_count: int
    need_response: bool = False
    target_cell: str | None = None
    """Path from the cell that created the message to its target."""
    response_uuid: str | None = None
    """Uuid of the message that this one responds to."""
    repeats: bool = False
    """True: the cell that asks sends this question again until it is answered, so that no cell on the way stores the
    question. In a response: its loss leads to the same question again, so that no cell stores the response.
    """

    @property
    def is_mine(self) -> bool:
        """Return whether this cell created the message."""
        return paths.hops(self.routing_path) == 0

    @property
    def source(self) -> str:
        """Return the path back to the cell that created the message, from this one."""
        return paths.reverse(self.routing_path)

    def answered(self) -> Self:
        """Return the message with a response required."""
        return replace(self, need_response=True)

    def as_call(self) -> Self:
        """Return the message of a call: a response is required, and it is sent again until there is one."""
        return replace(self, need_response=True, repeats=True)

    def stored(self) -> Self:
        """Return the message as a cell stores it: from then on each cell keeps it until the next one confirms it."""
        return replace(self, repeats=False) if self.repeats else self

    def arrived(self, name: str, max_hop_count: int) -> Self:
        """Return the message as it arrives in the cell `name`."""
        path = paths.join(self.routing_path, name)
        most = min(self.max_hop_count, max_hop_count)
        return replace(self, routing_path=path, hop_count=self.hop_count + 1, max_hop_count=most)

    def to_json(self, most: int = LARGEST) -> str:
        """Return the JSON form. Raise BadMessage for values that are not JSON, or more than `most` bytes."""
        try:
            text = json.dumps(_fields(self), allow_nan=False, separators=(",", ":"))
            if ODD_TEXT.search(text):
                strict_json.parse(text, DEEPEST)
        except (TypeError, ValueError, RecursionError) as error:
            raise BadMessage(f"The arguments of {self.method} are not JSON that can be read: {error}") from None
        if len(text) > most:
            raise BadMessage(f"The message {self.method} has {len(text)} bytes; at most {most} can be sent")
        return text


def targeted(
    me: str, target: str, method: str, kwargs: Mapping[str, object], direction: Direction, max_hop_count: int
) -> Message:
    """Return a new message of the cell `me` to the cell at the path `target`, or to the neighbour of that name."""
    path = target if target == me or paths.hops(target) else paths.join(me, target)
    return Message(TARGETED, method, kwargs, direction, str(uuid4()), me, 1, max_hop_count, target_cell=path)


def broadcast(me: str, method: str, kwargs: Mapping[str, object], direction: Direction, max_hop_count: int) -> Message:
    """Return a new message of the cell `me` to all cells above or below it."""
    return Message(BROADCAST, method, kwargs, direction, str(uuid4()), me, 1, max_hop_count)


@dataclass(frozen=True, slots=True)
class Response:
    """Outcome of a method in another cell."""

    cell_name: str
    """Path to the cell that answers."""
    value: object = None
    failure: Mapping[str, object] | None = None
    """Error in the form of `errors.encode`."""
    asked: tuple[str, ...] = ()
    """Neighbours that the cell forwarded a broadcast to; each answers for itself."""

    def body(self) -> dict[str, object]:
        """Return the response as JSON."""
        return {
            "cell_name": self.cell_name,
            "value": self.value,
            "failure": self.failure,
            "asked": list(self.asked),
        }

    def value_or_raise(self) -> object:
        """Return the value, or raise the error of the method."""
        if self.failure is not None:
            raise self.error()
        return self.value

    def error(self) -> ComputeError:
        """Return the error of a failed response."""
        return decode(self.failure or {}, self.cell_name)


def response_to(message: Message, response: Response) -> Message:
    """Return the message that carries a response back to the cell that created `message`."""
    kwargs = response.body()
    back = UP if message.direction == DOWN else DOWN
    return Message(
        RESPONSE,
        PARSE_RESPONSES,
        kwargs,
        back,
        str(uuid4()),
        paths.last(message.routing_path),
        1,
        message.max_hop_count,
        target_cell=paths.response_target(message.routing_path),
        response_uuid=message.uuid,
        repeats=message.repeats,
    )


def read_response(message: Message) -> Response:
    """Return the response in a message. Raise BadMessage if there is none, or it claims to be from another cell."""
    result = read_body(message.kwargs)
    if result.cell_name != message.source:
        raise BadMessage(f"The cell {message.source} answers as {result.cell_name[:200]!r}")
    return result


def read_body(body: Mapping[str, Any]) -> Response:
    """Return the response of its JSON form. Raise BadMessage if it is malformed."""
    failure, asked = body.get("failure"), body.get("asked", [])
    if not isinstance(body.get("cell_name"), str) or not isinstance(failure, dict | None):
        raise BadMessage("The response is malformed")
    if not isinstance(asked, list) or not all(paths.is_name(name) for name in asked):
        raise BadMessage("The response names unusable cells")
    return Response(body["cell_name"], body.get("value"), failure, tuple(asked))


def from_json(text: str) -> Message:
    """Return the message of a JSON form. Raise BadMessage with the invalid field."""
    if len(text) > READ_AT_MOST:
        raise BadMessage(f"The message has {len(text)} bytes; at most {READ_AT_MOST} are read")
    try:
        given = strict_json.parse(text, DEEPEST)
    except BadJson as error:
        raise BadMessage(f"The message {error}") from None
    if not isinstance(given, dict):
        raise BadMessage("The message is not a JSON object")
    return _checked(given)


def _fields(message: Message) -> dict[str, object]:
    return {
        "message_type": message.type,
        "method_name": message.method,
        "method_kwargs": dict(message.kwargs),
        "direction": message.direction,
        "need_response": message.need_response,
        "uuid": message.uuid,
        "routing_path": message.routing_path,
        "hop_count": message.hop_count,
        "max_hop_count": message.max_hop_count,
        "target_cell": message.target_cell,
        "response_uuid": message.response_uuid,
        "repeats": message.repeats,
    }


def _checked(given: Mapping[str, Any]) -> Message:
    kind = given.get("message_type")
    checks = {
        "message_type": kind in TYPES,
        "method_name": isinstance(given.get("method_name"), str) and len(given["method_name"]) <= 64,
        "method_kwargs": isinstance(given.get("method_kwargs"), dict),
        "direction": given.get("direction") in (UP, DOWN),
        "need_response": isinstance(given.get("need_response"), bool),
        "uuid": _is_uuid(given.get("uuid")),
        "routing_path": paths.is_path(given.get("routing_path")),
        "hop_count": _is_count(given.get("hop_count")),
        "max_hop_count": _is_count(given.get("max_hop_count")),
        "target_cell": _is_target(given.get("target_cell"), kind),
        "response_uuid": _is_uuid(given.get("response_uuid")) if kind == RESPONSE else True,
        # Absent in older releases, whose cells store all messages. A broadcast is always stored.
        "repeats": given.get("repeats", False) in ((False,) if kind == BROADCAST else (False, True)),
    }
    wrong = [name for name, fine in checks.items() if not fine]
    if not wrong and given["hop_count"] != paths.hops(given["routing_path"]) + 1:
        wrong = ["hop_count"]
    if wrong:
        raise BadMessage(f"The message has an unusable {wrong[0]}: {str(given.get(wrong[0]))[:80]!r}")
    return Message(
        given["message_type"],
        given["method_name"],
        given["method_kwargs"],
        given["direction"],
        given["uuid"],
        given["routing_path"],
        given["hop_count"],
        given["max_hop_count"],
        given["need_response"],
        given.get("target_cell"),
        given.get("response_uuid") if kind == RESPONSE else None,
        given.get("repeats", False) is True,
    )


def _is_target(value: object, kind: object) -> bool:
    """Return whether a message of this kind may have that target: none for a broadcast, otherwise a cell."""
    return value is None if kind == BROADCAST else paths.is_path(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 1000


def _is_uuid(value: object) -> bool:
    try:
        return isinstance(value, str) and str(UUID(value)) == value
    except ValueError:
        return False
