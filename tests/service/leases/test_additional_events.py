"""Events that a client names with a lease fire at their times, and live and die with the lease."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from marshmallow import Schema
from sqlalchemy import Connection, text

from climate.cloud import Cloud, CloudError
from climate.context import Climate
from climate.domain.errors import InvalidInput
from climate.domain.events.event import Event
from climate.domain.events.event_transitions import AdditionalEvent
from climate.domain.lease import Lease
from climate.domain.status import DONE, ERROR, UNDONE, EventKind, LeaseStatus
from climate.plugin import Allocation, ReservationContext, ResourceRequest
from climate.service.events import events
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.service.notifications import delivery
from climate.store.notices.notifications import Listing
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service import lease_actions
from tests.service.lease_actions import END, START, get, hosts_wanted, run_due, settle


class Diary:
    """A resource type that writes down what it was called for."""

    resource_type = "test:diary"
    spec_schema = Schema

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.troubles = 0

    def check(self, cloud: Cloud, ask: ResourceRequest) -> Mapping[str, str] | None:
        return None

    def reserve(self, conn: Connection, ask: ResourceRequest) -> Allocation:
        return Allocation(spec={})

    def on_start(self, cloud: Cloud, lent: ReservationContext) -> None:
        self.lines.append("start")

    def before_end(self, cloud: Cloud, lent: ReservationContext) -> None:
        self.lines.append("before_end")

    def on_end(self, cloud: Cloud, lent: ReservationContext) -> None:
        self.lines.append("end")

    def on_event(self, cloud: Cloud, lent: ReservationContext, event: AdditionalEvent) -> None:
        if self.troubles:
            self.troubles -= 1
            raise CloudError("no ink")
        self.lines.append(f"{event.name} at {event.due_at:%H:%M}")


@pytest.fixture
def diary() -> Diary:
    return Diary()


@pytest.fixture
def engine_with_diary(climate: Climate, diary: Diary) -> Climate:
    return replace(climate, plugins={**climate.plugins, diary.resource_type: diary})


def lease_with(climate: Climate, clock: Clock, *named: tuple[str, float], wanted: str = "test:diary") -> Lease:
    """A lease of two hours, an hour from now, with events so many hours after its start."""
    start = clock.time + timedelta(hours=1)
    asked = tuple(AdditionalEvent(name, start + timedelta(hours=hours)) for name, hours in named)
    spec = hosts_wanted() if wanted == "physical:host" else {"resource_type": wanted}
    order = LeaseRequest("l", start, start + timedelta(hours=2), None, [spec], asked)
    return leases.create(climate, MEMBER, order)


def additional(lease: Lease) -> list[Event]:
    return [event for event in lease.events if event.kind is EventKind.ADDITIONAL]


def hours_after_start(lease: Lease) -> list[float]:
    return [(event.due_at - lease.period.start) / timedelta(hours=1) for event in additional(lease)]


def test_each_fires_at_its_time_in_the_plugin_and_as_a_notice(
    engine_with_diary: Climate, diary: Diary, clock: Clock
) -> None:
    named = [("remind", 0.5), ("remind", 1.5), ("notification", 0), ("farewell", 2)]
    lease = lease_with(engine_with_diary, clock, *named)
    settle(engine_with_diary, clock, hours=4)
    start = lease.period.start
    at = {hours: f"{start + timedelta(hours=hours):%H:%M}" for hours in (0, 0.5, 1.5, 2)}
    own = ["start", f"notification at {at[0]}", f"remind at {at[0.5]}"]
    assert [line for line in diary.lines if line != "before_end"] == [
        *own, f"remind at {at[1.5]}", f"farewell at {at[2]}", "end",
    ]  # fmt: skip
    after = get(engine_with_diary, lease)
    assert {event.status for event in additional(after)} == {DONE}
    assert after.status is LeaseStatus.TERMINATED
    told = [kept.notice for kept in delivery.listed(engine_with_diary, MEMBER, Listing(kind="lease.event"))]
    assert sorted(notice.body["event_type"] for notice in told) == ["farewell", "notification", "remind", "remind"]
    assert {notice.lease_id for notice in told} == {lease.id}
    assert consistency_check.differences(engine_with_diary) == []


def test_the_bundled_types_have_them_too(climate: Climate, clock: Clock) -> None:
    lease = lease_with(climate, clock, ("remind", 1), wanted="physical:host")
    settle(climate, clock, hours=2.5)
    assert [event.status for event in additional(get(climate, lease))] == [DONE]
    assert get(climate, lease).status is LeaseStatus.ACTIVE


def test_a_future_one_holds_nothing_up_and_a_failing_one_neither(
    engine_with_diary: Climate, diary: Diary, clock: Clock
) -> None:
    lease = lease_with(engine_with_diary, clock, ("remind", 1.9), ("sooner", 0.2))
    diary.troubles = 100
    settle(engine_with_diary, clock, hours=4)
    after = get(engine_with_diary, lease)
    assert after.status is LeaseStatus.TERMINATED
    assert [event.status for event in additional(after)] == [ERROR, ERROR]
    assert after.reason is not None
    assert "no ink" in after.reason
    diary.troubles = 0
    for event in additional(after):
        events.requeue(engine_with_diary, ADMIN, event.id)
    run_due(engine_with_diary)
    assert {event.status for event in additional(get(engine_with_diary, lease))} == {DONE}


def test_it_runs_while_a_start_waits_for_its_hosts(climate: Climate, clock: Clock) -> None:
    """A start that may not run yet does not keep the owner from being told."""
    first = lease_actions.make(climate, clock, hosts_wanted(8), start=0, hours=1)
    run_due(climate)
    lease = lease_with(climate, clock, ("remind", 0.1), wanted="physical:host")
    clock.forward(hours=1.2)
    with climate.engine.begin() as conn:  # the end of the first is put off, and its hosts are still lent
        conn.execute(
            text("UPDATE events SET run_at = run_at + interval '1 hour' WHERE id = :id"), {"id": first.event(END).id}
        )
    run_due(climate)
    after = get(climate, lease)
    assert after.event(START).status is UNDONE
    assert [event.status for event in additional(after)] == [DONE]


def test_they_move_with_the_dates(engine_with_diary: Climate, clock: Clock) -> None:
    lease = lease_with(engine_with_diary, clock, ("early", 0.5), ("late", 1.5))
    start = lease.period.start

    def moved(start: datetime | None = None, end: datetime | None = None) -> list[float]:
        return hours_after_start(update.update(engine_with_diary, MEMBER, lease.id, Changes(start=start, end=end)))

    assert moved(start=start + timedelta(minutes=30)) == [0.5, 1.5]
    assert moved(end=start + timedelta(hours=1.5)) == [0.5, 1]  # not beyond the end
    assert moved(end=start + timedelta(hours=8)) == [0.5, 1]
    assert consistency_check.differences(engine_with_diary) == []


def test_they_go_with_the_lease(engine_with_diary: Climate, diary: Diary, clock: Clock) -> None:
    lease = lease_with(engine_with_diary, clock, ("remind", 0.5), ("later", 1.5))
    clock.forward(hours=1)
    run_due(engine_with_diary)
    clock.forward(hours=0.5)
    run_due(engine_with_diary)
    leases.delete(engine_with_diary, MEMBER, lease.id)
    settle(engine_with_diary, clock, hours=4)
    assert [line.split()[0] for line in diary.lines if line != "before_end"] == ["start", "remind", "end"]


REFUSED = {
    "before the start": ([("remind", -0.5)], "event_date of remind must lie between"),
    "after the end": ([("remind", 2.5)], "event_date of remind must lie between"),
    "a start of its own": ([("start_lease", 0.5)], "event_type start_lease belongs to the lease itself"),
    "an end of its own": ([("end_lease", 1.0)], "event_type end_lease belongs to the lease itself"),
    "an event of the engine": ([("prepare_lease", 0.5)], "event_type prepare_lease belongs to the lease itself"),
    "the kind of its own": ([("additional", 0.5)], "event_type additional belongs to the lease itself"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(engine_with_diary: Climate, clock: Clock, case: str) -> None:
    named, said = REFUSED[case]
    with pytest.raises(InvalidInput, match=said):
        lease_with(engine_with_diary, clock, *named)


def test_those_of_every_lease_may_be_named_at_their_own_times(engine_with_diary: Climate, clock: Clock) -> None:
    lease = lease_with(engine_with_diary, clock, ("start_lease", 0), ("end_lease", 2))
    assert additional(lease) == []
    assert lease.event(START).due_at == lease.period.start
    assert lease.event(END).due_at == lease.period.end
