"""A message that comes twice while its work is being done."""

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.status import LeaseStatus
from climate.service.events import events
from tests.conftest import Clock
from tests.service.lease_actions import claim, get, make


def test_a_message_is_dropped_while_another_worker_is_at_it(climate: Climate, cloud: FakeCloud, clock: Clock) -> None:
    lease = make(climate, clock, start=0)
    (message,) = claim(climate)

    def deliver_again(verb: str) -> None:
        cloud.watch = None
        assert verb == "lend"
        events.run(climate, message.event_id, message.token, "the other worker")

    cloud.calls.clear()
    cloud.watch = deliver_again
    events.run(climate, message.event_id, message.token, "the first worker")
    assert [verb for verb, _ in cloud.calls] == ["lend"]
    assert get(climate, lease).status is LeaseStatus.ACTIVE
