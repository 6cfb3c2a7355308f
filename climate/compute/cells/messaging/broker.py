"""Transport over brokers: messages are pushed to a queue of the neighbour's own Redis or Valkey."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, cast

import structlog
from kombu.connection import Connection
from kombu.exceptions import KombuError
from kombu.transport import redis
from kombu.utils.json import dumps
from redis.exceptions import ConnectionError as ConnectionLost

from climate.compute.cells.messaging.transport import Envelope, TransportError
from climate.compute.cells.models import Broker, Cell

log = structlog.get_logger(__name__)

PREFIX = "climate:"
"""Prefix of all of climate's keys in a broker."""

OPTIONS: Mapping[str, object] = {
    "socket_timeout": 3,
    "socket_connect_timeout": 2,
    "socket_keepalive": True,
    "global_keyprefix": PREFIX,
    # The body is JSON and needs no further encoding.
    "body_encoding": None,
    # Messages have no priority, so a reader polls one key per queue instead of four.
    "priority_steps": [0],
    # A single attempt: the message stays in the database, and the next attempt follows after a pause.
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0,
    "interval_max": 0,
}


class _KeptChannel(redis.Channel):
    """Channel that keeps one connection of its client, for sending or for reading.

    To take one out of the pool for each message, and the client's layers over it, cost twice as much as sending it.
    """

    _line: Any = None

    def _put(self, queue: str, message: Mapping[str, object], **options: Any) -> None:
        """Push a message to a queue; without an answer of the broker, raise one of the connection's errors."""
        command = ("LPUSH", self.key(queue), dumps(message))  # type: ignore[no-untyped-call]
        try:
            self.command(*command)
        except ConnectionLost:
            # The broker may have restarted since the last message. One that it has taken is stored once all the same.
            self._line.disconnect()
            self.command(*command)

    def key(self, queue: str) -> str:
        """Return the key of a queue."""
        return f"{self.global_keyprefix}{queue}"

    def command(self, *command: str | float) -> object:
        """Return the broker's answer to a command; without one, raise one of the connection's errors."""
        if self._line is None:
            client = self._create_client()  # type: ignore[no-untyped-call]
            self._line = client.connection_pool.get_connection()
        self._line.send_command(*command)
        return self._line.read_response()


class _KeptTransport(redis.Transport):
    Channel = _KeptChannel


class KeptConnection(Connection):
    """Connection to a Redis or Valkey, for sending to a neighbour or for reading the queues of this cell."""

    def get_transport_cls(self) -> type[_KeptTransport]:
        return _KeptTransport

    @property
    def _channel(self) -> _KeptChannel:
        return cast(_KeptChannel, self.default_channel)

    def key(self, queue: str) -> str:
        """Return the key of a queue."""
        return self._channel.key(queue)

    def command(self, *command: str | float) -> Any:
        """Return the broker's answer to a command; without one, raise one of the connection's errors."""
        return self._channel.command(*command)


def params(broker: Broker) -> dict[str, object]:
    """Return the arguments of a connection to a broker. Raise TransportError if it has no address."""
    if broker.transport_url:
        return {"hostname": broker.transport_url.replace("unix://", "redis+socket://", 1)}
    params = broker.server_params()
    if "hostname" not in params:
        raise TransportError("The cell has neither rpc_host nor transport_url; set one with `climate cell set`")
    if "username" in params:
        params["userid"] = params.pop("username")
    return {"transport": "redis", **params}


@dataclass(slots=True)
class BrokerTransport:
    """Connections to the brokers of the neighbours, one each; thread-safe."""

    connect: Callable[..., Connection] = KeptConnection
    _open: dict[str, "_Link"] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def send(self, neighbour: Cell, queue: str, envelope: Envelope) -> None:
        """Push an envelope to a queue of the neighbour's broker."""
        given = params(neighbour.broker)
        with self._link(neighbour.name, given) as link:
            link.publish(dict(envelope), queue)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            links = list(self._open.values())
            self._open.clear()
        for link in links:
            link.close()

    @contextmanager
    def _link(self, name: str, given: Mapping[str, object]) -> "Iterator[_Link]":
        """Yield the connection to a neighbour; recreate it if the address changed, and drop it after an error."""
        with self._lock:
            link = self._open.get(name)
            if link is None or link.given != given:
                stale, link = link, _Link(given, self._connection(name, given))
                self._open[name] = link
                if stale is not None:
                    stale.close()
        try:
            yield link
        except (OSError, ValueError, KombuError, *link.errors) as error:
            with self._lock:
                if self._open.get(name) is link:
                    del self._open[name]
            link.close()
            raise TransportError(f"The broker of cell {name} is unreachable: {type(error).__name__}") from None

    def _connection(self, name: str, given: Mapping[str, object]) -> Connection:
        try:
            return self.connect(**given, transport_options=dict(OPTIONS))
        except ValueError as error:
            raise TransportError(f"The broker of cell {name} is unreachable: {type(error).__name__}") from None


class _Link:
    """Connection used by one thread at a time."""

    def __init__(self, given: Mapping[str, object], connection: Connection) -> None:
        self.given = given
        self.errors = (*connection.connection_errors, *connection.channel_errors)
        self._connection = connection
        self._lock = Lock()

    def publish(self, body: Mapping[str, object], queue: str) -> None:
        text = json.dumps(body)
        with self._lock:
            channel = self._connection.default_channel
            message = channel.prepare_message(  # type: ignore[no-untyped-call]
                text, content_type="application/json", content_encoding="utf-8"
            )
            channel.basic_publish(message, exchange="", routing_key=queue)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        try:
            self._connection.close()  # type: ignore[no-untyped-call]
        except (OSError, KombuError, *self.errors) as error:
            log.debug("connection not closed", error=type(error).__name__)
