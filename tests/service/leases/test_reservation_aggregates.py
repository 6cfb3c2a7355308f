"""The pool of a reservation exists from its promise on, empty, with what was asked for as its metadata."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine

from climate.cloud import FREEPOOL, CloudError, LeasePool
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.lease import Lease
from climate.service.journal import consistency_check
from climate.service.leases import confirmation, leases, reservation_aggregates, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.store.idempotency import Key
from tests.broken_rows import SPEC_IS_A_LIST, SPEC_IS_A_TEXT, spoil
from tests.conftest import MEMBER, Clock
from tests.scenarios.test_late_workers import stand_still
from tests.scenarios.test_statement_counts import cost
from tests.service.lease_actions import get, hosts_wanted, make, reservation, run_due


def seen(climate: Climate, lease: Lease) -> LeasePool | None:
    """Its pool in the cloud."""
    return climate.cloud.lease_pools().get(reservation(lease))


def aggregate(climate: Climate, lease: Lease) -> int | None:
    return get(climate, lease).reservations[0].aggregate_id


def ordered(climate: Climate, clock: Clock, key: Key | None = None, **more: Any) -> Lease:
    start = clock.time + timedelta(hours=1)
    order = LeaseRequest("l", start, start + timedelta(hours=2), None, [hosts_wanted()], **more)
    return leases.create(climate, MEMBER, order, key)


def test_a_promise_has_its_pool_at_once(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, hosts_wanted(1, 2, resource_properties='["==", "$vcpus", "8"]'))
    pool = seen(climate, lease)
    assert pool is not None
    assert pool.wanted == {
        "lease_id": str(lease.id),
        "start_date": "2030-01-01T13:00:00Z",
        "end_date": "2030-01-01T15:00:00Z",
        "min": "1",
        "max": "2",
        "resource_properties": '["==", "$vcpus", "8"]',
    }
    assert lease.reservations[0].aggregate_id == aggregate(climate, lease) == pool.id
    assert set(cloud.pools()) == {FREEPOOL}, "nothing is lent"
    assert (reservation_aggregates.reconcile(climate), consistency_check.differences(climate)) == (0, [])


def test_it_is_the_same_when_hosts_move_in_and_none_when_they_are_back(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock)
    number = aggregate(climate, lease)
    clock.forward(hours=1)
    run_due(climate)
    assert (seen(climate, lease), aggregate(climate, lease)) == (LeasePool(number or 0, None), number)
    assert (reservation_aggregates.reconcile(climate), aggregate(climate, lease)) == (0, number)
    clock.forward(hours=2)
    run_due(climate)
    assert (seen(climate, lease), reservation_aggregates.reconcile(climate), aggregate(climate, lease)) == (
        None,
        0,
        None,
    )


def test_an_update_changes_what_is_wanted(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock)
    number = aggregate(climate, lease)
    wish = {"id": reservation(lease), "min": 2, "max": 3}
    changed = update.update(climate, MEMBER, lease.id, Changes(reservations=(wish,)))
    pool = seen(climate, lease)
    assert pool is not None
    assert pool.wanted is not None
    assert (pool.wanted["min"], pool.wanted["max"]) == ("2", "3")
    assert changed.reservations[0].aggregate_id == number == pool.id
    update.update(climate, MEMBER, lease.id, Changes(end=lease.period.end + timedelta(hours=1)))
    assert (seen(climate, lease) or pool).wanted != pool.wanted
    update.update(climate, MEMBER, lease.id, Changes(end=lease.period.end), dry_run=True)
    assert reservation_aggregates.reconcile(climate) == 0


def test_a_lease_that_is_deleted_before_its_start_has_none(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock)
    leases.delete(climate, MEMBER, lease.id, dry_run=True)
    assert seen(climate, lease) is not None
    leases.delete(climate, MEMBER, lease.id)
    assert (seen(climate, lease), reservation_aggregates.reconcile(climate)) == (None, 0)


def test_an_early_end_drops_it(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, start=0)
    run_due(climate)
    clock.forward(minutes=5)
    update.update(climate, MEMBER, lease.id, Changes(end_now=True))
    run_due(climate)
    assert (seen(climate, lease), reservation_aggregates.reconcile(climate)) == (None, 0)


def test_a_cloud_that_is_away_delays_the_pool_and_not_the_promise(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    cloud.failures = {"promise_pool": CloudError("away"), "forget_pool": CloudError("away")}
    lease, other = make(climate, clock), make(climate, clock)
    assert (lease.reservations[0].aggregate_id, reservation_aggregates.reconcile(climate)) == (None, 0)
    cloud.failures.pop("promise_pool")
    assert [reservation_aggregates.reconcile(climate), reservation_aggregates.reconcile(climate)] == [2, 0]
    assert (aggregate(climate, lease), consistency_check.differences(climate)) == (
        (seen(climate, lease) or LeasePool(0, {})).id,
        [],
    )
    leases.delete(climate, MEMBER, other.id)
    assert (seen(climate, other) is not None, reservation_aggregates.reconcile(climate)) == (True, 0)
    cloud.failures = {}
    assert [reservation_aggregates.reconcile(climate), reservation_aggregates.reconcile(climate)] == [1, 0]
    assert seen(climate, other) is None


def test_who_dies_between_the_promise_and_the_cloud_is_followed_up(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lease = make(climate, clock)
    cloud.forget_pool(reservation(lease))
    cloud.promise_pool("stray", {})
    assert [reservation_aggregates.reconcile(climate), reservation_aggregates.reconcile(climate)] == [2, 0]
    assert set(cloud.lease_pools()) == {reservation(lease)}
    assert aggregate(climate, lease) == (seen(climate, lease) or LeasePool(0, {})).id


def test_a_pool_that_is_created_while_others_are_tended_stays_known(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lacking = make(climate, clock)
    cloud.forget_pool(reservation(lacking))
    made: list[Lease] = []
    stand_still(cloud, "promise_pool", 1, lambda: made.append(make(climate, clock)))
    reservation_aggregates.reconcile(climate)
    (other,) = made
    assert aggregate(climate, other) == other.reservations[0].aggregate_id is not None


def test_a_start_that_had_no_pool_makes_one_and_its_id_is_known_later(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    cloud.failures = {"promise_pool": CloudError("away")}
    lease = make(climate, clock, start=0)
    run_due(climate)
    assert (aggregate(climate, lease), reservation_aggregates.reconcile(climate)) == (None, 0)
    assert aggregate(climate, lease) == (seen(climate, lease) or LeasePool(0, {})).id


def test_dry_runs_and_holds_have_none_until_they_are_confirmed(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    held = ordered(climate, clock, hold=timedelta(minutes=5))
    order = LeaseRequest("l", None, clock.time + timedelta(hours=1), None, [hosts_wanted()])
    leases.create(climate, MEMBER, order, dry_run=True)
    assert (reservation_aggregates.reconcile(climate), cloud.lease_pools()) == (0, {})
    assert (
        confirmation.confirm(climate, MEMBER, held.id).reservations[0].aggregate_id
        == aggregate(climate, held)
        is not None
    )


def test_a_repeated_request_makes_no_pool_of_a_lease_that_is_gone(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    key = Key("k", "f")
    lease = ordered(climate, clock, key)
    leases.delete(climate, MEMBER, lease.id)
    assert ordered(climate, clock, key).id == lease.id
    assert cloud.lease_pools() == {}


def test_long_wishes_are_cut_to_what_an_aggregate_takes(climate: Climate, clock: Clock) -> None:
    wish = '["or", ' + ", ".join(['["==", "$vcpus", "8"]'] * 40) + "]"
    lease = make(climate, clock, hosts_wanted(resource_properties=wish))
    pool = seen(climate, lease)
    assert pool is not None
    assert pool.wanted is not None
    assert pool.wanted["resource_properties"] == wish[:255]
    assert reservation_aggregates.reconcile(climate) == 0


def test_plugins_without_pools_have_none(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    room = {"resource_type": "virtual:instance", "amount": 1, "vcpus": 1, "memory_mb": 512, "disk_gb": 1}
    lease = make(climate, clock, {**room, "affinity": False, "resource_properties": ""}, hosts_wanted())
    assert set(cloud.lease_pools()) == {str(lease.reservations[1].id)}


def test_it_costs_one_statement_however_many_there_are(climate: Climate, clock: Clock, engine: Engine) -> None:
    without = replace(climate, cloud=FakeCloud())
    without.cloud.failures = {"promise_pool": CloudError("away")}  # type: ignore[attr-defined]
    free = cost(engine, lambda: make(without, clock, hosts_wanted()))
    assert cost(engine, lambda: make(climate, clock, hosts_wanted(), start=4)) == free + 1
    two = (hosts_wanted(), hosts_wanted())
    free = cost(engine, lambda: make(without, clock, *two, start=8))
    assert cost(engine, lambda: make(climate, clock, *two, start=8)) == free + 1
    reservation_aggregates.reconcile(climate)
    few = cost(engine, lambda: reservation_aggregates.reconcile(climate))
    for start in (12, 16, 20):
        make(climate, clock, hosts_wanted(2), start=start)
    assert cost(engine, lambda: reservation_aggregates.reconcile(climate)) == few


@pytest.mark.parametrize("damage", [SPEC_IS_A_LIST, SPEC_IS_A_TEXT])
def test_a_reservation_that_cannot_be_read_keeps_no_other_from_its_pool(
    climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine, damage: str
) -> None:
    bad, good, kept = (make(climate, clock) for _ in range(3))
    spoil(engine, bad.id, damage)
    cloud.forget_pool(reservation(good))
    assert reservation_aggregates.reconcile(climate) == 1
    assert seen(climate, good) is not None
    assert seen(climate, bad) is not None, "its own stays as it is"
    assert seen(climate, kept) is not None
