"""Hosts go to a sub-lease in time, and return to the parent."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import InvalidInput
from climate.domain.events import event_transitions
from climate.domain.hosts.pools import Pool
from climate.domain.status import HoldState, LeaseStatus
from climate.service.host_operations import recycling
from climate.service.hosts import timeline
from climate.service.hosts.timeline import TimelineWindow
from climate.service.journal import consistency_check, rebuild
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from climate.service.subleases import round as subleases
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.scenarios.test_races import nothing_is_promised_twice
from tests.service.lease_actions import get, held, hosts_wanted, kinds, reservation, run_due
from tests.service.subleases.steps import ALL, LEAD, NOTICE, give, parent, pool_of, tick, told


def names(hosts: set[int]) -> set[str]:
    return {f"h{host}" for host in hosts}


def test_hosts_go_to_the_sub_lease_at_once_and_return_at_its_end(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    long = parent(climate, clock)
    run_due(climate)
    lease = give(climate, clock, long)
    assert held(lease) < held(long)
    tick(climate, clock)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert cloud.pools()[reservation(lease)] == names(held(lease))
    assert cloud.pools()[reservation(long)] == names(held(long) - held(lease))
    assert held(get(climate, long)) == held(long) - held(lease)
    assert get(climate, long).degraded is False
    tick(climate, clock, lease.period.end)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    after = get(climate, long)
    assert (after.status, after.degraded, held(after)) == (LeaseStatus.ACTIVE, False, held(long))
    assert cloud.pools()[reservation(long)] == names(held(long))
    assert after.reservations[0].sublets == ()
    assert told(climate, long) == ["lease.sublet", "lease.sublet_returned"]
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []
    tick(climate, clock, long.period.end)
    assert {pool_of(climate, host) for host in held(long)} == {Pool.RESERVATION}
    assert consistency_check.differences(climate) == []


def test_a_later_start_is_warned_of_and_servers_are_deleted(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    long = parent(climate, clock, hosts_wanted(2))
    run_due(climate)
    lease = give(climate, clock, long, start=3, hosts=2)
    server = cloud.boot("project", f"h{min(held(lease))}")
    tick(climate, clock, lease.period.start - LEAD - NOTICE - timedelta(seconds=1))
    assert told(climate, long) == []
    tick(climate, clock, lease.period.start - LEAD - NOTICE)
    assert told(climate, long) == ["lease.sublet_warning"]
    tick(climate, clock, lease.period.start - LEAD - timedelta(seconds=1))
    assert held(get(climate, long)) == held(long), "taken before its time"
    tick(climate, clock, lease.period.start - LEAD)
    assert held(get(climate, long)) == set()
    tick(climate, clock, lease.period.start)
    assert cloud.server(server) is None
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert cloud.pools()[reservation(lease)] == names(held(lease))
    assert consistency_check.differences(climate) == []


def test_nobody_else_gets_a_host_between_two_of_its_leases(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock, hosts_wanted(ALL))
    run_due(climate)
    lease = give(climate, clock, long, start=3)
    other = parent(climate, clock, hosts_wanted(1), start=24.5)
    for _ in range(3):
        clock.time += timedelta(hours=1)
        tick(climate, clock)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    clock.time = lease.period.end
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert len(held(get(climate, long))) == ALL - 2, "the round has not run"
    assert get(climate, lease).hold_state is HoldState.ACTIVE, "hosts that nobody holds may be booked by anybody"
    tick(climate, clock)
    assert held(get(climate, long)) == held(long)
    assert nothing_is_promised_twice(climate)
    assert len(held(other)) == 1


def test_a_sub_lease_that_is_deleted_before_its_start_returns_its_hosts(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock)
    run_due(climate)
    lease = give(climate, clock, long, start=3)
    leases.delete(climate, STRANGER, lease.id)
    tick(climate, clock)
    after = get(climate, long)
    assert (after.reservations[0].holds, after.reservations[0].sublets) == (long.reservations[0].holds, ())
    assert "SubletHostsTaken" not in kinds(climate, long)
    assert consistency_check.differences(climate) == []


def test_a_parent_that_has_not_begun_gives_and_gets_hosts(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock, start=5)
    lease = give(climate, clock, long, start=5, hosts=4)
    assert held(get(climate, long)) == set()
    second = parent(climate, clock, start=1, hours=2)
    assert len(held(second)) == 4
    tick(climate, clock, lease.period.start)
    assert get(climate, lease).status is get(climate, long).status is LeaseStatus.ACTIVE
    tick(climate, clock, lease.period.end)
    assert held(get(climate, long)) == held(lease)
    assert consistency_check.differences(climate) == []


def test_both_end_together(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    long = parent(climate, clock, hours=3)
    run_due(climate)
    lease = give(climate, clock, long, hours=3)
    tick(climate, clock, long.period.end)
    assert get(climate, lease).status is get(climate, long).status is LeaseStatus.TERMINATED
    tick(climate, clock)
    assert get(climate, lease).owes_hosts is False
    assert event_transitions.open_subleases(get(climate, long)) == {}
    with pytest.raises(InvalidInput, match="Terminated leases can only be renamed"):
        update.update(climate, MEMBER, long.id, Changes(end=clock.time + timedelta(hours=1)))
    assert set(cloud.pools()) == {"freepool"}
    assert consistency_check.differences(climate) == []


def test_the_giver_may_end_it(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock)
    run_due(climate)
    lease = give(climate, clock, long)
    tick(climate, clock)
    leases.delete(climate, MEMBER, lease.id)
    tick(climate, clock)
    assert leases.history(climate, ADMIN, lease.id)[-1].fact.__class__.__name__ == "SubleaseReturned"
    assert held(get(climate, long)) == held(long)
    assert consistency_check.differences(climate) == []


def test_a_round_that_has_nothing_to_do_changes_nothing(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock)
    run_due(climate)
    give(climate, clock, long, start=3)
    assert subleases.run_round(climate) == 0


def test_servers_that_could_recycle_go_before_the_parent_has_its_hosts(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    long = parent(climate, clock)
    run_due(climate)
    lease = give(climate, clock, long, ADMIN, terms={"on_end": "recycle"})
    tick(climate, clock)
    server = cloud.boot(STRANGER.project_id, f"h{min(held(lease))}")
    clock.time = lease.period.end
    run_due(climate)
    recycling.run_round(climate)
    assert cloud.server(server) is not None, "the host is not known to be needed yet"
    tick(climate, clock)
    tick(climate, clock, clock.time + timedelta(minutes=2))
    assert cloud.server(server) is None
    assert cloud.pools()[reservation(long)] == names(held(long))
    assert consistency_check.differences(climate) == []


def test_the_calendar_shows_whose_a_host_is(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock)
    run_due(climate)
    lease = give(climate, clock, long, start=2)
    host = min(held(lease))
    shown = timeline.read(climate, ADMIN, TimelineWindow(clock.time, long.period.end, hosts=frozenset({f"h{host}"})))
    (row,) = shown.rows
    spans = row.spans
    assert [(one.lease_id, one.start, one.end) for one in spans] == [
        (long.id, long.period.start, lease.period.start - LEAD),
        (lease.id, lease.period.start - LEAD, lease.period.end),
        (long.id, lease.period.end, long.period.end),
    ]


def test_rows_of_sub_leases_are_compared_and_rebuilt(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock)
    run_due(climate)
    lease = give(climate, clock, long)
    tick(climate, clock)
    before = get(climate, long), get(climate, lease)
    with climate.engine.begin() as conn:
        conn.execute(text("UPDATE reservations SET sublets = '[]'"))
        conn.execute(text("UPDATE leases SET parent = NULL"))
    found = consistency_check.differences(climate)
    assert any("sublets" in str(one) for one in found)
    assert any("parent" in str(one) for one in found)
    assert rebuild.rebuild(climate).left == ()
    assert consistency_check.differences(climate) == []
    assert (get(climate, long), get(climate, lease)) == before
