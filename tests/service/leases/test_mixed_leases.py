"""Leases of several resource types: each reservation is worked on in the queue of its own type."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from climate.cloud import CloudError, NotYet, Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Busy, Conflict, NotEnoughStorage
from climate.domain.events.event_transitions import AdditionalEvent
from climate.domain.lease import Lease
from climate.domain.status import DONE, ERROR, IN_PROGRESS, UNDONE, HoldState, LeaseStatus, ReservationStatus
from climate.service.events import event_dispatch, events
from climate.service.journal import consistency_check
from climate.service.leases import host_replacement, lease_servers, leases
from climate.service.leases.leases import LeaseRequest
from climate.store.leases import event_claims as claims
from climate.store.leases.event_claims import Message
from tests.conftest import ADMIN, MEMBER, Clock
from tests.scenarios.test_statement_counts import cost
from tests.service import lease_actions
from tests.service.fake_power import machines
from tests.service.floating_ip_factory import addresses_wanted, registered
from tests.service.lease_actions import CLOSE, END, PREPARE, START, claim, get, hosts_wanted, lost, make, run, run_due
from tests.service.storage_factory import pool, storage_wanted

HOSTS, STORAGE, ADDRESSES = "events.physical:host", "events.storage:pool", "events.virtual:floatingip"


class Died(BaseException):
    """The worker's process is gone."""


@pytest.fixture
def lease(climate: Climate, clock: Clock) -> Lease:
    """A lease of two hosts and of 10 GB of storage, whose start is due."""
    pool(climate, 10)
    made = make(climate, clock, hosts_wanted(2), storage_wanted(10))
    clock.time = made.period.start
    return made


@pytest.fixture(autouse=True)
def sound(climate: Climate, cloud: FakeCloud) -> Iterator[None]:
    """After each test the rows are what the journal says, and no effect was doubled."""
    yield
    assert consistency_check.differences(climate) == []
    assert cloud.doubled() == []


def work(climate: Climate, *queues: str) -> list[Message]:
    """Let the workers of these queues do all that is rung for; the messages of others are lost."""
    left: list[Message] = []
    for _ in range(20):
        found = claim(climate)
        left += [message for message in found if message.queue not in queues]
        mine = [message for message in found if message.queue in queues]
        if not mine:
            break
        for message in mine:
            run(climate, message)
    return left


def statuses(lease: Lease) -> list[ReservationStatus]:
    return [lease.status_of(r) for r in lease.reservations]


def test_each_type_is_rung_for_in_its_own_queue_under_its_own_token(climate: Climate, lease: Lease) -> None:
    messages = claim(climate)
    assert [message.queue for message in messages] == [HOSTS, STORAGE]
    assert len({message.token for message in messages}) == 2
    assert {message.event_id for message in messages} == {lease.event(START).id}
    for message in messages:
        assert get(climate, lease).status is LeaseStatus.STARTING
        run(climate, message)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    settled = ["EventShareSettled", "EventShareSettled", "EventFinished"]
    assert lease_actions.kinds(climate, lease) == ["LeaseCreated", "EventClaimed", *settled]


def test_a_lease_of_one_type_is_run_as_a_whole(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(1), hosts_wanted(1), start=0)
    assert [message.queue for message in claim(climate)] == [HOSTS]
    assert get(climate, lease).event(START).shares == ()


@pytest.mark.parametrize("away", [0, 1])
def test_workers_of_one_type_that_are_away_delay_only_their_own_reservations(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease, away: int
) -> None:
    hosts = lease.reservations[0]
    there, missing = ([STORAGE], [HOSTS]) if away == 0 else ([HOSTS], [STORAGE])
    work(climate, *there)
    known = get(climate, lease)
    assert known.status is LeaseStatus.STARTING
    assert statuses(known)[1 - away] is ReservationStatus.ACTIVE
    assert statuses(known)[away] is ReservationStatus.PENDING
    assert (str(hosts.id) in cloud.pools()) is (away == 1)
    assert bool(cloud.made_volumes) is (away == 0)
    with pytest.raises(Busy):
        leases.delete(climate, MEMBER, lease.id)
    clock.forward(minutes=1)
    work(climate, *missing)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    clock.time = lease.period.end
    work(climate, *there)
    known = get(climate, lease)
    assert known.status is LeaseStatus.TERMINATING
    assert statuses(known)[1 - away] is ReservationStatus.DELETED
    assert known.hold_state_of(known.reservations[1 - away]) is HoldState.RELEASED
    assert known.hold_state_of(known.reservations[away]) is HoldState.ACTIVE
    clock.forward(minutes=1)
    work(climate, *missing)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert (cloud.made_volumes, set(cloud.pools())) == ({}, {"freepool"})


def test_what_one_type_has_given_back_is_free_for_the_next_lease(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    pool(climate, 10)
    first = make(climate, clock, hosts_wanted(8), storage_wanted(10), start=0, hours=1)
    run_due(climate)
    second = make(climate, clock, hosts_wanted(8), start=1, hours=1)
    clock.forward(hours=1)
    work(climate, HOSTS)
    assert get(climate, first).status is LeaseStatus.TERMINATING
    assert get(climate, second).status is LeaseStatus.ACTIVE, "it waits for no storage"
    assert len(cloud.pools()[str(second.reservations[0].id)]) == 8
    clock.forward(minutes=1)
    run_due(climate)
    assert get(climate, first).status is LeaseStatus.TERMINATED


def test_trouble_of_one_type_is_tried_again_beside_the_others_work(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    cloud.failures["ensure_volume"] = CloudError("the disk is away")
    first, second = claim(climate)
    run(climate, second)
    assert lease_actions.event(climate, lease, START).reason == "the disk is away"
    assert claim(climate) == [], "not before its time"
    clock.forward(seconds=1)
    (again,) = claim(climate)
    assert again.queue == STORAGE
    assert again.token > second.token
    run(climate, second)
    cloud.failures.clear()
    run(climate, again)
    assert bool(cloud.made_volumes)
    assert lease_actions.event(climate, lease, START).status is IN_PROGRESS
    run(climate, first)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert [share.attempts for share in lease_actions.event(climate, lease, START).shares] == [0, 1]


def test_the_tries_of_one_type_are_not_those_of_another(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    cloud.failures["ensure_volume"] = CloudError("the disk is away")
    first, *_ = claim(climate)
    while not any(share.outcome for share in lease_actions.event(climate, lease, START).shares):
        work(climate, STORAGE)
        clock.forward(minutes=5)
    (hosts, storage) = lease_actions.event(climate, lease, START).shares
    assert (storage.outcome, storage.reason, storage.attempts) == ("EXHAUSTED", "the disk is away", 9)
    assert (hosts.outcome, hosts.attempts) == (None, 0)
    cloud.failures["lend"] = CloudError("not now")
    clock.time = lease.period.start + timedelta(minutes=100)
    run(climate, first)
    start = lease_actions.event(climate, lease, START)
    assert (start.status, start.reason) == (UNDONE, "not now")
    cloud.failures.clear()
    clock.forward(minutes=1)
    work(climate, HOSTS)
    start = lease_actions.event(climate, lease, START)
    assert (start.status, start.outcome, start.reason) == (ERROR, "EXHAUSTED", "storage:pool: the disk is away")
    assert statuses(get(climate, lease)) == [ReservationStatus.ACTIVE, ReservationStatus.ERROR]


def test_what_was_handed_over_is_taken_back_though_another_type_never_was(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    cloud.failures["ensure_volume"] = Refused("no such disk")
    run_due(climate)
    known = get(climate, lease)
    assert known.status is LeaseStatus.ERROR
    server = cloud.boot("project", sorted(cloud.pools()[str(lease.reservations[0].id)])[0])
    clock.time = lease.period.end
    run_due(climate)
    clock.forward(minutes=1)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert cloud.server(server) is None
    assert len(cloud.pools()["freepool"]) == 8


def test_storage_that_was_handed_over_is_kept_though_the_hosts_never_were(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    pool(climate, 10)
    lease = make(climate, clock, hosts_wanted(1), storage_wanted(10, on_end="keep"), start=0)
    cloud.failures["lend"] = Refused("no such project")
    run_due(climate)
    cloud.failures.clear()
    clock.time = lease.period.end
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert [one.kept for one in cloud.made_volumes.values()] == [True]
    with pytest.raises(NotEnoughStorage):
        make(climate, clock, storage_wanted(1))


def test_a_requeued_start_is_run_for_what_had_failed(climate: Climate, cloud: FakeCloud, lease: Lease) -> None:
    cloud.failures["ensure_volume"] = Refused("no such disk")
    run_due(climate)
    cloud.failures.clear()
    events.requeue(climate, ADMIN, lease.event(START).id)
    assert [message.queue for message in claim(climate)] == [STORAGE]


def test_an_event_whose_last_share_falls_short_is_put_back_as_a_whole(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    cloud.failures["ensure_volume"] = NotYet("the disk spins up")
    for message in claim(climate):
        run(climate, message)
    start = lease_actions.event(climate, lease, START)
    assert (start.status, start.reason, start.attempts) == (UNDONE, "the disk spins up", 0)
    cloud.failures.clear()
    clock.forward(seconds=10)
    assert [message.queue for message in claim(climate)] == [STORAGE], "the hosts are handed over already"


def test_a_lease_can_be_deleted_between_the_tries(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    cloud.failures["ensure_volume"] = CloudError("away")
    run_due(climate)
    leases.delete(climate, MEMBER, lease.id)
    cloud.failures.clear()
    run_due(climate)
    assert (cloud.made_volumes, len(cloud.pools()["freepool"])) == ({}, 8)


def test_the_end_comes_though_nobody_has_begun_a_share_of_the_start(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    hosts, late = claim(climate)
    run(climate, hosts)
    assert str(lease.reservations[0].id) in cloud.pools()
    clock.time = lease.period.end
    assert event_dispatch.rescue(climate, "poller") == 1
    start = lease_actions.event(climate, lease, START)
    assert (start.status, start.outcome) == (ERROR, "MISSED")
    work(climate, HOSTS)
    assert set(cloud.pools()) == {"freepool"}
    run(climate, late)
    assert cloud.made_volumes == {}
    run_due(climate)
    clock.forward(minutes=1)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED


def test_an_additional_event_that_nobody_has_begun_does_not_hold_up_the_end(climate: Climate, clock: Clock) -> None:
    pool(climate, 10)
    begin = clock.time
    named = (AdditionalEvent("remind", begin + timedelta(minutes=30)),)
    wanted = [hosts_wanted(1), storage_wanted(10)]
    order = LeaseRequest("l", begin, begin + timedelta(hours=1), None, wanted, named)
    lease = leases.create(climate, MEMBER, order)
    run_due(climate)
    clock.forward(minutes=30)
    assert len(claim(climate)) == 2
    clock.time = lease.period.end
    assert event_dispatch.rescue(climate, "poller") == 2
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED


def test_the_start_comes_though_nobody_has_begun_a_share_of_the_preparation(
    climate: Climate, clock: Clock, tmp_path: Path
) -> None:
    room = machines(climate, clock, tmp_path)
    room.wire(*range(1, 9))
    pool(room.climate, 10)
    lease = make(room.climate, clock, hosts_wanted(1), storage_wanted(10))
    clock.time = lease.event(PREPARE).due_at
    hosts, _ = claim(room.climate)
    assert hosts.queue == HOSTS
    run(room.climate, hosts)
    assert event_dispatch.rescue(room.climate, "poller") == 0, "there is time still"
    clock.time = lease.period.start
    assert event_dispatch.rescue(room.climate, "poller") == 1
    assert lease_actions.event(room.climate, lease, PREPARE).status in (DONE, ERROR)
    work(room.climate, HOSTS)
    assert statuses(get(room.climate, lease))[0] is ReservationStatus.ACTIVE


def test_closings_that_nobody_has_begun_keep_no_other_share_from_being_given_up(climate: Climate, clock: Clock) -> None:
    pool(climate, 100)
    wanted = [hosts_wanted(1, grace_period=7200), storage_wanted(5)]
    closing = [make(climate, clock, *wanted, start=0, hours=1) for _ in range(2)]
    run_due(climate)
    clock.forward(hours=1)
    claim(climate)
    assert {lease_actions.event(climate, one, CLOSE).status for one in closing} == {IN_PROGRESS}
    late = make(climate, clock, hosts_wanted(1), storage_wanted(5), start=0, hours=0.5)
    claim(climate)
    clock.time = late.period.end
    with climate.engine.begin() as conn:
        found = claims.orphaned(conn, clock.time, limit=1)
    assert [one.lease_id for one in found] == [late.id]
    clock.time = closing[0].event(END).due_at
    with climate.engine.begin() as conn:
        after = {one.lease_id for one in claims.orphaned(conn, clock.time)}
    assert after == {late.id, *(one.id for one in closing)}, "a closing makes sense until the hosts are given back"


def test_hosts_are_booted_on_while_the_storage_of_their_lease_is_not_ready(climate: Climate, lease: Lease) -> None:
    hosts, storage = lease.reservations
    work(climate, HOSTS)
    assert get(climate, lease).status is LeaseStatus.STARTING
    assert lease_servers.admit(climate, MEMBER, str(hosts.id)).id == lease.id
    with pytest.raises(Conflict, match="is STARTING"):
        lease_servers.admit(climate, MEMBER, str(storage.id))


@pytest.mark.parametrize("verb", ["lend", "ensure_volume", "close", "take_back", "drop_volumes"])
def test_a_worker_of_one_type_that_dies_at_any_verb_is_replaced(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease, verb: str
) -> None:
    watch, deaths = cloud.watch, iter([True])
    assert watch

    def look(name: str) -> None:
        watch(name)
        if name == verb and next(deaths, False):
            raise Died

    cloud.watch = look
    _live_through(climate, clock, lease, cloud)


@pytest.mark.parametrize("turn", range(4))
def test_a_worker_of_one_type_that_dies_before_the_record_is_replaced(
    climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine, lease: Lease, turn: int
) -> None:
    deaths = iter([place == turn for place in range(5)])

    def look(*executed: object) -> None:
        if str(executed[2]).startswith("DELETE FROM claims") and next(deaths, False):
            raise Died

    event.listen(engine, "before_cursor_execute", look)
    _live_through(climate, clock, lease, cloud)


def _live_through(climate: Climate, clock: Clock, lease: Lease, cloud: FakeCloud) -> None:
    """Start and end the lease; every effect happens once."""
    for target in (LeaseStatus.ACTIVE, LeaseStatus.TERMINATED):
        for message in claim(climate):
            try:
                run(climate, message)
            except Died:
                assert get(climate, lease).status in (LeaseStatus.STARTING, LeaseStatus.TERMINATING)
        clock.forward(seconds=climate.settings.claim_seconds + 1)
        event_dispatch.rescue(climate, "poller")
        clock.forward(seconds=5)
        run_due(climate)
        assert get(climate, lease).status is target
        clock.time = lease.period.end
    seen = [(verb, target) for (verb, target, _), times in cloud.effects.items() for _ in range(times)]
    assert len(seen) == len(set(seen))
    assert (cloud.made_volumes, len(cloud.pools()["freepool"])) == ({}, 8)


def test_a_late_worker_of_one_type_spoils_nothing(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    watch, pauses = cloud.watch, iter([True])
    assert watch

    def look(name: str) -> None:
        watch(name)
        if name == "ensure_volume" and next(pauses, False):
            lost(climate, clock)
            run_due(climate)
            assert get(climate, lease).status is LeaseStatus.ACTIVE

    cloud.watch = look
    hosts, storage = claim(climate)
    run(climate, hosts)
    run(climate, storage)
    assert lease_actions.kinds(climate, lease).count("EventFinished") == 1
    assert len(cloud.made_volumes) == 1


def test_hosts_that_were_exchanged_between_two_tries_are_handed_over_at_the_next(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    cloud.failures["ensure_volume"] = CloudError("away")
    run_due(climate)
    old = str(lease.reservations[0].hosts[0])
    new = host_replacement.reallocate(climate, ADMIN, host_replacement.ReplacementRequest(old, lease.id)).to
    cloud.failures.clear()
    clock.forward(minutes=1)
    run_due(climate)
    known = get(climate, lease)
    assert known.status is LeaseStatus.ACTIVE
    assert new in known.reservations[0].hosts
    assert cloud.pools()[str(lease.reservations[0].id)] == {f"h{number}" for number in known.reservations[0].hosts}


def test_three_types_end_in_any_order(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    pool(climate, 10)
    registered(climate, 1)
    lease = make(climate, clock, storage_wanted(10), addresses_wanted(1), hosts_wanted(1), start=0, hours=1)
    for target in (LeaseStatus.ACTIVE, LeaseStatus.TERMINATED):
        found = {message.queue: message for message in claim(climate)}
        assert set(found) == {HOSTS, STORAGE, ADDRESSES}
        for queue in (ADDRESSES, HOSTS, STORAGE):
            assert get(climate, lease).status is not target
            run(climate, found[queue])
        assert get(climate, lease).status is target
        clock.time = lease.period.end
    assert get(climate, lease).event(END).status is DONE
    assert (cloud.addresses, cloud.made_volumes) == ({}, {})


def test_the_claim_of_many_mixed_leases_costs_what_one_does(climate: Climate, clock: Clock, engine: Engine) -> None:
    pool(climate, 100)
    make(climate, clock, hosts_wanted(1), storage_wanted(1), start=0)
    one = cost(engine, lambda: claim(climate))
    made = [make(climate, clock, hosts_wanted(1), storage_wanted(1), start=0) for _ in range(5)]
    assert cost(engine, lambda: claim(climate)) == one
    assert {get(climate, lease).status for lease in made} == {LeaseStatus.STARTING}
