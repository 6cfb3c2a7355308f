"""Messages for claimed events: no more than needed while no worker comes, and at once when the broker is back."""

from collections import Counter
from typing import Any, cast

import pytest
from kombu.exceptions import OperationalError as BrokerError
from sqlalchemy import text

from climate.context import Climate
from climate.domain.status import EventKind
from climate.service.events import event_dispatch
from climate.store.leases import claim_batches
from tests.conftest import Clock
from tests.service.lease_actions import make
from workers.event_messages import EventMessages


class Bell:
    """A broker that keeps messages, and may be away after some more of them."""

    def __init__(self) -> None:
        self.away_after: int | None = None
        self.queues: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()

    def send_task(self, name: str, args: list[Any], queue: Any, **options: Any) -> None:
        if self.away_after is not None:
            if self.away_after == 0:
                raise BrokerError("away")
            self.away_after -= 1
        self.queues[queue.name] += 1
        self.sent[args[0]] += 1

    def waiting(self, queue: str) -> int:
        if self.away_after is not None:
            raise BrokerError("away")
        return self.queues[queue]


@pytest.fixture
def bell() -> Bell:
    return Bell()


@pytest.fixture
def sender(climate: Climate, bell: Bell) -> EventMessages:
    return EventMessages(climate, cast("Any", bell), bell.waiting)


@pytest.fixture
def claimed(climate: Climate, clock: Clock) -> int:
    """Events that are claimed, and not rung for yet."""
    for _ in range(6):
        make(climate, clock, start=1)
    clock.forward(hours=1)
    return event_dispatch.claim_due(climate, "poller")


def test_while_no_worker_comes_each_event_has_one_message(
    clock: Clock, bell: Bell, sender: EventMessages, claimed: int
) -> None:
    for _ in range(300):
        sender.send()
        clock.forward(seconds=3)
    assert len(bell.sent) == claimed
    assert set(bell.sent.values()) == {1}


def test_a_message_that_is_lost_is_sent_again(clock: Clock, bell: Bell, sender: EventMessages, claimed: int) -> None:
    sender.send()
    bell.queues.clear()
    clock.forward(seconds=2)
    sender.send()
    assert len(bell.sent) == claimed
    assert set(bell.sent.values()) == {2}


def test_what_could_not_be_sent_is_sent_as_soon_as_the_broker_is_back(
    bell: Bell, sender: EventMessages, claimed: int
) -> None:
    bell.away_after = 0
    for _ in range(3):
        with pytest.raises(BrokerError):
            sender.send()
    bell.away_after = None
    sender.send()
    assert len(bell.sent) == claimed


def test_what_the_broker_has_lost_in_an_outage_is_sent_again_at_once(
    clock: Clock, bell: Bell, sender: EventMessages, claimed: int
) -> None:
    for _ in range(10):  # several times, so that the pause before the next time is long
        sender.send()
        bell.queues.clear()
        clock.forward(seconds=40)
    bell.away_after = 3
    with pytest.raises(BrokerError):
        sender.send()
    before = Counter(bell.sent)
    bell.queues.clear()
    bell.away_after = None
    sender.send()
    assert bell.sent - before == Counter(dict.fromkeys(before, 1))
    assert len(before) == claimed


def test_only_what_was_not_sent_is_taken_back(
    climate: Climate, bell: Bell, sender: EventMessages, claimed: int
) -> None:
    bell.away_after = 2
    with pytest.raises(BrokerError):
        sender.send()
    with climate.engine.connect() as conn:
        rows = conn.execute(text("SELECT dispatches, dispatched_at IS NULL FROM claims")).all()
    assert Counter(tuple(row) for row in rows) == {(1, False): 2, (0, True): claimed - 2}


def test_what_was_never_sent_comes_before_what_nobody_answers(climate: Climate, clock: Clock, claimed: int) -> None:
    for _ in range(10):
        event_dispatch.to_send(climate)
        clock.forward(seconds=40)
    new = make(climate, clock, start=0)
    assert event_dispatch.claim_due(climate, "poller") == 1
    with climate.engine.begin() as conn:
        (first,) = claim_batches.to_send(conn, clock.time, limit=1)
        rest = claim_batches.to_send(conn, clock.time)
    assert first.event_id == new.event(EventKind.START).id
    assert (first.sent, len(rest)) == (1, claimed)
