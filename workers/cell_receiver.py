"""Receiver: reads the envelopes in the broker of this cell, several at once, over one kept connection.

kombu's consumer polls its connections and reads one message at a time, which takes twice the processor time.
"""

import json
from collections.abc import Sequence

import structlog
from kombu.exceptions import KombuError

from climate.compute.cells.messaging.broker import OPTIONS, KeptConnection
from workers.tolerant_transport import NO_MESSAGE

log = structlog.get_logger(__name__)


class Receiver:
    """Reader of queues; used by one thread. Needs Redis 7 or Valkey."""

    def __init__(self, url: str, queues: Sequence[str]) -> None:
        """Read these queues of the broker at `url`. Nothing is opened before the first `read`."""
        self._connection = KeptConnection(url, transport_options=dict(OPTIONS))  # type: ignore[no-untyped-call]
        self._queues = list(queues)
        self.errors: tuple[type[Exception], ...] = (
            OSError,
            KombuError,
            *self._connection.connection_errors,
            *self._connection.channel_errors,
        )

    def read(self, seconds: float, most: int) -> list[object]:
        """Return at most so many envelopes of one queue, as soon as there is one; none after `seconds`.

        Raise one of `errors` if the broker is unreachable. The sender keeps each message until it is confirmed or
        answered, so that the broker need not keep those that were read. Entries that cannot be read are logged.
        """
        keys = [self._connection.key(queue) for queue in self._queues]
        found = self._connection.command("BLMPOP", seconds, len(keys), *keys, "RIGHT", "COUNT", most)
        if not found:
            return []
        queue = self._queues.pop(keys.index(bytes(found[0]).decode()))
        self._queues.append(queue)  # the others come first now, so that none of them waits for a busy one
        return [envelope for entry in found[1] for envelope in _envelope(entry)]

    def close(self) -> None:
        """Close the connection."""
        self._connection.release()  # type: ignore[no-untyped-call]


def _envelope(entry: bytes) -> list[object]:
    """Return the envelope in an entry of a queue in the form of kombu; an empty list if there is none."""
    try:
        message = json.loads(entry)
        if message["properties"].get("body_encoding") or message["content-type"] != "application/json":
            raise ValueError("The body of the message is not JSON as it is")
        return [json.loads(message["body"])]
    except NO_MESSAGE as error:
        log.warning("a message is dropped: it cannot be read", error=type(error).__name__, reason=str(error)[:200])
        return []
