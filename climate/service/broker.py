"""What the broker can say of itself: does it answer, and how long are its queues."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis

PATIENCE = 1.0
"""Seconds that an answer may take."""

BINDINGS = "_kombu.binding."
"""Under keys with this in their name the library that sends messages notes its queues; its prefix stands before it."""

BETWEEN = "\x06\x16"


def answers(url: str) -> bool:
    """Whether there is a broker at `url`."""
    try:
        with _client(url) as client:
            return bool(client.ping())
    except (redis.RedisError, OSError, ValueError):
        return False


def queues(url: str) -> dict[str, int]:
    """Queue -> messages waiting in it; empty when the broker is away."""
    try:
        with _client(url) as client:
            return {name: int(client.llen(prefix + name)) for prefix, name in sorted(_names(client))}
    except (redis.RedisError, OSError, ValueError):
        return {}


def _names(client: Any) -> set[tuple[str, str]]:
    """(prefix of the keys, name of the queue)."""
    keys = [key.decode() for key in client.scan_iter(match=f"*{BINDINGS}*", count=1000)]
    return {
        (key.partition(BINDINGS)[0], member.decode().rpartition(BETWEEN)[2])
        for key in keys
        for member in client.smembers(key)
    }


@contextmanager
def _client(url: str) -> Iterator[Any]:
    client = redis.Redis.from_url(url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)
    try:
        yield client
    finally:
        client.close()
