"""Tolerant reader of the queues: drops and logs messages that are not climate's, and continues.

Without it, an unreadable message ends the process, or makes kombu reconnect and deliver the message again, endlessly.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol, cast

import structlog
from celery.app.amqp import AMQP
from kombu.connection import Connection
from kombu.entity import Queue
from kombu.message import Message
from kombu.transport import redis

log = structlog.get_logger(__name__)

NO_TEXT = (ValueError, TypeError, RecursionError)
NO_MESSAGE = (*NO_TEXT, LookupError, AttributeError)
"""Errors of a text that is JSON, but not the expected message."""


class _Channel(redis.Channel):
    def _brpop_read(self, **options: object) -> object:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        except NO_TEXT as error:
            _log(error)
            return True

    def basic_consume(
        self, queue: str, no_ack: bool, callback: Callable[[Message], object], consumer_tag: str, **options: object
    ) -> None:
        read = partial(_read, callback)
        super().basic_consume(queue, no_ack, read, consumer_tag, **options)  # type: ignore[no-untyped-call]
        known = self.connection._callbacks
        known[queue] = partial(_take, known[queue])


def _take(made: Callable[[object], object], raw: object) -> None:
    """Decode an entry of a queue and deliver it."""
    try:
        made(raw)
    except NO_MESSAGE as error:
        _log(error)


def _read(callback: Callable[[Message], object], message: Message) -> None:
    """Acknowledge a rejected message, so that it is not delivered again."""
    try:
        callback(message)
    except NO_MESSAGE as error:
        _log(error)
        if not message.acknowledged:
            message.reject()  # type: ignore[no-untyped-call]


def _log(error: Exception) -> None:
    log.warning("a message is dropped: it cannot be read", error=type(error).__name__, reason=str(error)[:200])


class _Transport(redis.Transport):
    Channel = _Channel
    brpop_timeout = 5
    """Seconds after which an idle reader asks anew; a message ends the wait at once."""


class _Connection(Connection):
    def get_transport_cls(self) -> type[_Transport]:
        return _Transport


class Amqp(AMQP):  # type: ignore[misc]
    """AMQP settings of the application with the tolerant reader."""

    Connection = _Connection


class BrokerConnection(Protocol):
    """The part of kombu's connection, which has no types, that readers of queues use."""

    connection_errors: tuple[type[Exception], ...]
    channel_errors: tuple[type[Exception], ...]

    def Consumer(  # noqa: N802 - kombu's name
        self,
        queues: Sequence[Queue],
        *,
        callbacks: Sequence[Callable[[object, Message], None]],
        no_ack: bool,
        accept: Sequence[str],
    ) -> AbstractContextManager[object]: ...

    def drain_events(self, *, timeout: float) -> object: ...

    def release(self) -> None: ...


def connect(url: str, options: Mapping[str, object]) -> BrokerConnection:
    """Return a connection for readers of queues without an application."""
    made = _Connection(url, transport_options=dict(options))  # type: ignore[no-untyped-call]
    return cast(BrokerConnection, made)
