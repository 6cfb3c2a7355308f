"""Routing: run a message here, forward it to a neighbour, or fail."""

from collections.abc import Mapping
from typing import Protocol

from climate.compute.cells.errors import CellMaxHopCountReached, CellRoutingInconsistency
from climate.compute.cells.messaging import paths
from climate.compute.cells.messaging.messages import DOWN, Direction, Message
from climate.compute.cells.models import Cell


class Neighbours(Protocol):
    """Neighbours of a cell by short name."""

    @property
    def parents(self) -> Mapping[str, Cell]: ...

    @property
    def children(self) -> Mapping[str, Cell]: ...


def next_hop(neighbours: Neighbours, message: Message) -> Cell | None:
    """Return the next neighbour of a targeted message or response; None: this cell is its target.

    Raise CellRoutingInconsistency if the target does not extend the path of the message or the next cell is unknown,
    CellMaxHopCountReached at the limit.
    """
    target, path = message.target_cell or "", message.routing_path
    if target == path:
        return None
    names = paths.split(target)
    if paths.hops(target) <= paths.hops(path) or not paths.is_prefix(path, names):
        raise CellRoutingInconsistency(
            f"The message cannot be routed: destination is {target} but routing_path is {path}."
        )
    following = names[paths.hops(path) + 1]
    known = _towards(neighbours, message.direction).get(following)
    if known is None:
        kind = "child" if message.direction == DOWN else "parent"
        raise CellRoutingInconsistency(f"Unknown {kind} {following} when routing to {target}.")
    if message.hop_count >= message.max_hop_count:
        raise CellMaxHopCountReached(f"Cell message has reached maximum hop count: {message.hop_count}")
    return known


def further_hops(neighbours: Neighbours, message: Message) -> tuple[Cell, ...]:
    """Return the neighbours that a broadcast is forwarded to; none at the hop limit."""
    if message.hop_count >= message.max_hop_count:
        return ()
    return tuple(_towards(neighbours, message.direction).values())


def check_arrival(message: Message, sender: Cell) -> None:
    """Check that an arrived message can be from this neighbour.

    Raise CellRoutingInconsistency if it names another sender, comes from the wrong side, or has been in this cell
    before.
    """
    names = paths.split(message.routing_path)
    if names[-2:-1] != [sender.name]:
        raise CellRoutingInconsistency(f"routing_path {message.routing_path} does not lead through {sender.name}.")
    if sender.is_parent != (message.direction == DOWN):
        side = "parent" if sender.is_parent else "child"
        raise CellRoutingInconsistency(f"A message {message.direction} cannot come from the {side} {sender.name}.")
    if names[-1] in names[:-1]:
        raise CellRoutingInconsistency(
            f"The cells form a cycle: {message.routing_path}. Delete one of these neighbours, or rename a cell."
        )


def _towards(neighbours: Neighbours, direction: Direction) -> Mapping[str, Cell]:
    return neighbours.children if direction == DOWN else neighbours.parents
