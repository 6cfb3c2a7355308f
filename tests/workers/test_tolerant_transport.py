"""What is found in a queue and is no message is dropped; what comes after it is read."""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import redis
from kombu import Message

from climate import embedded
from climate.settings import Settings
from workers import celery_app

QUEUE = "events"
PATIENCE = 10.0


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with TemporaryDirectory(prefix="climate-test-") as folder:
        Path(folder).chmod(0o755)
        home = Path(folder) / "stores"
        with embedded.run(home, Settings(home=home, database_url="postgresql://unused/none")) as stores:
            yield stores.redis_url


def _envelope(**properties: Any) -> bytes:
    whole = {"delivery_tag": "t", "delivery_info": {"exchange": "", "routing_key": QUEUE}, **properties}
    return json.dumps({"body": "W10=", "headers": {}, "properties": whole}).encode()


NO_MESSAGES = {
    "pickle": b"\x80\x04.",
    "no JSON": b"x" * 10_000,
    "too deep": b"[" * 100_000,
    "a type of kombu's": b'{"__type__": "datetime", "__value__": 5}',
    "null": b"null",
    "a list": b"[]",
    "nothing in it": b"{}",
    "without properties": b'{"body": 1, "headers": 2}',
    "without a tag": b'{"body": "W10=", "headers": {}, "properties": {}}',
    "without an address": _envelope(delivery_info=None),
    "no such encoding": _envelope(body_encoding="rot13"),
    "headers of another kind": b'{"body": "W10=", "headers": [1], "properties": {"delivery_tag": "t"}}',
    "a tag that is none": _envelope(delivery_tag={"a": 1}),
}


def _drain(redis_url: str, answer: Any, count: int) -> None:
    """Read so many messages as a worker does; what the reading raises goes on to the test."""
    app = celery_app.connect(redis_url)
    with app.connection_for_read() as conn, conn.Consumer([celery_app._queue(QUEUE)], on_message=answer):
        for _ in range(count):
            conn.drain_events(timeout=PATIENCE)


def _waiting(redis_url: str) -> int:
    """Messages in the queue, and those that were taken and are to be delivered again."""
    client = redis.Redis.from_url(redis_url)
    return int(client.llen(celery_app.key(QUEUE))) + int(client.hlen(celery_app.key("unacked")))


@pytest.mark.parametrize("name", NO_MESSAGES)
def test_what_is_no_message_does_not_keep_the_next_one_from_being_read(
    redis_url: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    redis.Redis.from_url(redis_url).lpush(celery_app.key(QUEUE), NO_MESSAGES[name])
    celery_app.send(celery_app.connect(redis_url), "climate.some", [7], QUEUE)
    read: list[str] = []

    def answer(message: Message) -> None:
        read.append(message.headers["task"])
        message.ack()

    _drain(redis_url, answer, count=2)
    assert read == ["climate.some"]
    assert not _waiting(redis_url)
    assert "a message is dropped" in capsys.readouterr().out


def test_a_message_on_which_its_reader_fails_is_not_delivered_again(redis_url: str) -> None:
    celery_app.send(celery_app.connect(redis_url), "climate.some", [7], QUEUE)
    _drain(redis_url, lambda message: message.headers["what is not there"], count=1)
    assert not _waiting(redis_url)


def test_other_trouble_of_a_reader_is_not_hidden(redis_url: str) -> None:
    def fails(_: Message) -> None:
        raise ZeroDivisionError

    celery_app.send(celery_app.connect(redis_url), "climate.some", [7], QUEUE)
    with pytest.raises(ZeroDivisionError):
        _drain(redis_url, fails, count=1)
    redis.Redis.from_url(redis_url).flushall()
