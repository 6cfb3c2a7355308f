"""Hosts that the cloud says are down fail after a while, and come back after as long."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import Engine, text

from climate.cloud import FAILED, FREEPOOL, CloudError
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Busy, Conflict, Forbidden, InvalidInput, NotFound
from climate.domain.facts import HostMoved, HostSwitched
from climate.domain.hosts.pools import Pool
from climate.service.host_operations import failures
from climate.service.host_operations.recovery import MOST_AT_ONCE
from climate.service.hosts import inventory
from climate.service.journal import consistency_check
from climate.service.leases import broken_leases
from climate.store.hosts import pool_membership
from climate.store.journal import journal
from tests.conftest import ADMIN, MEMBER, Clock, cloud_host
from tests.scenarios.test_statement_counts import cost, counted
from tests.service.host_rounds import fall_ill, pass_time, place, pool_of, recover, told
from tests.service.lease_actions import get, held, hosts_wanted, make, run_due
from tests.service.leases.test_broken_leases import OF_A_NEWER_RELEASE


def test_a_host_that_is_down_for_a_while_has_failed_and_comes_back(climate: Climate, clock: Clock) -> None:
    fall_ill(climate, clock, 1)
    assert place(climate, 1).pool is Pool.FAILED
    assert place(climate, 1).reason == "its service is down"
    assert pool_of(climate, 1) == {FAILED}
    recover(climate, clock, 1)
    assert place(climate, 1).pool is Pool.RESERVATION
    assert pool_of(climate, 1) == {FREEPOOL}
    assert len(told(climate, "host.failed")) == len(told(climate, "host.recovered")) == 1
    assert consistency_check.differences(climate) == []


def test_a_short_trouble_is_none(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    for _ in range(5):
        cloud.unwell["h1"] = "down"
        pass_time(climate, clock, seconds=59)
        cloud.unwell.clear()
        pass_time(climate, clock, seconds=1)
    assert place(climate, 1).pool is Pool.RESERVATION


def test_a_host_that_was_well_for_a_moment_has_failed_still(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    fall_ill(climate, clock, 1)
    for _ in range(3):
        cloud.unwell.clear()
        pass_time(climate, clock, seconds=59)
        cloud.unwell["h1"] = "down"
        pass_time(climate, clock, seconds=1)
    assert place(climate, 1).pool is Pool.FAILED


def test_one_that_the_cloud_knows_no_more_has_failed(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    cloud.set_hosts(host for name, host in list(cloud.hosts.items()) if name != "h1")
    pass_time(climate, clock, seconds=60)
    assert place(climate, 1).pool is Pool.FAILED
    cloud.set_hosts([*cloud.hosts.values(), cloud_host("h1")])
    recover(climate, clock, 1)
    assert place(climate, 1).pool is Pool.RESERVATION


def test_a_switched_off_host_is_not_unwell(climate: Climate, clock: Clock) -> None:
    with climate.engine.begin() as conn:
        there = pool_membership.get(conn, 1, lock=True)
        pool_membership.record(conn, ADMIN, [(there, [HostSwitched(clock.time, False, "idle")])])
    fall_ill(climate, clock, 1)
    assert place(climate, 1).pool is Pool.RESERVATION


def test_while_the_cloud_says_nothing_nobody_fails(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    cloud.broken = True
    for _ in range(3):
        with pytest.raises(CloudError):
            failures.check(climate)
        clock.forward(minutes=5)
    cloud.broken = False
    failures.check(climate)
    assert place(climate, 1).pool is Pool.RESERVATION


def test_no_host_fails_while_all_are_unwell_at_once(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    fall_ill(climate, clock, *range(1, 9))
    pass_time(climate, clock, hours=1)
    assert {place(climate, number).pool for number in range(1, 9)} == {Pool.RESERVATION}
    assert told(climate, "host.failed") == []
    cloud.unwell.pop("h8")
    pass_time(climate, clock, seconds=climate.settings.failed_after - 1)
    assert {place(climate, number).pool for number in range(1, 9)} == {Pool.RESERVATION}, "each has its time again"
    pass_time(climate, clock, seconds=1)
    assert {place(climate, number).pool for number in range(1, 8)} == {Pool.FAILED}
    assert place(climate, 8).pool is Pool.RESERVATION


def test_the_last_host_that_is_left_fails_like_any_other(climate: Climate, clock: Clock) -> None:
    fall_ill(climate, clock, *range(1, 8))
    fall_ill(climate, clock, 8)
    assert place(climate, 8).pool is Pool.FAILED


def test_an_admin_declares_a_host_failed_and_well(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    failed = failures.fail(climate, ADMIN, "1", "smells of smoke")
    assert failed.pool is Pool.FAILED
    assert pool_of(climate, 1) == {FAILED}
    pass_time(climate, clock, hours=1)
    assert place(climate, 1).pool is Pool.FAILED, "the cloud's word does not take back an admin's"
    with pytest.raises(Conflict, match="already"):
        failures.fail(climate, ADMIN, "1", "again")
    cloud.unwell["h1"] = "down"
    with pytest.raises(Conflict, match="unwell: down"):
        failures.heal(climate, ADMIN, "1")
    cloud.unwell.clear()
    assert failures.heal(climate, ADMIN, "1", dry_run=True).pool is Pool.FAILED
    assert failures.heal(climate, ADMIN, "1").pool is Pool.RESERVATION
    with pytest.raises(Conflict, match="has not failed"):
        failures.heal(climate, ADMIN, "1")


@pytest.mark.parametrize("at_once", [True, False])
def test_one_that_was_switched_off_is_declared_well(
    climate: Climate, clock: Clock, cloud: FakeCloud, at_once: bool
) -> None:
    failures.fail(climate, ADMIN, "1", "smells of smoke")
    with climate.engine.begin() as conn:
        there = pool_membership.get(conn, 1, lock=True)
        pool_membership.record(conn, ADMIN, [(there, [HostSwitched(clock.time, False, "by hand")])])
    cloud.unwell["h1"] = "it is off"
    if at_once:
        assert failures.heal(climate, ADMIN, "1").pool is Pool.RESERVATION
        return
    cloud.failures["place"] = CloudError("not now")
    with pytest.raises(Busy, match="comes back as soon as"):
        failures.heal(climate, ADMIN, "1")
    cloud.failures.clear()
    pass_time(climate, clock, seconds=climate.settings.failed_after)
    assert place(climate, 1).pool is Pool.RESERVATION


def test_who_may_and_what_is_refused(climate: Climate) -> None:
    for verb in (lambda who: failures.fail(climate, who, "1", "x"), lambda who: failures.heal(climate, who, "1")):
        with pytest.raises(Forbidden):
            verb(MEMBER)
    with pytest.raises(Forbidden):
        failures.report(climate, MEMBER, "1")
    with pytest.raises(NotFound):
        failures.fail(climate, ADMIN, "99", "x")
    for reason in ("", "  ", "x" * 1001):
        with pytest.raises(InvalidInput, match="reason"):
            failures.fail(climate, ADMIN, "1", reason)
    failures.fail(climate, ADMIN, "1", "x", dry_run=True)
    assert place(climate, 1).pool is Pool.RESERVATION


def test_a_report(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    cloud.unwell["h1"] = "down"
    failures.check(climate)
    told = failures.report(climate, ADMIN, "1")
    assert (told.trouble, told.doubted_since) == ("down", clock.time)
    assert failures.report(climate, ADMIN, "2").trouble is None


def test_looking_takes_as_many_statements_for_one_host_as_for_all(climate: Climate, clock: Clock) -> None:
    look = lambda: failures.check(climate)  # noqa: E731
    assert cost(climate.engine, look) == cost(climate.engine, look)
    fall_cost = []
    for names in (["h1"], ["h2", "h3", "h4", "h5"]):
        climate.cloud.unwell.update(dict.fromkeys(names, "down"))  # type: ignore[attr-defined]
        failures.check(climate)
        clock.forward(seconds=60)
        fall_cost.append(cost(climate.engine, look))
    assert fall_cost[0] == fall_cost[1]


def test_hosts_of_a_lease_return_without_reading_all_of_it_for_each(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lease = make(climate, clock, hosts_wanted(8), start=0)
    run_due(climate)
    reads = []
    for numbers in ([1], [2, 3, 4, 5, 6]):
        fall_ill(climate, clock, *numbers)
        for number in numbers:
            cloud.unwell.pop(f"h{number}")
        failures.check(climate)
        clock.forward(seconds=60)
        cloud.calls.clear()
        with counted(climate.engine) as seen:
            failures.check(climate)
        assert {place(climate, number).pool for number in numbers} == {Pool.LENT}
        reads.append(
            (len([one for one in seen if is_whole_lease(one)]), [verb for verb, _ in cloud.calls].count("pools"))
        )
    assert reads[0] == reads[1], "as often for five hosts as for one"
    assert held(get(climate, lease)) == set(range(1, 9))


def test_a_broken_lease_keeps_only_its_own_hosts_from_returning(
    climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine
) -> None:
    bad, good = (make(climate, clock, hosts_wanted(4), start=0) for _ in range(2))
    run_due(climate)
    stays, returns = min(held(bad)), min(held(good))
    fall_ill(climate, clock, stays, returns)
    with engine.begin() as conn:
        conn.execute(text(OF_A_NEWER_RELEASE), {"lease_id": bad.id})
    recover(climate, clock, stays, returns)
    assert (place(climate, stays).pool, place(climate, returns).pool) == (Pool.FAILED, Pool.LENT)
    broken_leases.repair_lease(climate, bad.id, "events")
    failures.check(climate)
    assert place(climate, stays).pool is Pool.LENT


def test_many_hosts_return_in_portions(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    names = [f"h{number}" for number in range(9, 9 + MOST_AT_ONCE + 5)]
    cloud.set_hosts([*cloud.hosts.values(), *map(cloud_host, names)])
    numbers = [int(inventory.register(climate, ADMIN, name, {}).id) for name in names]
    fall_ill(climate, clock, *numbers)
    assert failed_of(climate, numbers) == len(numbers)
    for name in names:
        cloud.unwell.pop(name)
    failures.check(climate)
    clock.forward(seconds=60)
    failures.check(climate)
    assert failed_of(climate, numbers) == 5
    failures.check(climate)
    assert failed_of(climate, numbers) == 0
    assert consistency_check.differences(climate) == []


def failed_of(climate: Climate, numbers: Sequence[int]) -> int:
    with climate.engine.connect() as conn:
        return sum(one.pool is Pool.FAILED for one in pool_membership.of(conn, numbers).values())


def is_whole_lease(statement: str) -> bool:
    """Whether a statement reads leases with all of their hosts."""
    return "json_build_array" in statement and "AS parts" in statement


def test_two_looks_at_once_fail_a_host_once(climate: Climate, clock: Clock) -> None:
    eager = replace(climate, settings=replace(climate.settings, failed_after=0))
    fall_ill(eager, clock, 1)
    fall_ill(eager, clock, 1)
    with climate.engine.connect() as conn:
        stream = pool_membership.of(conn, [1])[1].stream
    with climate.engine.connect() as conn:
        moves = [entry.fact for entry in journal.read(conn, stream) if isinstance(entry.fact, HostMoved)]
    assert [move.pool for move in moves] == ["failed"]
