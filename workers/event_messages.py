"""Messages for claimed events: each is sent once, and again only when it is missing from its queue."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog
from celery import Celery
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from climate.context import Climate
from climate.service.events import event_batches, event_dispatch
from climate.service.events.event_shares import QUEUE
from climate.store.leases.event_claims import Message
from workers import celery_app

log = structlog.get_logger(__name__)

BROKER_IS_AWAY = (BrokerError, RedisError, OSError)


@dataclass
class EventMessages:
    """Sends the messages of claims; one thread at a time."""

    climate: Climate
    bell: Celery
    waiting: Callable[[str], int]
    """Counts the messages in a queue."""
    is_cut_off: bool = False
    """True if the broker was away, so that earlier messages may be lost."""

    def send(self, alive: Callable[[], None] = lambda: None) -> None:
        """Send messages that are new or seem lost. Raise one of BROKER_IS_AWAY if the broker is away.

        Unsent messages are marked, and are sent when the broker is back, with all unbegun ones. `alive` is called after
        each message.
        """
        if self.is_cut_off:
            self.waiting(QUEUE)
            event_dispatch.resend_unstarted(self.climate)
            self.is_cut_off = False
        messages: Sequence[Message] = event_dispatch.to_send(self.climate, event_batches.batched(self.climate))
        try:
            messages = self._missing(messages)
            while messages:
                number = messages[0].number
                self._send_one([message for message in messages if message.number == number])
                messages = [message for message in messages if message.number != number]
                alive()
        except BROKER_IS_AWAY:
            self.is_cut_off = True
            event_dispatch.mark_unsent(self.climate, messages)
            raise

    def _send_one(self, portion: Sequence[Message]) -> None:
        args = [[str(message.event_id), message.token] for message in portion]
        if len(portion) == 1:
            celery_app.send(self.bell, celery_app.RUN_EVENT, args[0], portion[0].queue)
        else:
            celery_app.send(self.bell, celery_app.RUN_EVENTS, [args], portion[0].queue)

    def _missing(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages that were never sent, or whose queue has fewer messages than were sent and not begun."""
        again = {message.queue for message in messages if message.sent > 1}
        if not again:
            return messages
        unbegun = event_dispatch.count_sent_unstarted(self.climate)
        full = {queue for queue in again if self.waiting(queue) >= unbegun[queue]}
        lost = [message for message in messages if message.sent > 1 and message.queue not in full]
        if lost:
            event_dispatch.mark_for_single_send(self.climate, lost)
        return [message for message in messages if message.sent <= 1 or message.queue not in full]
