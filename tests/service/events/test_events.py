"""Every event is carried out once, whatever happens to messages, workers and the cloud."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from climate.cloud import CloudError, NotYet, Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Forbidden, IllegalMove, NotFound
from climate.domain.lease import Lease
from climate.domain.status import ERROR, IN_PROGRESS, UNDONE, EventStatus, LeaseStatus
from climate.service.events import event_dispatch, events
from climate.service.host_operations import failures
from climate.service.journal import consistency_check
from climate.store.leases import event_claims as claims
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service import lease_actions
from tests.service.lease_actions import (
    END,
    START,
    claim,
    get,
    held,
    hosts_wanted,
    listed_events,
    lost,
    make,
    reservation,
    run,
    run_due,
)


class Died(BaseException):
    """The worker's process is gone."""


@pytest.fixture
def lease(climate: Climate, clock: Clock) -> Lease:
    """A lease of two hosts whose start is due."""
    made = make(climate, clock, hosts_wanted(2))
    clock.forward(hours=1)
    return made


def die(_: str) -> None:
    raise Died


def test_a_duplicate_message_does_nothing(climate: Climate, cloud: FakeCloud, lease: Lease) -> None:
    (message,) = claim(climate)
    for _ in range(3):
        run(climate, message)
    assert (
        cloud.effects.total() == cloud.effects["lend", reservation(lease), message.token] + 8
    )  # 8 hosts were enrolled
    assert lease_actions.kinds(climate, lease) == ["LeaseCreated", "EventClaimed", "EventFinished"]


def test_a_forged_or_foreign_message_does_nothing(climate: Climate, cloud: FakeCloud, lease: Lease) -> None:
    (message,) = claim(climate)
    for forged in (
        replace(message, token=message.token + 1),
        replace(message, token=1),
        replace(message, event_id=lease.id),
    ):
        run(climate, forged)
    assert lease_actions.event(climate, lease, START).status is IN_PROGRESS
    assert ("lend", reservation(lease)) not in cloud.calls
    run(climate, message)
    assert get(climate, lease).status is LeaseStatus.ACTIVE


def test_a_lost_message_is_sent_again_with_its_token_and_ever_less_often(
    climate: Climate, clock: Clock, lease: Lease
) -> None:
    (message,) = claim(climate)
    assert event_dispatch.to_send(climate) == []
    pauses = []
    for _ in range(9):
        waited = 0.0
        while not (again := event_dispatch.to_send(climate)):
            clock.forward(seconds=0.5)
            waited += 0.5
        assert again == [message]
        pauses.append(waited)
    assert pauses == [1.5, 2.5, 4.5, 8.5, 16.5, 30.5, 30.5, 30.5, 30.5]
    run(climate, message)
    assert get(climate, lease).status is LeaseStatus.ACTIVE


def test_a_poller_that_dies_before_sending_costs_no_attempt(climate: Climate, lease: Lease) -> None:
    event_dispatch.claim_due(climate, "poller")
    (message,) = event_dispatch.to_send(climate)
    run(climate, message)
    assert lease_actions.event(climate, lease, START).attempts == 1


@pytest.mark.parametrize("verb", ["lend", "servers_in", "close", "delete_server", "take_back"])
def test_a_worker_that_dies_at_any_verb_is_replaced(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease, verb: str
) -> None:
    watch = cloud.watch
    assert watch
    deaths = iter([True])

    def look(name: str) -> None:
        watch(name)
        if name == verb and next(deaths, False):
            raise Died

    cloud.watch = look
    _live_through(climate, clock, lease, cloud)


def test_a_worker_that_dies_before_the_record_is_replaced(
    climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine, lease: Lease
) -> None:
    deaths = iter([True, False, False, True])

    def look(*executed: Any) -> None:
        if executed[2].startswith("DELETE FROM claims") and next(deaths, False):
            raise Died

    event.listen(engine, "before_cursor_execute", look)
    _live_through(climate, clock, lease, cloud)


def _live_through(climate: Climate, clock: Clock, lease: Lease, cloud: FakeCloud) -> None:
    """Start and end the lease with a server on it; every effect happens once."""
    for target in (LeaseStatus.ACTIVE, LeaseStatus.TERMINATED):
        for message in claim(climate):
            try:
                run(climate, message)
            except Died:
                assert lease_actions.get(climate, lease).status in (LeaseStatus.STARTING, LeaseStatus.TERMINATING)
                lost(climate, clock)
        run_due(climate)
        assert get(climate, lease).status is target
        if target is LeaseStatus.ACTIVE:
            server = cloud.boot("project", sorted(cloud.pools()[reservation(lease)])[0])
            clock.time = lease.period.end
    wanted = {
        ("lend", reservation(lease)),
        ("close", reservation(lease)),
        ("delete_server", server),
        ("take_back", reservation(lease)),
    }
    seen = [
        (verb, target) for (verb, target, _), times in cloud.effects.items() for _ in range(times) if verb != "enrol"
    ]
    assert sorted(seen) == sorted(wanted)
    assert len(cloud.pools()["freepool"]) == 8
    assert consistency_check.differences(climate) == []


def test_steps_that_are_done_are_passed_over(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, hosts_wanted(1), hosts_wanted(1))
    clock.forward(hours=1)
    first, second = (str(r.id) for r in lease.reservations)
    cloud.unheard["lend"] = 1
    run_due(climate)
    pools = [target for verb, target in cloud.calls if verb == "lend"]
    assert pools == [first, second], "one reservation's trouble does not keep the other from its turn"
    clock.forward(minutes=5)
    run_due(climate)
    pools = [target for verb, target in cloud.calls if verb == "lend"]
    assert pools == [first, second, first]
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert lease_actions.event(climate, lease, START).attempts == 2


def test_a_host_that_was_left_out_at_first_is_handed_over_at_the_next_try(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lease = make(climate, clock, hosts_wanted(2), hosts_wanted(2), start=0)
    first, second = lease.reservations
    failures.fail(climate, ADMIN, str(first.hosts[0]), "smoke")
    for number in second.hosts:
        failures.fail(climate, ADMIN, str(number), "smoke")
    run_due(climate)
    assert cloud.pools()[str(first.id)] == {f"h{first.hosts[1]}"}
    for number in held(lease) - {first.hosts[1]}:
        failures.heal(climate, ADMIN, str(number))
    clock.forward(minutes=5)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    for r in lease.reservations:
        assert cloud.pools()[str(r.id)] == {f"h{number}" for number in r.hosts}
    assert cloud.doubled() == []


def test_trouble_is_tried_again_later_and_later_then_given_up(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    cloud.broken = True
    for attempt in range(1, 10):
        run_due(climate)
        start = lease_actions.event(climate, lease, START)
        assert (start.status, start.attempts, start.reason) == (UNDONE, attempt, "the cloud cannot be reached")
        assert timedelta(seconds=0.5 * 2**attempt) == start.run_at - clock.time or attempt > 8
        clock.time = start.run_at
    run_due(climate)
    start = lease_actions.event(climate, lease, START)
    assert (start.status, start.outcome) == (ERROR, "EXHAUSTED")
    assert get(climate, lease).status is LeaseStatus.ERROR


def test_what_the_cloud_refuses_is_not_tried_again(climate: Climate, cloud: FakeCloud, lease: Lease) -> None:
    cloud.failures["lend"] = Refused("no such project")
    run_due(climate)
    start = lease_actions.event(climate, lease, START)
    assert (start.status, start.outcome, start.reason, start.attempts) == (ERROR, "FAILED", "no such project", 1)


@pytest.mark.parametrize(("trouble", "status"), [(NotYet(), UNDONE), (CloudError(), UNDONE), (Refused(), ERROR)])
def test_trouble_that_says_nothing_is_trouble_all_the_same(
    climate: Climate, cloud: FakeCloud, lease: Lease, trouble: Exception, status: EventStatus
) -> None:
    cloud.failures["lend"] = trouble
    run_due(climate)
    start = lease_actions.event(climate, lease, START)
    assert (start.status, start.reason) == (status, type(trouble).__name__)


def test_an_unheard_answer_is_no_second_effect(climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease) -> None:
    cloud.unheard["lend"] = 3
    for _ in range(4):
        run_due(climate)
        clock.forward(minutes=5)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert sum(times for (verb, *_), times in cloud.effects.items() if verb == "lend") == 1


def test_waiting_for_the_cloud_spends_no_attempt_but_has_a_limit(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    run_due(climate)
    cloud.boot("project", sorted(cloud.pools()[reservation(lease)])[0])
    cloud.looks_until_gone = 10_000
    clock.time = lease.period.end
    run_due(climate)
    end = lease_actions.event(climate, lease, END)
    assert (end.status, end.attempts, end.reason) == (UNDONE, 0, "servers are still being deleted: 1")
    while end.attempts == 0:
        clock.time = end.run_at
        run_due(climate)
        end = lease_actions.event(climate, lease, END)
    assert end.reason == "waited too long: servers are still being deleted: 1"
    assert 600 < (clock.time - lease.period.end).total_seconds() < 620
    cloud.looks_until_gone = 0
    assert len(cloud.pools()[reservation(lease)]) == 2


def test_a_rescue_is_bounded_by_the_hosts_of_its_leases(climate: Climate, clock: Clock) -> None:
    for _ in range(3):
        make(climate, clock, hosts_wanted(1))
    clock.forward(hours=1)
    with climate.engine.begin() as conn:
        for message in claim(climate):
            claims.start(conn, message, "worker", clock.time, claims.Limits(timedelta(0), timedelta(0)))
    clock.forward(seconds=1)
    assert [event_dispatch.rescue(climate, "poller", holds=2) for _ in range(3)] == [2, 1, 0]


def test_an_unforeseen_error_leaves_the_event_to_the_rescue(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    cloud.failures["lend"] = ZeroDivisionError("a bug")
    (message,) = claim(climate)
    with pytest.raises(ZeroDivisionError):
        run(climate, message)
    assert lease_actions.event(climate, lease, START).status is IN_PROGRESS
    lost(climate, clock)
    assert lease_actions.event(climate, lease, START).reason == "worker lost"


def test_a_worker_is_not_given_up_while_it_is_heard_of(climate: Climate, clock: Clock, lease: Lease) -> None:
    (message,) = claim(climate)
    clock.forward(hours=1)
    assert event_dispatch.rescue(climate, "poller") == 0, "never started: it is sent again instead"
    assert event_dispatch.to_send(climate) == [message]


def test_tokens_rise_and_those_of_a_later_epoch_are_above_all(climate: Climate, clock: Clock, engine: Engine) -> None:
    tokens = []
    for epoch in (1, 1, 2):
        with engine.begin() as conn:
            conn.execute(text("UPDATE epochs SET epoch = :epoch"), {"epoch": epoch})
            if epoch == 2:
                conn.execute(text("ALTER SEQUENCE fence_seq RESTART"))
        make(climate, clock, start=0)
        tokens += [message.token for message in claim(climate)]
    assert tokens == sorted(set(tokens))
    assert [token >> 40 for token in tokens] == [1, 1, 2]


def test_only_operators_requeue_and_see_all_events(climate: Climate, cloud: FakeCloud, lease: Lease) -> None:
    cloud.failures["lend"] = Refused("no")
    run_due(climate)
    start = lease_actions.event(climate, lease, START)
    for caller in (MEMBER, STRANGER):
        with pytest.raises(Forbidden):
            events.requeue(climate, caller, start.id)
        with pytest.raises(Forbidden):
            events.rows(climate, caller, None, 10)
    assert [known.id for _, known in listed_events(climate, "ERROR", 10)] == [start.id]
    cloud.failures.clear()
    events.requeue(climate, ADMIN, start.id)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    with pytest.raises(IllegalMove):
        events.requeue(climate, ADMIN, start.id)
    with pytest.raises(NotFound):
        events.requeue(climate, ADMIN, lease.id)
