"""State of this cell and of those below it: capabilities, capacities and offers, stored in the database.

Each cell reports to its parents periodically, and at once after a report of a child, so that the top cell knows all
cells.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import Connection

from climate.compute.cells import neighbours
from climate.compute.cells.errors import CellNotFound, CellRoutingInconsistency
from climate.compute.cells.messaging import paths, send
from climate.compute.cells.messaging.dispatch import CellContext, Handlers
from climate.compute.cells.messaging.messages import DOWN, UP, Message
from climate.compute.cells.models import Cell
from climate.compute.cells.state import capacities
from climate.compute.cells.state import report_validation as state_report
from climate.compute.context import Compute
from climate.compute.store.cells import cells, resources
from climate.database.connections import reading

log = structlog.get_logger(__name__)

UPDATE = "update_state"
"""Method that reports a child to its parent."""
ANNOUNCE = "announce_state"
"""Method that requests a report at once."""

REPORT_SECONDS = 10.0
"""Seconds between two reports to the parents."""

KINDS = ("flavors", "images", "reservations")
"""Kinds of objects whose names a cell reports."""


@dataclass(frozen=True, slots=True)
class Total:
    """Sum of a cell and all cells below it."""

    capabilities: Mapping[str, tuple[str, ...]]
    capacities: Mapping[str, object]
    offers: Mapping[str, tuple[str, ...]]


NOTHING = Total({}, {}, {})
"""State of an unknown cell."""


def is_mute(compute: Compute, cell: Cell, now: datetime) -> bool:
    """Return whether a neighbour has not reported for longer than the mute interval."""
    return cell.last_seen is None or now - cell.last_seen > timedelta(seconds=compute.cells.mute_seconds)


def own(compute: Compute, conn: Connection) -> Total:
    """Return the state of this cell alone."""
    nodes = resources.free(conn)
    room = capacities.own(nodes, resources.sizes(conn) if nodes else (), compute.cells.reserve_percent)
    offers = resources.offers(conn) if room else {kind: [] for kind in KINDS}
    return Total(compute.cells.capabilities, room, {kind: tuple(names) for kind, names in offers.items()})


def total(compute: Compute, conn: Connection) -> Total:
    """Return the state of this cell and all below it; mute children do not count for capabilities and offers."""
    now, mine = compute.now(conn), own(compute, conn)
    children = neighbours.around(conn).children.values()
    heard = [cell for cell in children if not is_mute(compute, cell, now)]
    return Total(
        _union([mine.capabilities, *(cell.capabilities for cell in heard)]),
        capacities.total([mine.capacities, *(cell.capacities for cell in children)]),
        {
            kind: names
            for kind, names in _union([mine.offers, *(cell.offers for cell in heard)]).items()
            # The names of a kind are only known if every cell reports them.
            if all(kind in offers for offers in [mine.offers, *(cell.offers for cell in heard)])
        },
    )


def capacities_of(compute: Compute, name: str | None = None) -> Mapping[str, object]:
    """Return the capacities of a neighbour and all below it, or with None of this cell and all below it.

    Raise CellNotFound.
    """
    if name is not None and name != compute.cells.name:
        return neighbours.get(compute, name).capacities
    with reading(compute.engine) as conn:
        return total(compute, conn).capacities


def report(compute: Compute) -> None:
    """Report this cell and all below it to each parent; do nothing without parents.

    A report that is not sent before the next one is dropped.
    """
    with compute.engine.begin() as conn:
        around = neighbours.around(conn)
        if not around.parents:
            return
        now, state = compute.now(conn), total(compute, conn)
        details = {
            "cell_name": compute.cells.name,
            "reported_at": now.isoformat(),
            "capabilities": {key: list(values) for key, values in state.capabilities.items()},
            "capacities": state.capacities,
            "offers": {kind: list(names) for kind, names in state.offers.items()},
            "children": [described(compute, cell, now) for cell in around.children.values()],
        }
        for parent in around.parents:
            send.post(compute, conn, (parent, UP), (UPDATE, details), 2 * REPORT_SECONDS)


def request_reports(compute: Compute) -> None:
    """Request a report from each child."""
    with compute.engine.begin() as conn:
        _request_reports(compute, conn, neighbours.around(conn).children)


def request_missed_reports(compute: Compute) -> None:
    """Request a report from each child whose broker was unreachable at the last attempt.

    The messages that failed may have expired, or have arrived in spite of the failure. Without another message nobody
    would notice that the broker is reachable again.
    """
    with compute.engine.begin() as conn:
        _request_reports(
            compute, conn, [name for name, cell in neighbours.around(conn).children.items() if cell.failures]
        )


def _request_reports(compute: Compute, conn: Connection, children: Iterable[str]) -> None:
    for child in children:
        send.post(compute, conn, (child, DOWN), (ANNOUNCE, {}), 2 * REPORT_SECONDS)


def described(compute: Compute, cell: Cell, now: datetime) -> dict[str, object]:
    """Return a child in the form of the tree of cells, with those below it."""
    age = None if cell.last_seen is None else round((now - cell.last_seen).total_seconds(), 1)
    return {
        "name": cell.name,
        "state": "mute" if is_mute(compute, cell, now) else "up",
        "age": age,
        "capabilities": {key: list(values) for key, values in cell.capabilities.items()},
        "capacities": dict(cell.capacities),
        "children": _aged(compute, cell.children, age or 0.0),
    }


def _aged(compute: Compute, children: Sequence[Mapping[str, Any]], seconds: float) -> list[dict[str, object]]:
    """Return the cells of a report that is `seconds` old, with their ages increased."""
    result = []
    for child in children:
        reported_age = child.get("age")
        age = round(reported_age + seconds, 1) if isinstance(reported_age, int | float) else None
        heard = age is not None and age <= compute.cells.mute_seconds
        state = child.get("state") if heard else "mute"
        below = _aged(compute, child.get("children") or (), seconds)
        result.append({**child, "age": age, "state": state, "children": below})
    return result


def _update(context: CellContext, message: Message, kwargs: Mapping[str, object]) -> None:
    """Store a child's report about itself, and report upwards; reports about other cells are refused."""
    name, compute = _child(message), context.compute
    if kwargs.get("cell_name") != name:
        raise CellNotFound(f"Cell {name} may only report itself, not {str(kwargs.get('cell_name'))[:80]!r}.")
    result, reported_at = state_report.read(kwargs), state_report.time(kwargs.get("reported_at"))
    if context.name in state_report.names(result["children"]):
        raise CellRoutingInconsistency(f"The cells form a cycle: {context.name} is below its child {name}.")
    with compute.engine.begin() as conn:
        changed = cells.store_report(conn, name, result, reported_at, compute.now(conn))
    if changed:
        report(compute)


def _announce(context: CellContext, message: Message, kwargs: Mapping[str, object]) -> None:
    report(context.compute)


def _child(message: Message) -> str:
    """Return the child that created a message. Raise CellRoutingInconsistency for a cell further below."""
    if paths.hops(message.routing_path) != 1:
        raise CellRoutingInconsistency(f"Only a child may report itself, not {message.routing_path}.")
    return paths.split(message.routing_path)[0]


def _union(parts: Iterable[Mapping[str, Sequence[str]]]) -> dict[str, tuple[str, ...]]:
    result: dict[str, set[str]] = {}
    for part in parts:
        for key, values in part.items():
            result.setdefault(key, set()).update(values)
    return {key: tuple(sorted(values)) for key, values in result.items()}


HANDLERS = Handlers(targeted={UPDATE: _update, ANNOUNCE: _announce}, upward=frozenset({UPDATE}))
