"""A lease from end to end, with the poller and the worker in the test's own hands."""

from datetime import timedelta

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.status import LeaseStatus
from climate.service.events import event_dispatch, events
from climate.service.journal import consistency_check
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from tests.conftest import MEMBER, Clock

TWO_GPU_HOSTS = {
    "resource_type": "physical:host",
    "min": 2,
    "max": 2,
    "hypervisor_properties": '[">=", "$vcpus", "4"]',
    "resource_properties": '[">", "$gpu_count", "1"]',
}


def run_due(climate: Climate) -> None:
    while event_dispatch.claim_due(climate, "poller"):
        for message in event_dispatch.to_send(climate):
            events.run(climate, message.event_id, message.token, "worker")


def test_hosts_are_allocated_on_time_and_come_back(climate: Climate, clock: Clock) -> None:
    start = clock.time + timedelta(hours=1)
    lease = leases.create(climate, MEMBER, LeaseRequest("l", start, start + timedelta(hours=2), None, [TWO_GPU_HOSTS]))
    pool = str(lease.reservations[0].id)
    assert lease.status is LeaseStatus.PENDING
    run_due(climate)
    assert leases.get(climate, MEMBER, lease.id).status is LeaseStatus.PENDING

    clock.forward(hours=1)
    run_due(climate)
    assert leases.get(climate, MEMBER, lease.id).status is LeaseStatus.ACTIVE
    assert climate.cloud.pools()[pool] <= {"h5", "h6", "h7", "h8"}

    clock.forward(hours=2)
    run_due(climate)
    assert leases.get(climate, MEMBER, lease.id).status is LeaseStatus.TERMINATED
    assert isinstance(climate.cloud, FakeCloud)
    assert set(climate.cloud.pools()) == {"freepool"}
    assert len(climate.cloud.pools()["freepool"]) == 8
    assert consistency_check.differences(climate) == []
