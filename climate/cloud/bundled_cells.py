"""Child cells over the messages of the bundled cloud."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic

from climate.cloud import CloudError
from climate.cloud.children import CELL, Child, Outcome, PartRequest
from climate.cloud.part_messages import METHOD, read_answer, written
from climate.compute.cells import neighbours
from climate.compute.cells.errors import CellTimeout
from climate.compute.cells.messaging import paths, send
from climate.compute.cells.models import Cell
from climate.compute.cells.state import state
from climate.compute.context import Compute
from climate.compute.errors import ComputeError
from climate.database.connections import reading

SILENT = timedelta(seconds=60)
"""Seconds for which a cell that missed a deadline gets no new leases, unless a message of it arrives."""

MOST_CELLS = 100
"""Maximum number of cells that are asked for one lease; the nearest come first."""


@dataclass(frozen=True)
class BundledCells:
    """Cells below this one, at any depth. Each is asked for its own hosts only."""

    compute: Compute
    silent_since: dict[str, datetime] = field(default_factory=dict)
    """Maps a path to the time of its missed deadline, as far as this process knows."""

    def active(self) -> Sequence[Child]:
        """Return the cells that have reported lately, and whose brokers can be reached."""
        if not self.compute.cells.enabled:
            return ()
        with reading(self.compute.engine) as conn:
            now, children = self.compute.now(conn), neighbours.around(conn).children
        matching = [
            path
            for cell in children.values()
            if not cell.failures and not state.is_mute(self.compute, cell, now)
            for path in self._answering(cell, now)
        ]
        return [
            Child(CELL, 0, path) for path in sorted(matching, key=lambda path: (paths.hops(path), path))[:MOST_CELLS]
        ]

    def silent(self) -> Sequence[Child]:
        """Return the children that have not reported lately, whose brokers cannot be reached, or that are not asked."""
        if not self.compute.cells.enabled:
            return ()
        asked = {child.name for child in self.active()}
        with reading(self.compute.engine) as conn:
            children = neighbours.around(conn).children
        named = {paths.join(self.compute.cells.name, cell.name) for cell in children.values()}
        return [Child(CELL, 0, path) for path in sorted((named | set(self.silent_since)) - asked)]

    def _answering(self, cell: Cell, now: datetime) -> Iterator[str]:
        """Yield the paths of a child and of the cells below it, except those that are still silent."""
        for path, age in _below(paths.join(self.compute.cells.name, cell.name), cell.children):
            since = self.silent_since.get(path)
            heard = since is not None and cell.last_seen is not None and cell.last_seen - age > since
            if since is None or heard or now - since > SILENT:
                yield path

    def send_all(self, requests: Sequence[PartRequest]) -> list[Outcome]:
        """Send all messages, and wait for the answers until `call_timeout` has passed for all of them."""
        seconds = self.compute.cells.call_timeout
        until = monotonic() + seconds
        sent = [self._send(request, seconds) for request in requests]
        return [
            message if isinstance(message, CloudError) else self._answer(request, message, until)
            for request, message in zip(requests, sent, strict=True)
        ]

    def _send(self, request: PartRequest, seconds: float) -> str | CloudError:
        """Return the uuid of the message."""
        try:
            kwargs = written(request.asker, request.action)
            return send.start_call(self.compute, request.child.name, METHOD, kwargs, seconds)
        except ComputeError as error:
            return CloudError(str(error))

    def _answer(self, request: PartRequest, message: str, until: float) -> Outcome:
        try:
            value = send.wait(self.compute, message, max(0.0, until - monotonic()))
        except CellTimeout as error:
            with reading(self.compute.engine) as conn:
                self.silent_since[request.child.name] = self.compute.now(conn)
            return CloudError(str(error))
        except ComputeError as error:
            return CloudError(str(error))
        self.silent_since.pop(request.child.name, None)
        return read_answer(value)


def _below(
    path: str, children: Sequence[Mapping[str, object]], age: timedelta = timedelta(0)
) -> Iterator[tuple[str, timedelta]]:
    """Yield (path, age of its last report in that of the child) of a cell and of the cells below it that reported."""
    yield path, age
    for child in children:
        name, further, seconds = child.get("name"), child.get("children"), child.get("age")
        if child.get("state") == "up" and isinstance(name, str) and isinstance(seconds, int | float):
            older = age + timedelta(seconds=seconds)
            yield from _below(paths.join(path, name), further if isinstance(further, list) else (), older)
