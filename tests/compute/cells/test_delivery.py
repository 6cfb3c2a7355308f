"""Delivery over a transport that loses, doubles and reorders: each message is processed once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from climate.compute.cells.messaging import send
from climate.compute.cells.messaging.dispatch import CellContext, Handlers
from climate.compute.cells.messaging.messages import DOWN, UP, Message
from climate.compute.cells.messaging.transport import Envelope, MemoryTransport
from tests.compute.cells.tree import Tree

LEAF = "top!right!leaf"


@dataclass(slots=True)
class WildTransport(MemoryTransport):
    """Hands out what arrives in any order, some of it twice, and some of it never."""

    chance: Random = field(default_factory=Random)
    calm: bool = False

    def receive(self, name: str) -> list[Envelope]:
        found = MemoryTransport.receive(self, name)
        if self.calm:
            return found
        times = [(envelope, self.chance.choice((0, 1, 1, 2))) for envelope in found]
        wild = [envelope for envelope, count in times for _ in range(count)]
        self.chance.shuffle(wild)
        return wild


@dataclass
class Calls:
    seen: list[tuple[str, int]] = field(default_factory=list)

    def note(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> int:
        self.seen.append((message.routing_path, int(kwargs["number"])))
        return int(kwargs["number"])


def make_due(cells: Tree) -> None:
    """Let what is not confirmed be sent again now."""
    for place in cells.places.values():
        with place.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_cell_outbox SET due_at = now()"))


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), count=st.integers(1, 6))
def test_each_message_is_processed_once(cells: Tree, seed: int, count: int) -> None:
    wild, calls = WildTransport(chance=Random(seed)), Calls()
    cells.transport = wild
    cells.handlers = Handlers({"note": calls.note}, {"note": calls.note}, frozenset({"note"}))
    top, leaf = cells["top"], cells["leaf"]
    with top.engine.begin() as conn:
        for number in range(count):
            send.cast(top, conn, LEAF, "note", {"number": number})
        send.broadcast(top, conn, DOWN, "note", {"number": -1})
    with leaf.engine.begin() as conn:
        send.broadcast(leaf, conn, UP, "note", {"number": -2})
    uuid = send.start_call(top, LEAF, "note", {"number": count}, 600)
    for _ in range(3):
        cells.settle()
        make_due(cells)
    wild.calm = True
    cells.settle()
    casts = [(LEAF, number) for number in range(count + 1)]
    down = [("top!left", -1), ("top!right", -1), (LEAF, -1)]
    up = [("leaf!right", -2), ("leaf!right!top", -2)]
    assert sorted(calls.seen) == sorted(casts + down + up)
    assert send.wait(top, uuid, 0) == count
    assert [place.count("compute_cell_outbox") for place in cells.places.values()] == [0, 0, 0, 0]
