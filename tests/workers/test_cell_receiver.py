"""Reading envelopes from the broker of a cell."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import redis

from climate import embedded
from climate.compute.cells.messaging.broker import BrokerTransport
from climate.compute.cells.models import Broker, Cell
from climate.settings import Settings
from workers import celery_app
from workers.cell_receiver import Receiver

QUEUES = ["one", "two", "three"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with TemporaryDirectory(prefix="climate-test-") as folder:
        Path(folder).chmod(0o755)
        home = Path(folder) / "stores"
        with embedded.run(home, Settings(home=home, database_url="postgresql://unused/none")) as stores:
            yield stores.redis_url


@pytest.fixture
def broker(url: str) -> Iterator["redis.Redis[bytes]"]:
    with redis.Redis.from_url(url) as client:
        client.flushdb()
        yield client


@pytest.fixture
def receiver(url: str, broker: object) -> Iterator[Receiver]:
    found = Receiver(celery_app.broker_url(url), QUEUES)
    yield found
    found.close()


def send(url: str, queue: str, *numbers: int) -> None:
    transport = BrokerTransport()
    cell = Cell("here", broker=Broker(transport_url=url, secret="x" * 20))
    for number in numbers:
        transport.send(cell, queue, {"number": number})
    transport.close()


def test_envelopes_are_read_several_at_once_in_their_order(url: str, receiver: Receiver) -> None:
    send(url, "two", *range(5))
    assert receiver.read(1, 3) == [{"number": 0}, {"number": 1}, {"number": 2}]
    assert receiver.read(1, 3) == [{"number": 3}, {"number": 4}]
    assert receiver.read(0.01, 3) == []


def test_no_queue_waits_for_a_busy_one(url: str, receiver: Receiver) -> None:
    send(url, "one", *range(10))
    send(url, "three", 77)
    assert {"number": 77} in [*receiver.read(1, 1), *receiver.read(1, 1)]


@pytest.mark.parametrize(
    "entry",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"body": 1}',
        b'{"body": "{", "properties": {}, "content-type": "application/json"}',
        b'{"body": "e30=", "properties": {"body_encoding": "base64"}, "content-type": "application/json"}',
        b'{"body": "{}", "properties": {}, "content-type": "application/x-python-serialize"}',
    ],
)
def test_entry_that_is_no_message_is_dropped_and_logged(
    url: str,
    broker: "redis.Redis[bytes]",
    receiver: Receiver,
    entry: bytes,
    capsys: pytest.CaptureFixture[str],
) -> None:
    broker.lpush("climate:one", entry)
    send(url, "one", 1)
    assert receiver.read(1, 10) == [{"number": 1}]
    assert "a message is dropped" in capsys.readouterr().out


def test_broker_that_is_away_is_an_error(tmp_path: Path) -> None:
    receiver = Receiver(f"redis+socket://{tmp_path}/none.sock", QUEUES)
    with pytest.raises(receiver.errors):
        receiver.read(0.01, 1)
    receiver.close()
