"""Limits where they bind: on creating and changing leases, also by many at once."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, text

from climate.context import Climate
from climate.domain.errors import Forbidden, LimitExceeded
from climate.domain.lease import Lease
from climate.domain.limits import Limit
from climate.domain.policy import Caller
from climate.service.admission import limits
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.store.idempotency import Key
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.lock_waits import await_blocked
from tests.scenarios.test_races import WRITERS, at_once
from tests.scenarios.test_statement_counts import cost
from tests.service.lease_actions import held, hosts_wanted, make, rows, run_due, settle
from tests.service.subleases.steps import give, parent, tick

MINE, EVERYBODY = MEMBER.project_id, ""


def bound(climate: Climate, project_id: str = MINE, **values: int | None) -> None:
    limits.put(climate, ADMIN, project_id, {Limit(name): value for name, value in values.items()})


def told(error: LimitExceeded) -> dict[str, Any]:
    return dict(error.details["limit"])


def standing(climate: Climate, caller: Caller = MEMBER) -> Mapping[str, tuple[Any, Any]]:
    return {str(one.limit): (one.value, one.used) for one in limits.of(climate, caller)}


@pytest.mark.parametrize(
    ("limit", "value", "wanted"),
    [
        ("max_lease_seconds", 3600, {"hours": 2}),
        ("max_lead_seconds", 3599, {"start": 1}),
        ("leases", 1, {}),
        ("hosts_at_once", 3, {}),
        ("host_hours", 7, {}),
    ],
)
def test_what_is_beyond_a_limit_is_not_created(
    climate: Climate, clock: Clock, engine: Engine, limit: str, value: int, wanted: dict[str, float]
) -> None:
    make(climate, clock, hosts_wanted(2))
    bound(climate, **{limit: value})
    before = rows(engine)
    with pytest.raises(LimitExceeded, match=f"Limit {limit} of the project is {value} ") as raised:
        make(climate, clock, hosts_wanted(2), **wanted)
    assert told(raised.value)["name"] == limit
    assert rows(engine) == before
    bound(climate, **{limit: None})
    assert make(climate, clock, hosts_wanted(2), **wanted)


def test_what_is_used_is_said(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(3))
    bound(climate, hosts_at_once=4, leases=-1)
    with pytest.raises(LimitExceeded, match="3 are in use: 2 asked for") as raised:
        make(climate, clock, hosts_wanted(2))
    assert told(raised.value) == {"name": "hosts_at_once", "value": 4, "used": 3, "asked": 2}
    assert make(climate, clock, hosts_wanted(2), start=3)


def test_the_limit_of_a_project_stands_before_that_of_all(climate: Climate, clock: Clock) -> None:
    bound(climate, EVERYBODY, leases=0)
    with pytest.raises(LimitExceeded):
        make(climate, clock)
    bound(climate, MINE, leases=-1)
    make(climate, clock)
    bound(climate, MINE, leases=1)
    with pytest.raises(LimitExceeded):
        make(climate, clock)
    assert limits.drop(climate, ADMIN, MINE) == 1
    bound(climate, EVERYBODY, leases=None)
    make(climate, clock)


def test_what_others_have_does_not_count(climate: Climate, clock: Clock) -> None:
    start = clock.time + timedelta(hours=1)
    order = LeaseRequest("x", start, start + timedelta(hours=2), None, [hosts_wanted(4)])
    leases.create(climate, STRANGER, order)
    bound(climate, leases=1, hosts_at_once=4, host_hours=8)
    make(climate, clock, hosts_wanted(4))
    assert standing(climate)["leases"] == (1, 1)
    assert standing(climate, STRANGER)["leases"] == (None, 1)


def test_changes_are_bound_where_they_take_more(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(3), start=1, hours=2)
    bound(climate, leases=0, hosts_at_once=2, host_hours=6, max_lease_seconds=7200, max_lead_seconds=0)
    reservation = {"id": str(lease.reservations[0].id)}

    def refused(wish: Changes) -> str:
        with pytest.raises(LimitExceeded) as raised:
            update.update(climate, MEMBER, lease.id, wish)
        return str(told(raised.value)["name"])

    end, start = lease.period.end, lease.period.start
    assert refused(Changes(end=end + timedelta(hours=1))) == "max_lease_seconds"
    assert refused(Changes(start=start + timedelta(hours=1))) == "max_lead_seconds"
    assert refused(Changes(reservations=[{**reservation, "min": 4, "max": 4}])) == "hosts_at_once"
    update.update(climate, MEMBER, lease.id, Changes(name="as it likes"))
    update.update(climate, MEMBER, lease.id, Changes(end=end - timedelta(hours=1)))
    fewer = update.update(climate, MEMBER, lease.id, Changes(reservations=[{**reservation, "min": 1, "max": 1}]))
    assert len(held(fewer)) == 1
    assert refused(Changes(end=end + timedelta(hours=9))) == "max_lease_seconds"
    assert consistency_check.differences(climate) == []


def test_an_admin_who_mends_a_lease_of_another_project_is_bound_by_nothing(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock)
    bound(climate, MINE, max_lease_seconds=1)
    bound(climate, ADMIN.project_id, max_lease_seconds=1)
    longer = Changes(end=lease.period.end + timedelta(hours=1))
    assert update.update(climate, ADMIN, lease.id, longer).period.end == longer.end
    with pytest.raises(LimitExceeded):
        update.update(climate, MEMBER, lease.id, Changes(end=lease.period.end + timedelta(hours=2)))


def test_hours_that_were_used_stay_used_also_when_the_lease_is_gone(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=0, hours=10)
    run_due(climate)
    clock.forward(hours=3)
    leases.delete(climate, MEMBER, lease.id)
    settle(climate, clock, hours=0.1)
    given_up = make(climate, clock, hosts_wanted(8), start=5, hours=100)
    leases.delete(climate, MEMBER, given_up.id)
    bound(climate, host_hours=10)
    assert standing(climate)["host_hours"] == (10, 6)
    assert standing(climate)["leases"] == (None, 0)
    with pytest.raises(LimitExceeded) as raised:
        make(climate, clock, hosts_wanted(5), hours=1)
    assert (told(raised.value)["used"], told(raised.value)["asked"]) == (6, 5)
    make(climate, clock, hosts_wanted(4), hours=1)
    clock.forward(days=31)
    make(climate, clock, hosts_wanted(5), hours=1)


@pytest.mark.parametrize("ends", [True, False])
def test_hours_of_hosts_in_a_sub_lease_up_to_the_end_stay_used(climate: Climate, clock: Clock, ends: bool) -> None:
    lease = parent(climate, clock, hosts_wanted(4), hours=10)
    run_due(climate)
    inner = give(climate, clock, lease, hours=10)
    tick(climate, clock, None if ends else lease.period.start + timedelta(hours=5))
    if ends:
        tick(climate, clock, lease.period.end)
    else:
        leases.delete(climate, STRANGER, inner.id)
        run_due(climate)
        leases.delete(climate, MEMBER, lease.id)
    tick(climate, clock)
    tick(climate, clock)
    assert standing(climate)["host_hours"] == (None, 40 if ends else 20)
    assert standing(climate, STRANGER)["host_hours"] == (None, 0)
    assert consistency_check.differences(climate) == []


def test_leases_that_have_ended_are_none(climate: Climate, clock: Clock) -> None:
    bound(climate, leases=1)
    make(climate, clock, start=0, hours=1)
    settle(climate, clock, hours=2)
    make(climate, clock, start=0, hours=1)


def all_together(engine: Engine, *acts: Callable[[], Any]) -> list[Any]:
    """Run all at once, and let none of them write before each has got to where it has to wait for another."""
    with ThreadPoolExecutor(1) as pool, engine.connect() as gate:
        gate.execute(text("LOCK TABLE leases IN SHARE ROW EXCLUSIVE MODE"))
        done = pool.submit(at_once, *acts)
        await_blocked(engine, done.done, len(acts))
        gate.rollback()
        return done.result()


def test_the_last_ones_are_given_out_once(climate: Climate, clock: Clock, engine: Engine) -> None:
    make(climate, clock, start=100)
    bound(climate, leases=4)
    empty = LeaseRequest("l", clock.time, clock.time + timedelta(hours=1))  # those with hosts wait for hosts as well
    results = all_together(engine, *[lambda: leases.create(climate, MEMBER, empty)] * WRITERS)
    assert sum(isinstance(one, Lease) for one in results) == 3
    assert sum(isinstance(one, LimitExceeded) for one in results) == WRITERS - 3


def test_hosts_and_hours_are_not_exceeded_by_many_at_once(climate: Climate, clock: Clock, engine: Engine) -> None:
    bound(climate, hosts_at_once=5, host_hours=16)
    acts = [lambda place=place: make(climate, clock, start=1 + place % 2 * 2) for place in range(WRITERS)]
    made = [one for one in all_together(engine, *acts) if isinstance(one, Lease)]
    assert len(made) == 8
    assert max(sum(one.period.start == start for one in made) for start in {one.period.start for one in made}) <= 5


def test_prolonging_against_booking_under_one_limit(climate: Climate, clock: Clock) -> None:
    first = make(climate, clock, hosts_wanted(2), start=1, hours=1)
    bound(climate, hosts_at_once=2)
    longer = Changes(end=first.period.end + timedelta(hours=1))
    results = at_once(
        lambda: update.update(climate, MEMBER, first.id, longer),
        *[lambda: make(climate, clock, hosts_wanted(2), start=2, hours=1)] * 3,
    )
    assert sum(isinstance(one, Lease) for one in results) == 1
    assert sum(isinstance(one, LimitExceeded) for one in results) == 3


def test_a_request_that_is_repeated_is_not_counted_twice(climate: Climate, clock: Clock) -> None:
    bound(climate, leases=1)
    order = LeaseRequest("l", clock.time, clock.time + timedelta(hours=1), None, [hosts_wanted()])
    first = leases.create(climate, MEMBER, order, Key("k", "f"))
    assert leases.create(climate, MEMBER, order, Key("k", "f")).id == first.id


def test_a_trial_is_held_to_limits_and_takes_nothing(climate: Climate, clock: Clock) -> None:
    bound(climate, leases=1)
    order = LeaseRequest("l", clock.time, clock.time + timedelta(hours=1), None, [hosts_wanted()])
    for _ in range(2):
        leases.create(climate, MEMBER, order, dry_run=True)
    leases.create(climate, MEMBER, order)
    with pytest.raises(LimitExceeded):
        leases.create(climate, MEMBER, order, dry_run=True)


def test_the_cost(climate: Climate, clock: Clock, engine: Engine) -> None:
    """One statement where there is no limit, three with limits, however many leases there are."""
    bare = replace(climate, settings=climate.settings)
    without = cost(engine, lambda: make(bare, clock, start=1, hours=0.5))
    bound(climate, STRANGER.project_id, leases=5)
    assert cost(engine, lambda: make(climate, clock, start=2, hours=0.5)) == without
    bound(climate, max_lease_seconds=9999)
    assert cost(engine, lambda: make(climate, clock, start=3, hours=0.5)) == without + 1
    bound(climate, leases=99, host_hours=999)
    assert cost(engine, lambda: make(climate, clock, start=4, hours=0.5)) == without + 2
    for place in range(10):
        make(climate, clock, hosts_wanted(2), start=5 + place, hours=0.5)
    assert cost(engine, lambda: make(climate, clock, hosts_wanted(4), start=20, hours=0.5)) == without + 2
    lease = make(climate, clock, start=30)
    rename = Changes(name="x")
    assert cost(engine, lambda: update.update(climate, MEMBER, lease.id, rename)) <= 5


def test_only_admins_set_limits_and_look_at_those_of_others(climate: Climate, engine: Engine) -> None:
    for act in (
        lambda: limits.put(climate, MEMBER, MINE, {Limit.LEASES: 9}),
        lambda: limits.drop(climate, MEMBER, MINE),
        lambda: limits.of(climate, MEMBER, STRANGER.project_id),
        lambda: limits.of(climate, MEMBER, EVERYBODY),
        lambda: limits.everyones(climate, MEMBER),
    ):
        with pytest.raises(Forbidden):
            act()
    limits.put(climate, ADMIN, MINE, {Limit.LEASES: 9}, dry_run=True)
    with engine.connect() as conn:
        assert conn.scalar(text("SELECT count(*) FROM limits")) == 0
