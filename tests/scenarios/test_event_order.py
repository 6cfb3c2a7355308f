"""Which event comes when: late ones, those of leases that share a host, those of many projects."""

from datetime import timedelta

import psycopg
from sqlalchemy import Engine, text

from climate import bootstrap
from climate.cloud import CloudError, Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.status import DONE, ERROR, UNDONE, LeaseStatus
from climate.service.events import event_dispatch, events
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.store.leases.event_claims import CHANNEL
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service import lease_actions
from tests.service.lease_actions import (
    ADJUST,
    BEFORE_END,
    END,
    START,
    claim,
    get,
    hosts_wanted,
    listed_events,
    make,
    reservation,
    run,
    run_due,
)


def test_a_late_start_says_so_and_does_not_move_the_end(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock)
    clock.forward(hours=2)
    run_due(climate)
    after = get(climate, lease)
    assert (after.status, after.event(START).outcome) == (LeaseStatus.ACTIVE, "LATE")
    assert after.event(END).due_at == lease.period.end


def test_a_start_whose_lease_is_over_is_missed_and_everything_comes_back(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    order = LeaseRequest(
        "l", clock.time, clock.time + timedelta(hours=2), clock.time + timedelta(hours=1), [hosts_wanted()]
    )
    lease = leases.create(climate, MEMBER, order)
    clock.forward(hours=5)
    run_due(climate)
    after = get(climate, lease)
    assert [(e.status, e.outcome) for e in after.events] == [(ERROR, "MISSED"), (DONE, "SKIPPED"), (DONE, "LATE")]
    assert after.status is LeaseStatus.TERMINATED
    assert str(after.event(START).reason).startswith("missed: the lease was over at 2030-01-01 14:00:00")
    assert ("lend", reservation(lease)) not in cloud.calls
    assert lease_actions.held(make(climate, clock, hosts_wanted(8), start=0)) == set(range(1, 9))


def test_the_owner_of_a_lease_that_was_missed_is_notified_once(climate: Climate, clock: Clock, engine: Engine) -> None:
    missed = make(climate, clock)
    clock.forward(hours=5)
    run_due(climate)
    with engine.connect() as conn:
        told = conn.execute(text("SELECT kind, message, project_id, user_id, lease_id FROM notices")).all()
    assert [(one.kind, one.project_id, one.user_id, one.lease_id) for one in told] == [
        ("lease.missed", missed.project_id, missed.user_id, missed.id)
    ]
    assert told[0].message == (
        "Lease l was never started: it was from 2030-01-01 13:00:00 UTC to 2030-01-01 15:00:00 UTC, "
        "and climate did not run in that time, or had no worker for it"
    )


def test_the_owner_of_a_lease_whose_start_was_refused_to_its_end_learns_why(
    climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine
) -> None:
    lease = make(climate, clock, start=0)
    cloud.failures["lend"] = CloudError("the cloud is away")
    run_due(climate)
    assert get(climate, lease).event(START).status is UNDONE
    clock.forward(hours=5)
    run_due(climate)
    assert get(climate, lease).event(START).outcome == "MISSED"
    with engine.connect() as conn:
        told = conn.execute(text("SELECT message, body FROM notices WHERE kind = 'lease.missed'")).one()
    assert told.body["reason"] == "it could not be started: the cloud is away"
    assert told.message.endswith(f", and {told.body['reason']}")


def test_the_end_runs_after_a_failed_start_as_well(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, start=0)
    cloud.unheard["lend"] = 1
    claimed = claim(climate)
    cloud.failures["servers_in"] = Refused("x")
    run(climate, claimed[0])
    cloud.failures["lend"] = Refused("no more")
    clock.forward(minutes=1)
    run_due(climate)
    cloud.failures.clear()
    assert get(climate, lease).status is LeaseStatus.ERROR
    assert reservation(lease) in cloud.pools(), "the lost answer had an effect"
    clock.forward(hours=2)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert len(cloud.pools()["freepool"]) == 8


def test_a_failed_end_keeps_its_hosts_and_blocks_their_next_start(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    first = make(climate, clock, hosts_wanted(8), start=0, hours=1)
    second = make(climate, clock, hosts_wanted(8), start=1, hours=1)
    run_due(climate)
    cloud.failures["take_back"] = Refused("stuck")
    clock.forward(hours=1)
    run_due(climate)
    assert (get(climate, first).status, get(climate, second).status) == (LeaseStatus.ERROR, LeaseStatus.PENDING)
    clock.forward(minutes=1)
    assert claim(climate) == []
    cloud.failures.clear()
    events.requeue(climate, ADMIN, first.event(END).id)
    run_due(climate)
    assert (get(climate, first).status, get(climate, second).status) == (LeaseStatus.TERMINATED, LeaseStatus.ACTIVE)


def test_the_next_start_waits_for_an_end_that_takes_its_time(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    first = make(climate, clock, hosts_wanted(8), start=0, hours=1)
    second = make(climate, clock, hosts_wanted(1), start=1, hours=1)
    run_due(climate)
    cloud.boot("project", "h1")
    cloud.looks_until_gone = 3
    clock.forward(hours=1)
    run_due(climate)
    assert (get(climate, first).status, get(climate, second).status) == (LeaseStatus.TERMINATING, LeaseStatus.PENDING)
    lease_actions.settle(climate, clock, hours=0.5)
    assert (get(climate, first).status, get(climate, second).status) == (LeaseStatus.TERMINATED, LeaseStatus.ACTIVE)
    order = [(verb, target) for verb, target in cloud.calls if verb in ("take_back", "lend")][1:]
    assert order == [("take_back", reservation(first)), ("lend", reservation(second))]


def test_an_adjustment_waits_for_the_earlier_holder_of_its_host_too(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    small, large = ('["==", "$vcpus", "4"]', '["==", "$vcpus", "8"]')
    stuck = make(climate, clock, hosts_wanted(4, hypervisor_properties=small), start=0, hours=1)
    clock.forward(minutes=1)
    run_due(climate)
    cloud.failures["take_back"] = Refused("stuck")
    clock.forward(hours=1)
    run_due(climate)
    grown = make(climate, clock, hosts_wanted(4, hypervisor_properties=large), start=0, hours=1)
    run_due(climate)
    spec = {"id": reservation(grown), "min": 8, "max": 8, "hypervisor_properties": ""}
    update.update(climate, MEMBER, grown.id, Changes(reservations=[spec]))
    clock.forward(seconds=1)
    run_due(climate)
    assert lease_actions.event(climate, grown, ADJUST).status is UNDONE
    cloud.failures.clear()
    events.requeue(climate, ADMIN, stuck.event(END).id)
    run_due(climate)
    assert lease_actions.event(climate, grown, ADJUST).status is DONE
    assert len(cloud.pools()[reservation(grown)]) == 8


def test_ends_come_before_starts(climate: Climate, clock: Clock) -> None:
    ending = [make(climate, clock, start=0, hours=1) for _ in range(3)]
    run_due(climate)
    starting = [make(climate, clock, start=0.5, hours=2) for _ in range(3)]
    clock.forward(hours=1)
    event_dispatch.claim_due(climate, "poller", limit=3)
    claimed = {message.event_id for message in event_dispatch.to_send(climate)}
    assert claimed == {lease.event(END).id for lease in ending}
    event_dispatch.claim_due(climate, "poller", limit=3)
    assert {message.event_id for message in event_dispatch.to_send(climate)} == {
        lease.event(START).id for lease in starting
    }


def test_projects_take_turns(climate: Climate, clock: Clock) -> None:
    many = [make(climate, clock, start=0.5) for _ in range(6)]
    order = LeaseRequest("l", clock.time + timedelta(hours=1), clock.time + timedelta(hours=2), None, [hosts_wanted()])
    one = leases.create(climate, STRANGER, order)
    clock.forward(hours=1)
    event_dispatch.claim_due(climate, "poller", limit=2)
    claimed = {message.event_id for message in event_dispatch.to_send(climate)}
    assert one.event(START).id in claimed
    assert len(claimed & {lease.event(START).id for lease in many}) == 1


def test_before_end_comes_in_time_and_only_while_there_is_time(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    spec = hosts_wanted(1, before_end="snapshot")
    order = LeaseRequest("l", clock.time, clock.time + timedelta(hours=2), clock.time + timedelta(hours=1), [spec])
    lease = leases.create(climate, MEMBER, order)
    run_due(climate)
    server = cloud.boot("project", min(cloud.pools()[reservation(lease)]))
    clock.forward(hours=1)
    run_due(climate)
    assert lease_actions.event(climate, lease, BEFORE_END).status is DONE
    assert cloud.images == [(server, "reserved_server")]


def test_nothing_is_claimed_of_a_lease_that_is_gone(climate: Climate, clock: Clock, engine: Engine) -> None:
    lease = make(climate, clock)
    leases.delete(climate, MEMBER, lease.id)
    clock.forward(hours=9)
    assert claim(climate) == []
    assert event_dispatch.next_due(climate) is None
    assert listed_events(climate, "UNDONE", 10) == []


def test_the_poller_is_informed_when_to_wake(climate: Climate, clock: Clock) -> None:
    assert event_dispatch.next_due(climate) is None
    make(climate, clock, start=2)
    make(climate, clock, start=1)
    assert event_dispatch.next_due(climate) == timedelta(hours=1)


def test_who_waits_for_a_host_is_informed_when_it_comes_back(climate: Climate, clock: Clock, database_url: str) -> None:
    first = make(climate, clock, hosts_wanted(8), start=0, hours=1)
    next_one = make(climate, clock, hosts_wanted(8), start=1, hours=1)
    run_due(climate)
    clock.forward(hours=1)
    ends = claim(climate)
    assert [message.event_id for message in ends] == [first.event(END).id]
    with psycopg.connect(bootstrap.plain_url(database_url), autocommit=True) as conn:
        conn.execute(f"LISTEN {CHANNEL}")
        run(climate, ends[0])
        assert len(list(conn.notifies(timeout=30, stop_after=1))) == 1
    assert [message.event_id for message in claim(climate)] == [next_one.event(START).id]
