"""Health of the broker: its answer to a ping, and the lengths of its queues."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis

PATIENCE = 1.0
"""Seconds to wait for an answer."""

BINDINGS = "_kombu.binding."
"""Part of the names of keys under which kombu records its queues; kombu's prefix stands before it."""

BETWEEN = "\x06\x16"


def answers(url: str) -> bool:
    """Return whether a broker answers at `url`."""
    try:
        with _client(url) as client:
            return bool(client.ping())
    except (redis.RedisError, OSError, ValueError):
        return False


def queues(url: str) -> dict[str, int]:
    """Return the waiting messages of each queue; empty if the broker is unreachable."""
    try:
        with _client(url) as client:
            return {name: int(client.llen(prefix + name)) for prefix, name in sorted(_names(client))}
    except (redis.RedisError, OSError, ValueError):
        return {}


def _names(client: Any) -> set[tuple[str, str]]:
    """Yield (prefix of the keys, name of the queue)."""
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
