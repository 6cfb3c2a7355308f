"""The round that warns owners of preemptible leases, and takes their hosts."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import Engine, event

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.domain.status import LeaseStatus
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from climate.service.notifications import delivery
from climate.service.notifications.delivery import Listing
from climate.service.preemption import round as preemption
from climate.store.hosts import pool_membership
from tests.broken_rows import DAMAGES, spoil
from tests.conftest import MEMBER, STRANGER, Clock
from tests.scenarios.test_races import nothing_is_promised_twice
from tests.service.lease_actions import begin, get, held, hosts_wanted, kinds, reservation, run_due
from tests.service.preemption.steps import ALL, LEAD, NOTICE, ends, ordinary, spare, tick, told


def pool_of(climate: Climate, host: int) -> Pool:
    with climate.engine.connect() as conn:
        return pool_membership.of(conn, [host])[host].pool


def only(lease: Lease) -> int:
    (host,) = held(lease)
    return host


def test_the_owner_is_warned_and_the_host_is_taken(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = spare(climate, clock, 2, ALL)
    run_due(climate)
    other = ordinary(climate, clock, start=1)
    host = only(other)
    server = cloud.boot("project", f"h{host}")
    tick(climate, clock, other.period.start - LEAD - NOTICE - timedelta(seconds=1))
    assert told(climate, lease) == ["lease.preemption_planned"]
    tick(climate, clock, other.period.start - LEAD - NOTICE)
    assert told(climate, lease)[1:] == ["lease.preemption_warning"]
    tick(climate, clock, other.period.start - LEAD - timedelta(seconds=1))
    assert held(get(climate, lease)) == held(lease), "taken before its time"
    tick(climate, clock, other.period.start - LEAD)
    assert told(climate, lease)[2:] == ["lease.preempted"]
    after = get(climate, lease)
    assert held(after) == held(lease) - {host}
    assert (after.status, after.degraded, after.reservations[0].preemptions) == (LeaseStatus.ACTIVE, False, ())
    tick(climate, clock)
    assert cloud.server(server) is None, "its servers were left"
    tick(climate, clock, other.period.start)
    assert get(climate, other).status is LeaseStatus.ACTIVE
    assert f"h{host}" in cloud.pools()[reservation(other)]
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []


def test_a_start_at_once_waits_for_the_notice_and_no_longer(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = spare(climate, clock, 1, ALL)
    run_due(climate)
    other = ordinary(climate, clock)
    tick(climate, clock)
    assert told(climate, lease) == ["lease.preemption_warning"], "planned and warned of at once is warned of once"
    assert get(climate, other).status is LeaseStatus.PENDING
    tick(climate, clock, clock.time + NOTICE)
    assert get(climate, other).status is LeaseStatus.ACTIVE
    assert f"h{only(other)}" in cloud.pools()[reservation(other)]


def test_below_its_minimum_the_lease_ends(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, ALL)
    run_due(climate)
    other = ordinary(climate, clock, start=1)
    tick(climate, clock, other.period.start - LEAD - timedelta(seconds=30))
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    said = [one.notice.body for one in delivery.listed(climate, MEMBER, Listing()) if "warning" in one.notice.kind]
    assert [one["lease_ends"] for one in said] == [True]
    tick(climate, clock, other.period.start - LEAD)
    after = get(climate, lease)
    assert after.status is LeaseStatus.TERMINATED
    assert after.period.end == clock.time
    assert "LeasePreempted" in kinds(climate, lease)
    assert {pool_of(climate, host) for host in held(lease)} == {Pool.RESERVATION}
    tick(climate, clock, other.period.start)
    assert get(climate, other).status is LeaseStatus.ACTIVE
    assert consistency_check.differences(climate) == []


def test_with_a_free_host_a_lease_has_both_until_the_old_one_is_taken(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lease = spare(climate, clock, 1)
    run_due(climate)
    filler = ordinary(climate, clock, hosts_wanted(ALL - 1), start=1, hours=1)
    needed = hosts_wanted(hypervisor_properties=f'["==", "$hypervisor_hostname", "h{only(lease)}"]')
    other = ordinary(climate, clock, needed, start=1, hours=1)
    leases.delete(climate, STRANGER, filler.id)
    tick(climate, clock, other.period.start - LEAD - NOTICE)
    both = get(climate, lease)
    assert len(held(both)) == 2
    assert held(lease) < held(both)
    assert cloud.pools()[reservation(lease)] == {f"h{host}" for host in held(both)}
    assert both.reservations[0].resources_changed
    tick(climate, clock, other.period.start)
    after = get(climate, lease)
    assert held(after) == held(both) - held(lease)
    assert (after.status, after.period) == (LeaseStatus.ACTIVE, lease.period)
    assert get(climate, other).status is LeaseStatus.ACTIVE
    assert told(climate, lease) == ["lease.preemption_planned", "lease.preemption_warning", "lease.preempted"]
    assert consistency_check.differences(climate) == []


@pytest.mark.parametrize("warned", [False, True])
def test_a_host_that_is_not_needed_any_more_stays(climate: Climate, clock: Clock, *, warned: bool) -> None:
    lease = spare(climate, clock, ALL)
    run_due(climate)
    other = ordinary(climate, clock, start=1)
    if warned:
        tick(climate, clock, other.period.start - LEAD - NOTICE)
    leases.delete(climate, STRANGER, other.id)
    tick(climate, clock, other.period.start)
    after = get(climate, lease)
    assert ends(after) == ends(lease)
    assert after.reservations[0].preemptions == ()
    assert ("lease.preemption_withdrawn" in told(climate, lease)) is warned
    assert consistency_check.differences(climate) == []


def test_a_host_that_is_needed_later_stays_until_then(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, ALL)
    run_due(climate)
    early = ordinary(climate, clock, start=1, hours=1)
    needed = f'["==", "$hypervisor_hostname", "h{only(early)}"]'
    late = ordinary(climate, clock, hosts_wanted(hypervisor_properties=needed), start=4, hours=1)
    leases.delete(climate, STRANGER, early.id)
    tick(climate, clock, early.period.start)
    after = get(climate, lease)
    assert ends(after)[0] == late.period.start
    (plan,) = after.reservations[0].preemptions
    assert (plan.take_at, plan.warned) == (late.period.start - LEAD, False)


def test_a_late_warning_delays_the_taking(climate: Climate, clock: Clock) -> None:
    """climate did not run at the time of the warning: the owner has the whole notice all the same."""
    lease = spare(climate, clock, 1, ALL)
    run_due(climate)
    other = ordinary(climate, clock, start=1)
    clock.time = other.period.start
    tick(climate, clock)
    assert told(climate, lease) == ["lease.preemption_planned", "lease.preemption_warning"]
    assert held(get(climate, lease)) == held(lease)
    tick(climate, clock, other.period.start + NOTICE)
    assert get(climate, other).status is LeaseStatus.ACTIVE


@pytest.mark.parametrize("on_end", ["terminate", "recycle", "release"])
def test_servers_have_the_end_that_was_agreed_but_nobody_waits_for_them(
    climate: Climate, clock: Clock, cloud: FakeCloud, on_end: str
) -> None:
    begin = clock.time
    wanted = hosts_wanted(1, ALL, preemptible=True, on_end=on_end)
    lease = leases.create(climate, MEMBER, leases.LeaseRequest("s", begin, begin + timedelta(hours=9), None, [wanted]))
    run_due(climate)
    other = ordinary(climate, clock, start=1)
    cloud.boot("project", f"h{only(other)}")
    tick(climate, clock, other.period.start)
    assert get(climate, other).status is LeaseStatus.ACTIVE
    assert get(climate, lease).status is LeaseStatus.ACTIVE


def test_the_end_of_the_lease_comes_first(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, 1, ALL, hours=2)
    run_due(climate)
    other = ordinary(climate, clock, start=1.5)
    update.update(climate, MEMBER, lease.id, Changes(end=clock.time + timedelta(hours=1)))
    assert get(climate, lease).reservations[0].preemptions == ()
    tick(climate, clock, other.period.start)
    assert told(climate, lease) == ["lease.preemption_planned"]
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert get(climate, other).status is LeaseStatus.ACTIVE


def test_a_lease_that_is_to_lose_a_host_may_end_earlier(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, 1, ALL, hours=8)
    run_due(climate)
    other = ordinary(climate, clock, start=1, hours=1)
    shorter = update.update(climate, MEMBER, lease.id, Changes(end=clock.time + timedelta(hours=4)))
    assert ends(shorter)[0] == other.period.start
    assert {*ends(shorter)[1:]} == {shorter.period.end}
    assert len(shorter.reservations[0].preemptions) == 1


def test_nothing_is_done_while_an_event_runs(climate: Climate, clock: Clock, striking: Callable[[], None]) -> None:
    lease = spare(climate, clock, 1, ALL)
    striking()
    ordinary(climate, clock)
    assert preemption.run_round(climate) == 0
    assert "PreemptionWarned" not in kinds(climate, lease)


@pytest.fixture
def striking(climate: Climate) -> Callable[[], None]:
    """Has a worker begin what is due, and never finish it."""
    return lambda: begin(climate).clear()


def test_the_owner_never_reads_whose_lease_it_was(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, 1, ALL)
    run_due(climate)
    other = ordinary(climate, clock)
    tick(climate, clock, clock.time + NOTICE)
    notices = [one.notice for one in delivery.listed(climate, MEMBER, Listing()) if one.notice.lease_id == lease.id]
    assert notices
    for notice in notices:
        assert str(other.id) not in f"{notice.message} {notice.body}"
        assert other.name not in notice.message


def test_rounds_find_nothing_without_plans(climate: Climate, clock: Clock) -> None:
    spare(climate, clock)
    run_due(climate)
    statements: list[str] = []
    event.listen(climate.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    assert preemption.run_round(climate) == 0
    assert len(statements) <= 2


@pytest.mark.parametrize("damage", DAMAGES)
def test_lease_that_cannot_be_read_keeps_no_other_from_the_round(
    climate: Climate, clock: Clock, engine: Engine, damage: str
) -> None:
    half = ALL // 2
    bad, good = spare(climate, clock, half), spare(climate, clock, half)
    run_due(climate)
    ordinary(climate, clock, hosts_wanted(ALL), start=1)
    spoil(engine, bad.id, damage)
    clock.forward(hours=1)
    assert preemption.run_round(climate) >= 1
    assert "lease.preemption_warning" in told(climate, good)
