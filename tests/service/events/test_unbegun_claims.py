"""What is claimed and was not begun by any worker can be changed: the change takes the claim back."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from climate.cloud import RESERVED
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Busy
from climate.domain.lease import Lease
from climate.domain.status import DONE, UNDONE, LeaseStatus
from climate.service.journal import consistency_check
from climate.service.leases import host_replacement, lease_servers, leases, update
from climate.service.leases.update import Changes
from climate.store.leases.event_claims import Message
from tests.conftest import ADMIN, MEMBER, Clock
from tests.scenarios.test_late_workers import stand_still
from tests.service import lease_actions
from tests.service.lease_actions import END, START, claim, get, hosts_wanted, make, run, run_due
from tests.service.storage_factory import pool, storage_wanted


@pytest.fixture
def lease(climate: Climate, clock: Clock) -> Lease:
    """A lease of two hosts whose start is due."""
    made = make(climate, clock, hosts_wanted(2))
    clock.forward(hours=1)
    return made


def late(climate: Climate, cloud: FakeCloud, message: Message) -> None:
    """A worker comes with a message that was sent before the change: it does and records nothing."""
    calls, known = list(cloud.calls), consistency_check.differences(climate)
    run(climate, message)
    assert (cloud.calls, known) == (calls, [])


def test_a_later_end_is_taken_though_the_start_is_claimed(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    (old,) = claim(climate)
    assert get(climate, lease).status is LeaseStatus.STARTING
    end = lease.period.end + timedelta(hours=1)
    changed = update.update(climate, MEMBER, lease.id, Changes(end=end))
    assert (changed.status, changed.period.end) == (LeaseStatus.PENDING, end)
    start = replace(changed.event(START), updated_at=None)
    assert start == lease.event(START), "it is as if it had never been claimed"
    before = lease_actions.kinds(climate, lease)
    late(climate, cloud, old)
    assert lease_actions.kinds(climate, lease) == before, "the late worker records nothing"
    (new,) = claim(climate)
    assert new.token > old.token
    late(climate, cloud, old)
    run(climate, new)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert cloud.doubled() == []


def test_a_deletion_gives_all_back_at_once(climate: Climate, cloud: FakeCloud, lease: Lease) -> None:
    (old,) = claim(climate)
    assert leases.delete(climate, MEMBER, lease.id).gone, "nothing of it was asked of the cloud"
    late(climate, cloud, old)
    assert claim(climate) == []


def test_an_end_that_nobody_has_begun_can_be_put_off(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    run_due(climate)
    clock.time = lease.period.end - timedelta(minutes=1)
    update.update(climate, MEMBER, lease.id, Changes(end_now=True))
    (old,) = [message for message in claim(climate) if message.event_id == lease.event(END).id]
    assert get(climate, lease).status is LeaseStatus.TERMINATING
    leases.delete(climate, MEMBER, lease.id)
    late(climate, cloud, old)
    run_due(climate)
    assert len(cloud.pools()["freepool"]) == 8


def test_a_host_is_exchanged_though_the_start_is_claimed(climate: Climate, cloud: FakeCloud, lease: Lease) -> None:
    (old,) = claim(climate)
    host = str(lease.reservations[0].hosts[0])
    host_replacement.reallocate(climate, ADMIN, host_replacement.ReplacementRequest(host, lease.id))
    late(climate, cloud, old)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE


def test_a_sleeping_server_is_given_up_though_the_start_is_claimed(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    sleeping = [cloud.boot("project", status=RESERVED) for _ in range(2)]
    lease = make(climate, clock, *({"resource_type": "virtual:instance", "resource_id": one} for one in sleeping))
    clock.forward(hours=1)
    (old,) = claim(climate)
    after = lease_servers.end_reservation(climate, MEMBER, sleeping[0])
    assert after is not None
    assert [one.spec.get("given_up") for one in after.reservations] == [True, None]
    late(climate, cloud, old)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE


def test_what_a_worker_has_begun_is_busy(climate: Climate, cloud: FakeCloud, lease: Lease) -> None:
    refused: list[Busy] = []

    def change() -> None:
        for act in _acts(climate, lease):
            with pytest.raises(Busy) as found:
                act()
            refused.append(found.value)

    stand_still(cloud, "lend", 1, change)
    run_due(climate)
    assert len(refused) == 2
    assert get(climate, lease).status is LeaseStatus.ACTIVE


def _acts(climate: Climate, lease: Lease) -> list[Callable[[], object]]:
    end = lease.period.end + timedelta(hours=1)
    return [
        lambda: update.update(climate, MEMBER, lease.id, Changes(end=end)),
        lambda: leases.delete(climate, MEMBER, lease.id),
    ]


def test_a_share_that_was_done_keeps_the_lease_busy(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    pool(climate, 10)
    lease = make(climate, clock, hosts_wanted(1), storage_wanted(10), start=0)
    first, second = claim(climate)
    run(climate, first)
    for act in _acts(climate, lease):
        with pytest.raises(Busy):
            act()
    run(climate, second)
    assert get(climate, lease).event(START).status is DONE


def test_all_shares_of_an_event_are_taken_back_together(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    pool(climate, 10)
    lease = make(climate, clock, hosts_wanted(1), storage_wanted(10), start=0)
    messages = claim(climate)
    changed = update.update(climate, MEMBER, lease.id, Changes(end=lease.period.end + timedelta(hours=1)))
    assert changed.event(START).status is UNDONE
    for message in messages:
        late(climate, cloud, message)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert consistency_check.differences(climate) == []


def test_a_change_that_is_refused_leaves_the_claim(climate: Climate, clock: Clock, lease: Lease) -> None:
    (message,) = claim(climate)
    with pytest.raises(Exception, match="End date"):
        update.update(climate, MEMBER, lease.id, Changes(end=clock.time - timedelta(days=1)))
    run(climate, message)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
