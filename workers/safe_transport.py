"""How the queues are read: what is no message of ours is dropped with a word in the log, and the worker goes on.

By itself the library lets whatever it cannot read end the process, or have
its connection made anew and the same message delivered again, without end.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import structlog
from celery.app.amqp import AMQP
from kombu.connection import Connection
from kombu.message import Message
from kombu.transport import redis

log = structlog.get_logger(__name__)

NO_TEXT = (ValueError, TypeError, RecursionError)
NO_MESSAGE = (*NO_TEXT, LookupError, AttributeError)
"""What is raised about a text that is JSON, and otherwise not what was expected."""


class _Channel(redis.Channel):
    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        except NO_TEXT as error:
            _tell(error)
            return True

    def basic_consume(
        self, queue: str, no_ack: bool, callback: Callable[[Message], Any], consumer_tag: str, **options: Any
    ) -> None:
        read = partial(_read, callback)
        super().basic_consume(queue, no_ack, read, consumer_tag, **options)  # type: ignore[no-untyped-call]
        known = self.connection._callbacks
        known[queue] = partial(_take, known[queue])


def _take(made: Callable[[Any], Any], raw: Any) -> None:
    """Make a message of what was found in a queue, and have it read."""
    try:
        made(raw)
    except NO_MESSAGE as error:
        _tell(error)


def _read(callback: Callable[[Message], Any], message: Message) -> None:
    """One that is given back counts as in hand no longer, and is not delivered again."""
    try:
        callback(message)
    except NO_MESSAGE as error:
        _tell(error)
        if not message.acknowledged:
            message.reject()  # type: ignore[no-untyped-call]


def _tell(error: Exception) -> None:
    log.warning("a message is dropped: it cannot be read", error=type(error).__name__, reason=str(error)[:200])


class _Transport(redis.Transport):
    Channel = _Channel


class _Connection(Connection):
    def get_transport_cls(self) -> type[_Transport]:
        return _Transport


class Amqp(AMQP):  # type: ignore[misc]
    """What an application is given to read by."""

    Connection = _Connection


def connect(url: str, options: Mapping[str, Any]) -> Any:
    """Return a connection for whoever reads queues without an application."""
    return _Connection(url, transport_options=dict(options))  # type: ignore[no-untyped-call]
