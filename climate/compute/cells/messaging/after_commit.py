"""Messages of one transaction that the writing process itself sends after the commit."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection

from climate.compute.cells.messaging import messages
from climate.compute.cells.messaging.dispatch import first_hops
from climate.compute.cells.messaging.messages import UP
from climate.compute.cells.messaging.pipeline import Pipeline
from climate.compute.cells.state.link_cache import CellSnapshot
from climate.compute.store.cells import direct_sends
from climate.compute.store.cells.direct_sends import OF_ITSELF, Outgoing, StoreOutcome


@dataclass(slots=True)
class OutgoingMessages:
    """Messages of a transaction to the cells above."""

    pipeline: Pipeline
    here: CellSnapshot = field(init=False)
    stored: list[StoreOutcome] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.here = self.pipeline.here()

    def store(self, conn: Connection, method: str, kwargs: Mapping[str, object]) -> None:
        """Store a message to all cells above; if this process cannot send it, the cells process does."""
        options = self.pipeline.quick.cells
        message = messages.broadcast(options.name, method, kwargs, UP, options.max_hop_count)
        text, rows = message.to_json(), self.here.links.rows
        outgoing = [
            Outgoing(cell.name, message.type, text, message.uuid, OF_ITSELF, rows[cell.name].cell.failures == 0)
            for cell in first_hops(self.here.links.around, message)
        ]
        self.stored.append(direct_sends.store(conn, (), outgoing, self.here.now))

    def send(self) -> None:
        """Send the stored messages after the commit of the transaction."""
        for kept in self.stored:
            for name, sent in kept.mine.items():
                if (cell := self.here.links.opened(name)) is not None:
                    self.pipeline.send(cell, sent, self.here.now)
