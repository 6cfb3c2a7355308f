"""The tree of eight cells as pure kernels: what one sends, the next is handed at once."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from climate.compute import Compute
from climate.compute.cells.messaging import messages
from climate.compute.cells.messaging.dispatch import CellContext, Handlers, first_hops, process
from climate.compute.cells.messaging.messages import Message, Response
from climate.compute.cells.models import Cell

CHILDREN: Mapping[str, tuple[str, ...]] = {
    "api-cell": ("child-cell1", "child-cell2", "child-cell3", "child-cell4"),
    "child-cell1": (),
    "child-cell2": ("grandchild-cell1",),
    "child-cell3": ("grandchild-cell2", "grandchild-cell3"),
    "child-cell4": (),
    "grandchild-cell1": (),
    "grandchild-cell2": (),
    "grandchild-cell3": (),
}


@dataclass
class KernelTree:
    """Eight cells, and the responses that their messages got."""

    handlers: Handlers
    children: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: CHILDREN)
    max_hop_count: int = 10
    responses: dict[str, Response] = field(default_factory=dict)

    def context(self, name: str) -> CellContext:
        above = [parent for parent, below in self.children.items() if name in below]
        return CellContext(
            cast("Compute", None),
            name,
            self.handlers,
            parents={parent: Cell(parent, is_parent=True) for parent in above},
            children={child: Cell(child) for child in self.children[name]},
            max_hop_count=self.max_hop_count,
        )

    def call(self, me: str, target: str, method: str, **kwargs: Any) -> Response:
        """Send a message down that needs a response; the response."""
        message = messages.targeted(me, target, method, kwargs, "down", self.max_hop_count).answered()
        self.deliver(me, message)
        return self.responses[message.uuid]

    def broadcast(self, me: str, direction: messages.Direction, method: str, *, run_locally: bool = False) -> None:
        message = messages.broadcast(me, method, {}, direction, self.max_hop_count)
        if run_locally:
            process(self.context(me), message)
        self._hand_on(deque((cell, message) for cell in first_hops(self.context(me), message)))

    def deliver(self, name: str, message: Message) -> None:
        """Process a message in a cell, and all that comes of it."""
        self._take(name, message, waiting := deque())
        self._hand_on(waiting)

    def _hand_on(self, waiting: deque[tuple[Cell, Message]]) -> None:
        while waiting:
            cell, message = waiting.popleft()
            read = messages.from_json(message.to_json())
            self._take(cell.name, read.arrived(cell.name, self.max_hop_count), waiting)

    def _take(self, name: str, message: Message, waiting: deque[tuple[Cell, Message]]) -> None:
        outcome = process(self.context(name), message)
        waiting.extend(outcome.sends)
        if outcome.answer is not None:
            uuid, response = outcome.answer
            self.responses[uuid] = response
