"""Several starts that one worker carries out together, over the bundled cloud."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event as Pause
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest
from sqlalchemy import event, text

from climate.cloud import Cloud, Loan
from climate.cloud.bundled import BundledCloud
from climate.domain.errors import UnreadableLease
from climate.domain.status import EventKind
from climate.plugin import Plugins, ReservationContext
from climate.service.events import event_batches, event_dispatch
from climate.service.journal import consistency_check
from climate.service.leases import leases
from climate.store.engine import database_time
from climate.store.leases.claim_batches import MOST_EVENTS, MOST_HOSTS, Batched, Candidate, numbered
from climate.store.leases.event_claims import Message
from plugins.physical_host import PhysicalHost
from tests.conftest import ADMIN
from tests.scenarios.test_statement_counts import counted
from tests.service.lease_actions import run
from tests.service.leases.batches import Here, eight_hosts, host_of, run_alone, watched
from tests.service.leases.test_broken_leases import OF_A_NEWER_RELEASE
from workers import celery_app
from workers.event_messages import EventMessages
from workers.tasks import WorkerContext


@pytest.fixture
def here(cloud_database: str, tmp_path: Path) -> Iterator[Here]:
    with eight_hosts(cloud_database, tmp_path) as found:
        yield found


def test_statements_and_commits_do_not_depend_on_how_many_are_started(here: Here) -> None:
    engine, found = here.climate.engine, []
    commits: list[object] = []
    note = commits.append
    climate = replace(here.climate, now=database_time)
    for count in (2, 5):
        made = here.due(count)
        messages = here.rung()
        assert len({message.number for message in messages}) == 1
        event.listen(engine, "commit", note)
        with counted(engine) as seen:
            event_batches.run(climate, messages, "worker")
        event.remove(engine, "commit", note)
        assert here.status(made) == ["ACTIVE"] * count
        found.append((len(seen), len(commits)))
        commits.clear()
    assert found == [(14, 3), (14, 3)], seen
    assert consistency_check.differences(here.climate) == []


def test_a_host_that_is_missing_from_the_pool_puts_its_own_start_back_alone(here: Here) -> None:
    made = here.due(4)
    here.write("UPDATE compute_nodes SET pool = NULL WHERE name = :name", name=host_of(here, made[1]))
    event_batches.run(here.climate, here.rung(), "worker")
    assert here.status(made) == ["ACTIVE", "STARTING", "ACTIVE", "ACTIVE"]
    start = leases.get(here.climate, ADMIN, made[1].id).event(EventKind.START)
    assert (start.status, start.attempts) == ("UNDONE", 0)
    assert "is not in the reservation pool" in str(start.reason)
    assert here.claims() == []
    here.write("UPDATE compute_nodes SET pool = 'freepool' WHERE pool IS NULL")
    here.ahead += timedelta(seconds=30)
    run_alone(here)
    assert here.status(made) == ["ACTIVE"] * 4
    assert consistency_check.differences(here.climate) == []


def test_a_host_that_somebody_else_holds_delays_its_own_start_only(here: Here) -> None:
    made = here.due(3)
    with here.climate.engine.begin() as conn:
        locked = text("SELECT FROM compute_nodes WHERE name = :name FOR NO KEY UPDATE")
        conn.execute(locked, {"name": host_of(here, made[2])})
        event_batches.run(here.climate, here.rung(), "worker")
        assert here.status(made) == ["ACTIVE", "ACTIVE", "STARTING"]
        assert here.claims() == [(False, False, 1)], "it is to be rung for at once, by a message of its own"
    assert len(run_alone(here)) == 1
    assert here.status(made) == ["ACTIVE"] * 3
    assert consistency_check.differences(here.climate) == []


def test_a_plugin_that_overrides_the_start_alone_is_asked_for_each_start(here: Here) -> None:
    started: list[str] = []

    class Own(PhysicalHost):
        def on_start(self, cloud: Cloud, lent: ReservationContext) -> None:
            started.append(str(lent.lease_id))
            super().on_start(cloud, lent)

    here.climate = replace(here.climate, plugins=Plugins({PhysicalHost.resource_type: Own()}))
    made = here.due(2)
    kept = {Batched("events.physical:host", kind) for kind in (EventKind.BEFORE_END, EventKind.END)}
    assert event_batches.batched(here.climate) == kept
    messages = here.rung()
    event_batches.run(here.climate, messages, "worker")
    assert here.claims() == [(False, False, 1)] * 2, "a message of an earlier release is taken apart"
    run_alone(here)
    assert sorted(started) == sorted(str(lease.id) for lease in made)


def test_a_pool_that_another_transaction_holds_delays_its_own_start_only(here: Here) -> None:
    """A transaction that holds a pool may wait for its nodes next: nobody who holds the nodes waits for the pool."""
    made = here.due(3)
    with here.climate.engine.begin() as conn:
        locked = text("SELECT name FROM compute_aggregates WHERE name = :name FOR NO KEY UPDATE")
        assert conn.scalar(locked, {"name": str(made[2].reservations[0].id)})
        event_batches.run(here.climate, here.rung(), "worker")
        assert here.status(made) == ["ACTIVE", "ACTIVE", "STARTING"]
        assert here.claims() == [(False, False, 1)], "it is to be rung for at once, by a message of its own"
    assert len(run_alone(here)) == 1
    assert here.status(made) == ["ACTIVE"] * 3
    assert consistency_check.differences(here.climate) == []


def test_an_unforeseen_error_has_all_of_them_run_one_by_one(here: Here) -> None:
    def fail(loans: Sequence[Loan]) -> None:
        raise ZeroDivisionError

    made = here.due(3)
    event_batches.run(watched(here, fail), here.rung(), "worker")
    assert here.claims() == [(False, False, 1)] * 3
    assert len(run_alone(here)) == 3
    assert here.status(made) == ["ACTIVE"] * 3
    assert [here.facts(lease).count("EventPutBack") for lease in made] == [0, 0, 0]


def test_a_lease_whose_rows_cannot_be_read_keeps_no_other_from_its_start(here: Here) -> None:
    made = here.due(3)
    messages = here.rung()
    here.write(OF_A_NEWER_RELEASE, lease_id=made[0].id)
    event_batches.run(here.climate, messages, "worker")
    for message in here.rung():
        with suppress(UnreadableLease):
            run(here.climate, message)
    assert here.status(made[1:]) == ["ACTIVE"] * 2


def test_a_result_that_cannot_be_recorded_keeps_no_other_from_being_recorded(here: Here) -> None:
    made = here.due(3)
    number = made[1].reservations[0].hosts[0]

    def spoil(loans: Sequence[Loan]) -> None:
        here.write(
            "ALTER TABLE hosts ADD CONSTRAINT spoilt CHECK (id <> :id OR pool <> 'lent') NOT VALID".replace(
                ":id", str(number)
            )
        )

    event_batches.run(watched(here, spoil), here.rung(), "worker")
    assert here.status(made) == ["ACTIVE", "STARTING", "ACTIVE"]
    here.write("ALTER TABLE hosts DROP CONSTRAINT spoilt")
    here.ahead += timedelta(seconds=20)
    assert event_dispatch.rescue(here.climate, "poller") == 1
    here.ahead += timedelta(seconds=20)
    assert len(run_alone(here)) == 1
    assert here.status(made) == ["ACTIVE"] * 3
    assert consistency_check.differences(here.climate) == []


def test_a_message_that_comes_twice_while_its_work_is_done_is_dropped(here: Here) -> None:
    made = here.due(3)
    messages = here.rung()
    asked: list[int] = []

    def again(loans: Sequence[Loan]) -> None:
        asked.append(len(loans))
        event_batches.run(here.climate, messages, "the other worker")
        run(here.climate, messages[0], "a third worker")

    event_batches.run(watched(here, again), messages, "worker")
    assert asked == [3]
    assert here.status(made) == ["ACTIVE"] * 3
    assert [here.facts(lease).count("EventFinished") for lease in made] == [1, 1, 1]


def test_a_worker_that_is_killed_in_the_middle_loses_nothing_and_doubles_nothing(here: Here) -> None:
    """Before the cloud was asked, and after it."""

    def die(loans: Sequence[Loan]) -> None:
        raise KeyboardInterrupt

    def lent(loans: Sequence[Loan]) -> None:
        BundledCloud(cloud.compute).lend_together(loans)
        raise KeyboardInterrupt

    cloud = here.climate.cloud
    assert isinstance(cloud, BundledCloud)
    made = here.due(3)
    with pytest.raises(KeyboardInterrupt):
        event_batches.run(watched(here, die), here.rung(), "worker")
    for look in (die, lent):
        assert event_dispatch.rescue(here.climate, "poller") == 0, "it may live still"
        here.ahead += timedelta(seconds=40)
        assert event_dispatch.rescue(here.climate, "poller") == 3
        here.ahead += timedelta(seconds=40)
        if look is lent:
            break
        messages = here.rung()
        with pytest.raises(KeyboardInterrupt):
            event_batches.run(watched(here, lent), messages, "worker")
    assert len(run_alone(here)) == 3, "what was lost once is rung for alone"
    assert here.status(made) == ["ACTIVE"] * 3
    assert [here.facts(lease).count("EventFinished") for lease in made] == [1, 1, 1]
    assert consistency_check.differences(here.climate) == []


def test_a_result_is_refused_for_what_was_taken_away_and_recorded_for_the_others(here: Here) -> None:
    made = here.due(3)
    messages = here.rung()

    def take_away(loans: Sequence[Loan]) -> None:
        here.write("UPDATE claims SET live_until = now() - interval '1 hour' WHERE token = :it", it=messages[0].token)
        assert event_dispatch.rescue(here.climate, "poller") == 1
        here.ahead += timedelta(seconds=5)
        other = here.rung()
        assert [one.event_id for one in other] == [messages[0].event_id]

    event_batches.run(watched(here, take_away), messages, "worker")
    of_event = {lease.event(EventKind.START).id: lease for lease in made}
    assert here.facts(of_event[messages[0].event_id]).count("EventFinished") == 0
    assert here.status([of_event[message.event_id] for message in messages]) == ["STARTING", "ACTIVE", "ACTIVE"]


def test_a_host_that_has_to_be_switched_on_is_not_waited_for(here: Here) -> None:
    made = here.due(2)
    here.write(
        "INSERT INTO host_power (host, driver, settings, secrets, wanted, wanted_at, created_at) "
        "VALUES (:id, 'none', '{}', '{}', 'off', now(), now())",
        id=made[0].reservations[0].hosts[0],
    )
    event_batches.run(here.climate, here.rung(), "worker")
    assert here.status(made) == ["STARTING", "ACTIVE"]
    assert here.claims() == [(False, False, 1)]


def test_a_start_that_is_too_late_is_passed_over_among_others(here: Here) -> None:
    made = here.due(2)
    messages = here.rung()
    leases_over = "UPDATE leases SET end_date = start_date + interval '1 microsecond' WHERE id = :id"
    here.write(leases_over, id=made[0].id)
    event_batches.run(here.climate, messages, "worker")
    assert [
        lease.event(EventKind.START).outcome for lease in (leases.get(here.climate, ADMIN, m.id) for m in made)
    ] == [
        "MISSED",
        "OK",
    ]


def test_what_is_claimed_meanwhile_is_kept_alive_together(here: Here) -> None:
    made = here.due(3)
    quick = replace(here.climate, settings=replace(here.climate.settings, claim_seconds=1.5))
    seen: list[set[datetime]] = []

    def wait_for_a_beat(loans: Sequence[Loan]) -> None:
        def lives() -> set[datetime]:
            with here.climate.engine.connect() as conn:
                return set(conn.scalars(text("SELECT live_until FROM claims")))

        before = lives()
        while not (after := lives()).isdisjoint(before):
            Pause().wait(0.02)
        seen.append(after)

    cloud = watched(here, wait_for_a_beat).cloud
    event_batches.run(replace(quick, cloud=cloud), here.rung(), "worker")
    assert len(seen[0]) == 1
    assert here.status(made) == ["ACTIVE"] * 3


def _one(
    token: int, *, queue: str = "a", is_simple: bool = True, hosts: int = 1, kind: EventKind = EventKind.START
) -> Candidate:
    return Candidate(Message(uuid4(), token, queue), is_simple, hosts, kind)


def _numbers(*found: Candidate) -> list[int]:
    batched = {Batched("a", EventKind.START), Batched("a", EventKind.END), Batched("b", EventKind.START)}
    return [message.number for message in numbered(found, batched)]


def test_starts_of_a_queue_that_follow_each_other_go_together() -> None:
    assert _numbers(*(_one(token) for token in (3, 1, 2))) == [1, 1, 1]
    assert _numbers(_one(1), _one(2, queue="b"), _one(3), _one(4, queue="b")) == [1, 2, 1, 2]


def test_nothing_goes_before_what_was_claimed_earlier_for_its_queue() -> None:
    assert _numbers(_one(1), _one(2, is_simple=False), _one(3), _one(4)) == [1, 2, 3, 3]


def test_a_portion_has_starts_or_ends() -> None:
    end = EventKind.END
    assert _numbers(_one(1, kind=end), _one(2, kind=end), _one(3), _one(4), _one(5, kind=end)) == [1, 1, 2, 2, 3]
    assert _numbers(_one(1, queue="b", kind=end), _one(2, queue="b", kind=end)) == [1, 2]


def test_portions_are_bounded_by_events_and_by_hosts() -> None:
    assert _numbers(*(_one(token) for token in range(MOST_EVENTS + 1))) == [1] * MOST_EVENTS + [2]
    assert _numbers(_one(1, hosts=MOST_HOSTS), _one(2), _one(3, hosts=9999), _one(4)) == [1, 2, 3, 4]


def test_a_queue_that_takes_no_portions_gets_a_message_for_each_event() -> None:
    assert _numbers(_one(1, queue="c"), _one(2, queue="c")) == [1, 2]


def test_starts_have_one_message_together_and_a_message_each_when_it_seems_to_be_lost(here: Here) -> None:
    sent: list[tuple[str, list[object]]] = []

    class Bell:
        def send_task(self, name: str, args: list[object], **options: object) -> None:
            sent.append((name, args))

    made = here.due(3)
    event_dispatch.claim_due(here.climate, "poller")
    waiting = 1
    rings = EventMessages(here.climate, cast("Any", Bell()), lambda queue: waiting)
    rings.send()
    ((name, (portion,)),) = sent
    assert name == celery_app.RUN_EVENTS
    assert isinstance(portion, list)
    starts = {str(lease.event(EventKind.START).id) for lease in made}
    assert {event_id for event_id, _ in portion} == starts
    here.ahead += timedelta(seconds=2)
    rings.send()
    assert len(sent) == 1, "the one message is still in its queue"
    waiting = 0
    here.ahead += timedelta(seconds=10)
    rings.send()
    again = sent[1:]
    waiting = 2
    here.ahead += timedelta(seconds=10)
    rings.send()
    assert len(sent) == 7, "one of three messages is lost"
    waiting = 3
    here.ahead += timedelta(seconds=20)
    rings.send()
    assert len(sent) == 7, "each has a message in the queue"
    assert {name for name, _ in again} == {celery_app.RUN_EVENT}
    assert {str(args[0]) for _, args in again} == starts
    desk = WorkerContext(here.climate.settings)
    desk.__dict__["deployment"] = SimpleNamespace(climate=here.climate)
    desk.run_events([(str(event_id), int(token)) for event_id, token in portion])
    assert here.status(made) == ["ACTIVE"] * 3
