"""Collecting broadcast: each cell answers for itself.

A response goes directly to the asking cell, and names the neighbours that got the broadcast next. No cell waits for
another, and a cell that does not answer blocks no other answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from climate.compute.cells import neighbours
from climate.compute.cells.errors import CellError
from climate.compute.cells.messaging import messages, paths, send
from climate.compute.cells.messaging.messages import DOWN, Direction, Response, read_body
from climate.compute.context import Compute
from climate.compute.store.cells import messages as cell_messages

Known = Mapping[str, Any]
"""Name of a cell -> the same for the known cells below it."""


@dataclass(frozen=True, slots=True)
class Collected:
    """Responses to a broadcast, by the paths of the cells from this one."""

    responses: tuple[Response, ...]
    """Responses of the cells that answered, including failed ones, by path."""
    silent: tuple[str, ...]
    """Cells that did not answer in time, with the known cells below them."""

    def values(self) -> dict[str, Any]:
        """Return path -> value of the cells in which the method succeeded."""
        return {response.cell_name: response.value for response in self.responses if response.failure is None}

    def missing(self) -> dict[str, str]:
        """Return path -> reason of the cells without a value."""
        failed = {
            response.cell_name: str(response.error()) for response in self.responses if response.failure is not None
        }
        return dict(sorted({**failed, **dict.fromkeys(self.silent, "no answer in time")}.items()))


def collect(
    compute: Compute,
    method: str,
    kwargs: Mapping[str, object],
    direction: Direction = DOWN,
    *,
    run_locally: bool = False,
    seconds: float | None = None,
) -> Collected:
    """Run a method in all cells above or below this one, and in this one with `run_locally`; return their responses.

    Returns when every cell has answered, or after `seconds` (None: the setting cells_call_timeout). Raise CellError if
    cells are not enabled, BadMessage for arguments that are not JSON.
    """
    limit = compute.cells.call_timeout if seconds is None else seconds
    asked = broadcast_call(compute, method, kwargs, direction, run_locally=run_locally, seconds=limit)
    return wait(compute, asked, limit)


@dataclass(frozen=True, slots=True)
class BroadcastCall:
    """Broadcast that was sent."""

    uuid: str
    source: str
    """Asking cell, which answers as well if `run_locally`."""
    run_locally: bool
    known: Known
    """Neighbours that were asked, and the cells known to be behind them."""


def broadcast_call(
    compute: Compute,
    method: str,
    kwargs: Mapping[str, object],
    direction: Direction = DOWN,
    *,
    run_locally: bool = False,
    seconds: float,
) -> BroadcastCall:
    """Send the broadcast of `collect`; messages not sent within `seconds` are dropped."""
    options = compute.cells
    if not options.enabled:
        raise CellError("Cells are not enabled; set CLIMATE_CELLS_ENABLE=true")
    message = messages.broadcast(options.name, method, kwargs, direction, options.max_hop_count).answered()
    with compute.engine.begin() as conn:
        around = neighbours.around(conn)
        cell_messages.expect(conn, message.uuid, compute.now(conn) + timedelta(seconds=seconds))
        send.send(compute, conn, message, run_locally=run_locally, seconds=seconds)
    first = around.children if direction == DOWN else around.parents
    known = {name: _below(cell.children) for name, cell in first.items()}
    return BroadcastCall(message.uuid, options.name, run_locally, known)


def wait(compute: Compute, call: BroadcastCall, seconds: float) -> Collected:
    """Return the responses to a broadcast; later ones are dropped."""
    result = cell_messages.wait_for(
        compute.engine, call.uuid, seconds, lambda bodies: not list(_silent(call, _read(bodies)))
    )
    responses = _read(result)
    return Collected(
        tuple(responses[path] for path in sorted(responses)),
        tuple(sorted(_silent(call, responses))),
    )


def _read(bodies: Mapping[str, Mapping[str, object]]) -> dict[str, Response]:
    return {path: read_body(body) for path, body in bodies.items()}


def _silent(call: BroadcastCall, responses: Mapping[str, Response]) -> Iterator[str]:
    """Yield the cells that have not answered. A cell's own answer determines the cells behind it."""
    if call.run_locally and call.source not in responses:
        yield call.source
    yield from _unanswered(call.source, call.known, responses)


def _unanswered(path: str, known: Known, responses: Mapping[str, Response]) -> Iterator[str]:
    for name, behind in known.items():
        here = paths.join(path, name)
        response = responses.get(here)
        if response is None:
            yield here
            yield from _unanswered(here, behind, {})
        else:
            named = {one: behind.get(one, {}) for one in response.asked}
            yield from _unanswered(here, named, responses)


def _below(children: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Return the tree in the report of a child."""
    return {str(child.get("name")): _below(child.get("children") or ()) for child in children}
