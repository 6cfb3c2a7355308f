"""Tolerant reader of the queues: drops and logs messages that are not climate's, and continues.

Without it, an unreadable message ends the process, or makes kombu reconnect and deliver the message again, endlessly.
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
"""Errors of a text that is JSON, but not the expected message."""


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
    """Decode an entry of a queue and deliver it."""
    try:
        made(raw)
    except NO_MESSAGE as error:
        _tell(error)


def _read(callback: Callable[[Message], Any], message: Message) -> None:
    """Acknowledge a rejected message, so that it is not delivered again."""
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
    """AMQP settings of the application with the tolerant reader."""

    Connection = _Connection


def connect(url: str, options: Mapping[str, Any]) -> Any:
    """Return a connection for readers of queues without an application."""
    return _Connection(url, transport_options=dict(options))  # type: ignore[no-untyped-call]
