"""Admins move hosts: many at once or none, one admin wins, and no lease loses a host without a word."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Barrier, local
from typing import Any

import pytest
from sqlalchemy import Engine, event

from climate.cloud import FREEPOOL, CloudError, Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import (
    Busy,
    ClimateError,
    Conflict,
    Forbidden,
    IllegalMove,
    InvalidInput,
    LeasesInTheWay,
    NotFound,
    Unavailable,
)
from climate.domain.hosts.pools import Pool
from climate.domain.status import LeaseStatus
from climate.service.host_operations import maintenance, pools
from climate.service.host_operations.pool_moves import Moved, move
from climate.service.hosts import reconcile, reservable
from climate.service.hosts.move_checks import RequestedMove
from climate.service.journal import consistency_check
from tests.conftest import ADMIN, MEMBER, Clock
from tests.scenarios.test_races import at_once
from tests.scenarios.test_statement_counts import cost
from tests.service.hosts.test_reconcile import place, put
from tests.service.lease_actions import claim, get, held, hosts_wanted, make, reservation, run, run_due

ALL = [str(number) for number in range(1, 9)]


def where(climate: Climate) -> dict[str, set[int]]:
    found = {
        one.pool: {r.place.host for r in pools.hosts_of(climate, ADMIN, one.pool)}
        for one in pools.listed(climate, ADMIN)
    }
    return {str(pool): members for pool, members in found.items() if members}


def in_cloud(cloud: FakeCloud) -> dict[str, set[str]]:
    return {pool: set(names) for pool, names in cloud.pools().items() if names}


def test_hosts_go_where_an_admin_says(climate: Climate, cloud: FakeCloud) -> None:
    done = move(climate, ADMIN, RequestedMove(["h2", "1", "2"], Pool.MULTI_TENANT, "rack 7 is for all"))
    assert [(one.before.pool, one.after.pool, one.after.reason, one.lost) for one in done] == [
        (Pool.RESERVATION, Pool.MULTI_TENANT, "rack 7 is for all", [])
    ] * 2
    assert in_cloud(cloud) == {FREEPOOL: {f"h{number}" for number in range(3, 9)}}
    move(climate, ADMIN, RequestedMove(["3"], Pool.FAILED))
    back = move(climate, ADMIN, RequestedMove(["1", "3"], Pool.RESERVATION))
    assert [one.after.pool for one in back] == [Pool.RESERVATION] * 2
    assert where(climate) == {"multi-tenant": {2}, "reservation": {1, 3, 4, 5, 6, 7, 8}}
    assert in_cloud(cloud) == {FREEPOOL: {"h1", *(f"h{number}" for number in range(3, 9))}}
    assert (reconcile.correct(climate), consistency_check.differences(climate)) == (0, [])
    told = [entry.actor["user_id"] for entry in reservable.history(climate, ADMIN, "1")]
    assert told == ["admin-user"] * 3


def test_hosts_that_are_worked_on_are_in_maintenance(climate: Climate, cloud: FakeCloud) -> None:
    done = move(climate, ADMIN, RequestedMove(["1", "2"], Pool.MAINTENANCE, "new fans"))
    assert {one.after.pool for one in done} == {Pool.MAINTENANCE}
    assert in_cloud(cloud)["maintenance"] == {"h1", "h2"}
    for to in (Pool.RESERVATION, Pool.MULTI_TENANT):
        with pytest.raises(Conflict, match="end their maintenance"):
            move(climate, ADMIN, RequestedMove(["1", "3"], to))
    assert (reconcile.correct(climate), where(climate)["maintenance"]) == (0, {1, 2})
    assert move(climate, ADMIN, RequestedMove(["1"], Pool.FAILED))[0].after.pool is Pool.FAILED


def test_maintenance_is_not_planned_for_a_host_that_was_moved_meanwhile(climate: Climate) -> None:
    seen = place(climate, 1).version
    move(climate, ADMIN, RequestedMove(("1",), Pool.FAILED))
    with pytest.raises(Conflict, match="A host was moved concurrently"):
        maintenance.plan(climate, ADMIN, maintenance.WindowRequest("1", None, None, "fans", version=seen))
    assert where(climate)[Pool.FAILED] == {1}


def test_maintenance_of_many_is_planned_for_all_or_none(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, hosts_wanted(1), start=5)
    with pytest.raises(Conflict, match=str(lease.id)):
        move(climate, ADMIN, RequestedMove(ALL, Pool.MAINTENANCE, "floor"))
    assert where(climate) == {"reservation": set(range(1, 9))}
    assert make(climate, clock, hosts_wanted(8), start=50), "no window is left behind"


def test_maintenance_of_many_by_force_leaves_leases_alone_where_it_comes_to_nothing(
    climate: Climate, clock: Clock
) -> None:
    only = hosts_wanted(1, hypervisor_properties='["in", "$hypervisor_hostname", ["h1", "h2"]]')
    lease = make(climate, clock, only, start=5)
    later = maintenance.WindowRequest("8", clock.time + timedelta(hours=50), None, "fans")
    window = maintenance.plan(climate, ADMIN, later).window
    with pytest.raises(Conflict, match=str(window.id)):
        move(climate, ADMIN, RequestedMove(["1", "2", "8"], Pool.MAINTENANCE, "floor", force=True))
    assert get(climate, lease) == lease
    move(climate, ADMIN, RequestedMove(["1", "2"], Pool.MAINTENANCE, "floor", force=True))
    assert get(climate, lease).reservations[0].missing == 1, "it is not moved from one of them to the other"


def test_nothing_moves_where_it_is_already(climate: Climate, cloud: FakeCloud) -> None:
    for dry_run in (True, False):
        (one,) = move(climate, ADMIN, RequestedMove(["1"], Pool.RESERVATION), dry_run=dry_run)
        assert one == Moved(place(climate, 1), place(climate, 1))
    assert place(climate, 1).version == 1


def test_a_dry_run_says_the_same_and_changes_nothing(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=5)
    number = str(min(held(lease)))
    before, calls = consistency_check.differences(climate), len(cloud.calls)
    with pytest.raises(Conflict):
        move(climate, ADMIN, RequestedMove([number], Pool.MULTI_TENANT), dry_run=True)
    (one,) = move(climate, ADMIN, RequestedMove([number], Pool.MULTI_TENANT, force=True), dry_run=True)
    assert (one.after.pool, [lost.lease_id for lost in one.lost]) == (Pool.MULTI_TENANT, [lease.id])
    assert get(climate, lease) == lease
    assert len(cloud.calls) == calls
    assert where(climate) == {"reservation": set(range(1, 9))}
    assert before == consistency_check.differences(climate) == []


def test_a_move_that_breaks_leases_is_refused_with_all_of_them(climate: Climate, clock: Clock) -> None:
    first, second = (make(climate, clock, hosts_wanted(8), start=start) for start in (1, 5))
    with pytest.raises(Conflict) as refused:
        move(climate, ADMIN, RequestedMove(["3", "4"], Pool.MULTI_TENANT))
    said = str(refused.value)
    for lease in (first, second):
        assert said.count(str(lease.id)) == 2
    assert "lose host h3" in said
    assert "project project, from 2030-01-01 13:00:00 to 2030-01-01 15:00:00 UTC" in said
    assert where(climate) == {"reservation": set(range(1, 9))}


@pytest.mark.parametrize("to", [Pool.MULTI_TENANT, Pool.FAILED, Pool.MAINTENANCE])
def test_by_force_the_lease_gets_another_host(climate: Climate, clock: Clock, cloud: FakeCloud, to: Pool) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=0.5)
    number = min(held(lease))
    (one,) = move(climate, ADMIN, RequestedMove([str(number)], to, "smoke", force=True))
    assert one.after.pool is to
    healed = get(climate, lease)
    assert (len(held(healed)), number in held(healed), healed.degraded) == (2, False, False)
    clock.forward(hours=0.5)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE


@pytest.mark.parametrize("to", [Pool.MULTI_TENANT, Pool.RESERVATION, Pool.FAILED, Pool.MAINTENANCE])
def test_an_allocated_host_is_moved_by_force_only(climate: Climate, clock: Clock, cloud: FakeCloud, to: Pool) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=0)
    run_due(climate)
    number = min(held(lease))
    with pytest.raises(Conflict, match=f"lease {lease.id} .* would lose host h{number}"):
        move(climate, ADMIN, RequestedMove([str(number)], to))
    assert (place(climate, number).pool, reconcile.correct(climate)) == (Pool.LENT, 0)
    (one,) = move(climate, ADMIN, RequestedMove([str(number)], to, force=True))
    run_due(climate)
    after = get(climate, lease)
    assert one.after.pool is to
    assert (number in held(after), len(held(after)), after.reservations[0].resources_changed) == (False, 2, True)
    assert cloud.pools()[reservation(lease)] == {f"h{other}" for other in held(after)}
    assert {pool for pool, names in cloud.pools().items() if f"h{number}" in names} == {
        reconcile.aggregate_of(one.after)
    } - {None}
    assert (reconcile.correct(climate), consistency_check.differences(climate)) == (0, [])


def test_by_force_a_lease_without_another_host_is_degraded(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(8), start=0)
    run_due(climate)
    move(climate, ADMIN, RequestedMove(["3"], Pool.MULTI_TENANT, force=True))
    after = get(climate, lease)
    assert (after.reservations[0].missing, after.degraded, len(held(after))) == (1, True, 7)


def test_an_allocated_host_that_a_later_lease_counts_on_goes_back_to_the_pool(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(1), start=0, hours=1)
    run_due(climate)
    later = make(climate, clock, hosts_wanted(8), start=5)
    (number,) = held(lease)
    (one,) = move(climate, ADMIN, RequestedMove([str(number)], Pool.RESERVATION, force=True))
    assert [lost.lease_id for lost in one.lost] == [lease.id]
    assert held(get(climate, later)) == set(range(1, 9))


def test_a_host_with_servers_does_not_go_to_the_reservation_pool(climate: Climate, cloud: FakeCloud) -> None:
    move(climate, ADMIN, RequestedMove(["1", "2", "3"], Pool.MULTI_TENANT))
    cloud.boot("p", "h3")
    for dry_run in (True, False):
        with pytest.raises(Conflict, match=r"Host h3 cannot go to the pool reservation yet: .*servers are still on h3"):
            move(climate, ADMIN, RequestedMove(["1", "2", "3"], Pool.RESERVATION), dry_run=dry_run)
        assert where(climate)["multi-tenant"] == {1, 2, 3}
        assert not in_cloud(cloud)[FREEPOOL] & {"h1", "h2", "h3"}


def test_a_cloud_that_refuses_or_is_away_leaves_all_as_it_was(climate: Climate, cloud: FakeCloud) -> None:
    move(climate, ADMIN, RequestedMove(["1"], Pool.MULTI_TENANT))
    for error, raised in ((Refused("not yours"), Conflict), (CloudError("away"), Unavailable)):
        cloud.failures = {"place": error}
        with pytest.raises(raised):
            move(climate, ADMIN, RequestedMove(["1"], Pool.RESERVATION))
    move(climate, ADMIN, RequestedMove(["2"], Pool.MULTI_TENANT))
    assert where(climate)["multi-tenant"] == {1, 2}, "out of the pool the books go first"
    cloud.failures = {}
    assert reconcile.correct(climate) == 1
    assert not in_cloud(cloud)[FREEPOOL] & {"h1", "h2"}


def test_it_is_not_moved_while_an_event_works_on_it(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(1), start=0)
    (message,) = claim(climate)
    with pytest.raises(Busy):
        move(climate, ADMIN, RequestedMove([str(min(held(lease)))], Pool.FAILED, force=True))
    run(climate, message)
    assert get(climate, lease).status is LeaseStatus.ACTIVE


@pytest.mark.parametrize(
    ("order", "error", "said"),
    [
        (RequestedMove([], Pool.FAILED), InvalidInput, "1 to 1000 hosts"),
        (RequestedMove(["1"] * 1001, Pool.FAILED), InvalidInput, "1 to 1000 hosts"),
        (
            RequestedMove(["1"], Pool.LENT),
            InvalidInput,
            "allowed are multi-tenant, draining, reservation, maintenance, failed",
        ),
        (RequestedMove(["1"], Pool.RECYCLING), InvalidInput, "by an admin"),
        (RequestedMove(["1"], Pool.DRAINING), IllegalMove, "cannot go to draining"),
        (RequestedMove(["1"], Pool.FAILED, "x" * 256), InvalidInput, "255 characters"),
        (RequestedMove(["1", "h9", "99"], Pool.FAILED), NotFound, "'h9', '99'"),
        (RequestedMove(["9" * 40], Pool.FAILED), NotFound, "registered"),
        (RequestedMove(["1"], Pool.FAILED, source=Pool.LENT), Conflict, r"in the pool lent: h1 \(reservation\)"),
    ],
    ids=[
        "no hosts",
        "many hosts",
        "lent",
        "recycling",
        "kept already",
        "long reason",
        "unknown hosts",
        "long number",
        "elsewhere",
    ],
)
def test_what_cannot_be_is_refused(
    climate: Climate, order: RequestedMove, error: type[ClimateError], said: str
) -> None:
    for dry_run in (True, False):
        with pytest.raises(error, match=said):
            move(climate, ADMIN, order, dry_run=dry_run)
    assert place(climate, 1).version == 1


def test_members_move_nothing(climate: Climate) -> None:
    with pytest.raises(Forbidden):
        move(climate, MEMBER, RequestedMove(["1"], Pool.FAILED))


@contextmanager
def meeting(engine: Engine) -> Iterator[None]:
    """Two threads have both looked at the hosts before either of them locks one."""
    barrier, met = Barrier(2), local()

    def wait(*executed: Any) -> None:
        if "FOR NO KEY UPDATE" in executed[2] and not getattr(met, "already", False):
            met.already = True
            barrier.wait(120)

    event.listen(engine, "before_cursor_execute", wait)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", wait)


@pytest.mark.parametrize("second", [Pool.FAILED, Pool.MULTI_TENANT])
def test_of_two_admins_at_once_one_wins(climate: Climate, engine: Engine, cloud: FakeCloud, second: Pool) -> None:
    cloud.watch = None  # it would see the other's transaction
    for number in range(1, 5):
        put(climate, number, Pool.RECYCLING)
    orders = [RequestedMove(["1", "2", "3"], Pool.FAILED, "a"), RequestedMove(["3", "4"], second, "b")]
    with meeting(engine):
        results = at_once(*[lambda order=order: move(climate, ADMIN, order) for order in orders])
    (lost,) = [one for one in results if not isinstance(one, list)]
    assert isinstance(lost, Conflict)
    assert "A host was moved concurrently" in str(lost)
    reasons = [place(climate, number).reason for number in range(1, 5)]
    assert reasons in (["a", "a", "a", "by a test"], ["by a test", "by a test", "b", "b"])
    assert consistency_check.differences(climate) == []


def test_of_two_admins_at_once_one_wins_the_reservation_pool(climate: Climate, cloud: FakeCloud) -> None:
    put(climate, 1, Pool.MULTI_TENANT)
    reconcile.correct(climate)
    rival: list[object] = []

    def another(verb: str) -> None:
        if verb == "place" and not rival:
            rival.append(None)
            rival[0] = move(climate, ADMIN, RequestedMove(["1"], Pool.FAILED, "quicker"))

    cloud.watch = another
    with pytest.raises(Conflict, match="A host was moved concurrently"):
        move(climate, ADMIN, RequestedMove(["1"], Pool.RESERVATION))
    reconcile.correct(climate)
    assert (place(climate, 1).pool, in_cloud(cloud)["failed"]) == (Pool.FAILED, {"h1"})


@pytest.mark.parametrize("force", [False, True])
def test_a_booking_between_the_look_and_the_lock_is_seen(
    climate: Climate, clock: Clock, engine: Engine, cloud: FakeCloud, force: bool
) -> None:
    cloud.watch = None  # it would see the move's transaction
    made: list[Any] = []

    def book(*executed: Any) -> None:
        if "FOR NO KEY UPDATE" in executed[2] and not made:
            made.append(None)
            made.extend(at_once(lambda: make(climate, clock, hosts_wanted(8), start=5)))

    event.listen(engine, "before_cursor_execute", book)
    try:
        with pytest.raises(Busy if force else LeasesInTheWay):
            move(climate, ADMIN, RequestedMove(["3"], Pool.MULTI_TENANT, force=force))
    finally:
        event.remove(engine, "before_cursor_execute", book)
    assert (place(climate, 3).pool, 3 in held(made[1])) == (Pool.RESERVATION, True)


def test_what_is_worked_on_is_refused_before_the_cloud_is_asked(climate: Climate, cloud: FakeCloud) -> None:
    move(climate, ADMIN, RequestedMove(["1"], Pool.MAINTENANCE, "new fans"))
    before = len(cloud.calls)
    with pytest.raises(Conflict, match="end their maintenance"):
        move(climate, ADMIN, RequestedMove(["1"], Pool.RESERVATION))
    assert len(cloud.calls) == before


def test_a_booking_and_a_move_at_once_do_not_miss_each_other(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    cloud.watch = None  # it would see the other's transaction
    for turn in range(5):
        start = 10.0 * (turn + 1)
        results = at_once(
            lambda start=start: make(climate, clock, hosts_wanted(8), start=start, hours=1),
            lambda: move(climate, ADMIN, RequestedMove(["3"], Pool.MULTI_TENANT)),
        )
        booked, moved = results
        assert isinstance(booked, ClimateError) or isinstance(moved, ClimateError)
        if isinstance(moved, list):
            move(climate, ADMIN, RequestedMove(["3"], Pool.RESERVATION))
        else:
            break


def test_statements_do_not_grow_with_the_hosts(climate: Climate, engine: Engine) -> None:
    there = [
        cost(engine, lambda n=n: move(climate, ADMIN, RequestedMove(n, Pool.FAILED)))
        for n in (["1"], ["h2", "3", "4", "5"])
    ]
    back = [
        cost(engine, lambda n=n: move(climate, ADMIN, RequestedMove(n, Pool.RESERVATION)))
        for n in (["1"], ["2", "3", "4"])
    ]
    assert there[0] == there[1]
    assert back[0] == back[1]
    assert max(*there, *back) <= 19
