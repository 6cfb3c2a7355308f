"""Cells over real brokers: what the kernel promises holds with Valkey in between."""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import redis
from sqlalchemy import text

from climate.compute.cells import neighbours
from climate.compute.cells.errors import CellRoutingInconsistency, CellTimeout
from climate.compute.cells.messaging import send
from climate.compute.cells.messaging.broker import BrokerTransport, KeptConnection
from climate.compute.cells.messaging.dispatch import CellContext, Handlers
from climate.compute.cells.messaging.messages import DOWN, UP, Message
from climate.compute.cells.messaging.transport import QUEUES as NAMES
from climate.compute.cells.messaging.transport import TransportError
from climate.compute.errors import Conflict
from tests.workers.cell_stacks import PATIENCE, CellStack, cell_stacks, stop_all

LEAF = "top!right!leaf"
QUEUES = {"climate:cells.intercell.targeted", "climate:cells.intercell.broadcast", "climate:cells.intercell.response"}


class Seen:
    """Handlers that remember what they were called with, and wake whoever waits for it."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.changed = threading.Condition()

    def note(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> Any:
        with self.changed:
            self.calls.append((message.routing_path, kwargs.get("number")))
            self.changed.notify_all()
        return {"in": context.name}

    def refuse(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> Any:
        raise Conflict("not now")

    def wait_for(self, enough: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(enough, PATIENCE)

    def handlers(self) -> Handlers:
        known = {"note": self.note, "refuse": self.refuse}
        return Handlers(known, known, frozenset({"note"}))


@pytest.fixture(scope="module")
def stacks(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, CellStack]]:
    with cell_stacks(make_database, cloud_template, tmp_path_factory.mktemp("cells")) as found:
        yield found


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def cells(stacks: dict[str, CellStack], seen: Seen) -> Iterator[dict[str, CellStack]]:
    """All cells at work, with one process each; what an earlier test did not wait for is not sent again in this one."""
    for one in stacks.values():
        with one.compute.engine.begin() as conn:
            conn.execute(text("DELETE FROM compute_cell_outbox"))
        with redis.Redis.from_url(one.deployment.settings.redis_url) as client:
            client.flushdb()
    for one in stacks.values():
        one.start(seen.handlers())
    yield stacks
    stop_all(stacks.values())


def cast(cells: dict[str, CellStack], number: int) -> None:
    compute = cells["top"].compute
    with compute.engine.begin() as conn:
        send.cast(compute, conn, LEAF, "note", {"number": number})


def wait_until(enough: Callable[[], bool]) -> None:
    """Return when the database says so."""
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.05)):
        if enough():
            return
        pause.wait(0.05)
    assert enough()


def test_ce_5_call_through_two_brokers(cells: dict[str, CellStack], seen: Seen) -> None:
    top = cells["top"].compute
    assert send.call(top, LEAF, "note", {}, PATIENCE) == {"in": "leaf"}
    assert [path for path, _ in seen.calls] == [LEAF]
    with pytest.raises(Conflict, match="not now"):
        send.call(top, LEAF, "refuse", {}, PATIENCE)


def test_ce_7_unknown_cell(cells: dict[str, CellStack]) -> None:
    with pytest.raises(CellRoutingInconsistency, match="Unknown child nowhere"):
        send.call(cells["top"].compute, "top!right!nowhere", "note", {}, PATIENCE)


def test_ce_8_broadcast_in_both_directions(cells: dict[str, CellStack], seen: Seen) -> None:
    top, leaf = cells["top"].compute, cells["leaf"].compute
    with top.engine.begin() as conn:
        send.broadcast(top, conn, DOWN, "note", {}, run_locally=True)
    seen.wait_for(lambda: len(seen.calls) == 3)
    with leaf.engine.begin() as conn:
        send.broadcast(leaf, conn, UP, "note", {})
    seen.wait_for(lambda: len(seen.calls) == 5)
    assert {path for path, _ in seen.calls} == {"top", "top!right", LEAF, "leaf!right", "leaf!right!top"}


def test_ce_10_no_answer_is_a_timeout(cells: dict[str, CellStack]) -> None:
    cells["leaf"].stop()
    with pytest.raises(CellTimeout):
        send.call(cells["top"].compute, LEAF, "note", {}, 0.2)


def test_ce_23_queues_of_the_neighbours_broker(stacks: dict[str, CellStack]) -> None:
    """With nobody to read them, messages of each type wait in a queue of its own."""
    compute = stacks["top"].compute
    url = stacks["right"].deployment.settings.redis_url
    transport = BrokerTransport()
    with compute.engine.connect() as conn:
        right = neighbours.with_secrets(compute, conn, "right")["right"]
    for queue in NAMES.values():
        transport.send(right, queue, {"sender": "forged"})
    client = redis.Redis.from_url(url)
    assert {key.decode() for key in client.keys("climate:cells.intercell.*")} == QUEUES
    assert all(client.type(key) == b"list" for key in QUEUES)
    client.close()
    transport.close()


def test_messages_that_are_none_are_dropped(cells: dict[str, CellStack], seen: Seen) -> None:
    client = redis.Redis.from_url(cells["right"].deployment.settings.redis_url)
    for nonsense in (b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"body": 1}'):
        client.lpush("climate:cells.intercell.targeted", nonsense)
    client.close()
    assert send.call(cells["top"].compute, LEAF, "note", {}, PATIENCE) == {"in": "leaf"}


def test_several_processes_of_a_cell_process_each_message_once(cells: dict[str, CellStack], seen: Seen) -> None:
    for one in cells.values():
        one.start(seen.handlers())
        one.start(seen.handlers())
    for number in range(200):
        cast(cells, number)
    seen.wait_for(lambda: len(seen.calls) >= 200)
    assert sorted(number for _, number in seen.calls) == list(range(200))


def test_cell_that_is_away_loses_nothing(cells: dict[str, CellStack], seen: Seen) -> None:
    """The messages wait in its broker, and in the database of the sender."""
    cells["right"].stop()
    for number in range(50):
        cast(cells, number)
    cells["right"].start(seen.handlers())
    seen.wait_for(lambda: len(seen.calls) >= 50)
    assert sorted(number for _, number in seen.calls) == list(range(50))


def test_confirmed_messages_leave_the_outbox(cells: dict[str, CellStack], seen: Seen) -> None:
    cast(cells, 1)
    seen.wait_for(lambda: len(seen.calls) == 1)
    wait_until(lambda: not any(one.count("compute_cell_outbox WHERE kind = 'targeted'") for one in cells.values()))
    assert [one.count("compute_cell_outbox WHERE kind = 'targeted'") for one in cells.values()] == [0, 0, 0]


def test_broker_that_is_killed_under_load_loses_nothing(cells: dict[str, CellStack], seen: Seen) -> None:
    for number in range(60):
        cast(cells, number)
        if number == 20:
            cells["right"].broker.kill()
    wait_until(lambda: neighbours.get(cells["top"].compute, "right").failures >= 2)
    cells["right"].broker.start()
    seen.wait_for(lambda: {number for _, number in seen.calls} == set(range(60)))
    assert sorted(number for _, number in seen.calls) == list(range(60))


def test_first_message_after_a_restart_of_the_broker_is_sent_at_once(stacks: dict[str, CellStack]) -> None:
    compute = stacks["top"].compute
    with compute.engine.connect() as conn:
        right = neighbours.with_secrets(compute, conn, "right")["right"]
    transport = BrokerTransport()
    transport.send(right, NAMES["targeted"], {"sender": "forged"})
    stacks["right"].broker.kill()
    with pytest.raises(TransportError, match="unreachable"):
        transport.send(right, NAMES["targeted"], {"sender": "forged"})
    stacks["right"].broker.start()
    transport.send(right, NAMES["targeted"], {"sender": "forged"})
    stacks["right"].broker.kill()
    stacks["right"].broker.start()
    transport.send(right, NAMES["targeted"], {"sender": "forged"})
    transport.close()


def test_sending_makes_one_client_for_a_neighbour(stacks: dict[str, CellStack]) -> None:
    made: list[object] = []

    class Channel(KeptConnection().get_transport_cls().Channel):  # type: ignore[misc]
        def _create_client(self, asynchronous: bool = False) -> Any:
            made.append(super()._create_client(asynchronous))
            return made[-1]

    class Transport(KeptConnection().get_transport_cls()):  # type: ignore[misc]
        pass

    Transport.Channel = Channel

    class Counted(KeptConnection):
        def get_transport_cls(self) -> Any:
            return Transport

    compute = stacks["top"].compute
    with compute.engine.connect() as conn:
        right = neighbours.with_secrets(compute, conn, "right")["right"]
    transport = BrokerTransport(Counted)
    transport.send(right, NAMES["targeted"], {"sender": "forged"})
    known = len(made)
    for _ in range(10):
        transport.send(right, NAMES["targeted"], {"sender": "forged"})
    assert len(made) == known
    transport.close()
