"""Leases of storage: what they promise, hand over, take back and keep."""

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from climate.cloud import CloudError
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput, LimitExceeded, NotEnoughStorage, NotFound
from climate.domain.lease import Lease
from climate.domain.limits import Limit
from climate.domain.status import LeaseStatus
from climate.service import kept_volumes, storage_pools
from climate.service.admission import limits
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from climate.service.storage_pools import PoolOrder
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.lease_actions import END, get, hosts_wanted, kinds, make, run_due
from tests.service.storage_factory import amounts, pool, storage_wanted


def change(climate: Climate, lease: Lease, **spec: object) -> Lease:
    wanted = Changes(reservations=[{"id": str(lease.reservations[0].id), **spec}])
    return update.update(climate, MEMBER, lease.id, wanted)


def sizes(cloud: FakeCloud) -> list[tuple[int, int, str]]:
    return [(one.number, one.size_gb, one.backend) for one in cloud.made_volumes.values()]


def test_from_the_promise_to_the_end(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    fast = pool(climate, 100)
    lease = make(climate, clock, storage_wanted(40, volumes=2), start=1, hours=2)
    assert amounts(lease) == {fast.number: 40} == amounts(get(climate, lease))
    assert sizes(cloud) == []
    clock.forward(hours=1)
    run_due(climate)
    assert sizes(cloud) == [(1, 20, "fast"), (2, 20, "fast")]
    assert {one.project_id for one in cloud.made_volumes.values()} == {"project"}
    clock.forward(hours=2)
    run_due(climate)
    assert sizes(cloud) == []
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert cloud.doubled() == []
    assert consistency_check.differences(climate) == []


def test_a_pool_is_shared_and_never_promised_beyond_its_size(climate: Climate, clock: Clock) -> None:
    pool(climate, 100)
    first = make(climate, clock, storage_wanted(60), start=1, hours=2)
    make(climate, clock, storage_wanted(40), start=2, hours=4)
    with pytest.raises(NotEnoughStorage) as refused:
        make(climate, clock, storage_wanted(1), start=2, hours=1)
    said = "1 GB of class ssd wanted in 1 volume, 100 GB can be reserved, 0 GB of them free"
    assert str(refused.value) == (
        f"Not enough storage available: {said}; it would fit from {first.period.end:%Y-%m-%d %H:%M:%S} UTC"
    )
    make(climate, clock, storage_wanted(60), start=3, hours=1)


def test_only_what_is_promised_within_the_period_counts(climate: Climate, clock: Clock) -> None:
    pool(climate, 100)
    for start in (5, 1, 3, 4, 2):
        make(climate, clock, storage_wanted(100), start=start, hours=1)
    for start, hours in ((0.5, 1), (5.5, 9), (2, 1)):
        with pytest.raises(NotEnoughStorage):
            make(climate, clock, storage_wanted(1), start=start, hours=hours)
    make(climate, clock, storage_wanted(60), start=6, hours=4)
    make(climate, clock, storage_wanted(40), start=8, hours=4)
    make(climate, clock, storage_wanted(40), start=6, hours=1)


def test_a_refusal_names_no_start_where_nothing_would_fit(climate: Climate, clock: Clock) -> None:
    pool(climate, 100)
    for wanted in (storage_wanted(101), storage_wanted(1, storage_class="tape")):
        with pytest.raises(NotEnoughStorage, match="no later start is known to fit"):
            make(climate, clock, wanted)


def test_a_volume_lies_in_one_pool(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    one, other = pool(climate, 50, "one"), pool(climate, 50, "other")
    with pytest.raises(NotEnoughStorage):
        make(climate, clock, storage_wanted(60))
    lease = make(climate, clock, storage_wanted(60, volumes=3), start=0)
    assert amounts(lease) == {one.number: 40, other.number: 20}
    run_due(climate)
    assert sorted(sizes(cloud)) == [(1, 20, "one"), (2, 20, "one"), (3, 20, "other")]


def test_two_reservations_of_one_lease_share_what_is_free(climate: Climate, clock: Clock) -> None:
    fast = pool(climate, 100)
    with pytest.raises(NotEnoughStorage):
        make(climate, clock, storage_wanted(60), storage_wanted(60))
    lease = make(climate, clock, storage_wanted(60), storage_wanted(40), hosts_wanted(1))
    assert amounts(lease) == {fast.number: 100}
    end = lease.period.end + timedelta(hours=1)
    assert update.update(climate, MEMBER, lease.id, Changes(end=end)).period.end == end, "its own does not count twice"


def test_volumes_are_of_equal_size(climate: Climate, clock: Clock) -> None:
    pool(climate)
    with pytest.raises(InvalidInput, match="cannot be divided into 3 equal volumes of whole GB: 9 or 12 can"):
        make(climate, clock, storage_wanted(10, volumes=3))


def test_it_grows_while_it_is_active_and_never_shrinks(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    pool(climate, 100)
    lease = make(climate, clock, storage_wanted(40, volumes=2), start=0)
    run_due(climate)
    change(climate, lease, size_gb=60)
    run_due(climate)
    assert sizes(cloud) == [(1, 30, "fast"), (2, 30, "fast")]
    for refused in ({"size_gb": 40}, {"volumes": 3}, {"on_end": "keep"}):
        with pytest.raises(InvalidInput, match="while the lease is active"):
            change(climate, lease, **refused)
    with pytest.raises(Conflict, match="storage_class cannot be updated"):
        change(climate, lease, storage_class="tape")
    with pytest.raises(NotEnoughStorage, match="cannot move"):
        change(climate, lease, size_gb=120)
    assert consistency_check.differences(climate) == []


def test_before_the_start_everything_but_the_class_may_change(climate: Climate, clock: Clock) -> None:
    fast = pool(climate, 100)
    lease = make(climate, clock, storage_wanted(40))
    assert amounts(change(climate, lease, size_gb=10, volumes=5, on_end="keep")) == {fast.number: 10}
    assert consistency_check.differences(climate) == []


def test_kept_volumes_count_until_they_are_deleted(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    fast = pool(climate, 100)
    lease = make(climate, clock, storage_wanted(60, volumes=2, on_end="keep"), start=0, hours=1)
    with pytest.raises(NotEnoughStorage):
        make(climate, clock, storage_wanted(50), start=1000)
    run_due(climate)
    clock.forward(hours=1)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.TERMINATED
    assert [one.kept for one in cloud.made_volumes.values()] == [True, True]
    assert kept_volumes.release(climate) == 0
    with pytest.raises(Conflict, match="1 lease counts on it"):
        storage_pools.remove(climate, ADMIN, str(fast.id))
    leases.delete(climate, MEMBER, lease.id)
    assert [one.kept for one in cloud.made_volumes.values()] == [True, True], "a lease that is over takes nothing along"
    del cloud.made_volumes[str(lease.reservations[0].id), 1]
    assert (kept_volumes.release(climate), kept_volumes.release(climate)) == (1, 0)
    make(climate, clock, storage_wanted(70), start=1000)
    cloud.made_volumes.clear()
    assert kept_volumes.release(climate) == 1
    make(climate, clock, storage_wanted(30), start=1000)
    assert consistency_check.differences(climate) == []
    rebuild(climate)
    assert consistency_check.differences(climate) == []


def test_a_tampered_lease_keeps_no_other_from_giving_back_what_was_kept(
    climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine
) -> None:
    pool(climate, 30)
    kept = [make(climate, clock, storage_wanted(10, on_end="keep"), start=0, hours=1) for _ in range(3)]
    run_due(climate)
    clock.forward(hours=1)
    run_due(climate)
    first, *others = sorted(kept, key=lambda lease: lease.reservations[0].id)
    with engine.begin() as conn:
        conn.execute(text("UPDATE leases SET name = 'forged' WHERE id = :id"), {"id": first.id})
    cloud.made_volumes.clear()
    assert kept_volumes.release(climate) == 2
    assert [get(climate, lease).reservations[0].amounts for lease in others] == [(), ()]
    assert make(climate, clock, storage_wanted(20, volumes=2), start=1000)
    rebuild(climate)
    assert kept_volumes.release(climate) == 1


def test_nothing_is_kept_of_what_was_never_handed_over(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    pool(climate, 100)
    lease = make(climate, clock, storage_wanted(100, on_end="keep"))
    leases.delete(climate, MEMBER, lease.id)
    broken = make(climate, clock, storage_wanted(100, volumes=2, on_end="keep"), start=0)
    cloud.unheard["ensure_volume"] = 1000
    run_due(climate)
    leases.delete(climate, MEMBER, broken.id)
    run_due(climate)
    assert sizes(cloud) == []
    make(climate, clock, storage_wanted(100))


def test_a_start_waits_for_what_an_earlier_lease_has_not_given_back(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    pool(climate, 100)
    first = make(climate, clock, storage_wanted(60), start=0, hours=1)
    second = make(climate, clock, storage_wanted(60), start=1, hours=2)
    small = make(climate, clock, storage_wanted(40), start=1, hours=2)
    run_due(climate)
    cloud.failures["drop_volumes"] = CloudError("no")
    clock.forward(hours=1)
    run_due(climate)
    assert get(climate, first).event(END).status == "UNDONE"
    assert get(climate, second).status is LeaseStatus.PENDING
    assert get(climate, small).status is LeaseStatus.ACTIVE, "there is room for it beside what is late"
    cloud.failures.clear()
    clock.forward(minutes=6)
    run_due(climate)
    assert get(climate, second).status is LeaseStatus.ACTIVE
    assert cloud.doubled() == []


def test_the_limit_counts_kept_volumes(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    pool(climate, 1000)
    limits.put(climate, ADMIN, "project", {Limit.STORAGE_GB_AT_ONCE: 100})
    make(climate, clock, storage_wanted(60, on_end="keep"), start=0, hours=1)
    with pytest.raises(LimitExceeded, match=r"storage_gb_at_once of the project is 100 .*60 are in use: 41 asked for"):
        make(climate, clock, storage_wanted(41), start=0)
    run_due(climate)
    clock.forward(hours=500)
    run_due(climate)
    with pytest.raises(LimitExceeded):
        make(climate, clock, storage_wanted(41), start=1)
    make(climate, clock, storage_wanted(40), start=1)


def test_the_limit_looks_ahead_of_volumes_that_are_kept(climate: Climate, clock: Clock) -> None:
    pool(climate, 1000)
    limits.put(climate, ADMIN, "project", {Limit.STORAGE_GB_AT_ONCE: 100})
    make(climate, clock, storage_wanted(60), start=500)
    make(climate, clock, storage_wanted(60), start=1)
    with pytest.raises(LimitExceeded):
        make(climate, clock, storage_wanted(60, on_end="keep"), start=100)


def test_pools_are_registered_changed_closed_and_removed(climate: Climate, clock: Clock) -> None:
    fast = pool(climate, 100)
    with pytest.raises(NotFound, match="no storage backend 'nowhere'"):
        storage_pools.register(climate, ADMIN, PoolOrder("a", "ssd", "nowhere", 1))
    with pytest.raises(InvalidInput, match="the backend fast has 1000 GB: give at most 1000"):
        storage_pools.register(climate, ADMIN, PoolOrder("a", "ssd", "fast", 1001))
    with pytest.raises(Conflict, match="Another pool has the backend fast"):
        storage_pools.register(climate, ADMIN, PoolOrder("a", "ssd", "fast", 10))
    make(climate, clock, storage_wanted(60), start=1, hours=1)
    lease = make(climate, clock, storage_wanted(60), start=3, hours=1)
    with pytest.raises(Conflict, match="leases count on 60 GB of it at once"):
        storage_pools.change(climate, ADMIN, str(fast.id), {"capacity_gb": 59})
    with pytest.raises(Conflict, match="2 leases count on it"):
        storage_pools.remove(climate, ADMIN, str(fast.id))
    changed = storage_pools.change(climate, ADMIN, str(fast.id), {"capacity_gb": 60, "closed": True})
    assert (changed.total, changed.closed) == (60, True)
    with pytest.raises(NotEnoughStorage):
        make(climate, clock, storage_wanted(1), start=10)
    later = Changes(start=lease.period.start + timedelta(hours=1), end=lease.period.end + timedelta(hours=1))
    assert amounts(update.update(climate, MEMBER, lease.id, later)) == {fast.number: 60}, "a promise stands"
    for one in leases.listed(climate, ADMIN, leases.Listing()):
        leases.delete(climate, MEMBER, one.id)
    storage_pools.remove(climate, ADMIN, str(fast.id))
    assert storage_pools.listed(climate, ADMIN) == []
    pool(climate, 10)


def test_who_holds_how_much(climate: Climate, clock: Clock) -> None:
    fast, slow = pool(climate, 100), pool(climate, 100, "slow", "hdd")
    lease = make(climate, clock, storage_wanted(60))
    found = {known.name: held for known, held in storage_pools.allocations(climate, ADMIN)}
    assert found["slow"] == []
    (held,) = found["fast"]
    assert (held.number, held.lease_id, held.amount, held.kept) == (fast.number, lease.id, 60, False)
    assert storage_pools.allocation(climate, ADMIN, str(slow.id)) == (slow, [])


def test_the_journal_tells_what_is_kept(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    pool(climate, 100)
    lease = make(climate, clock, storage_wanted(60, volumes=2, on_end="keep"), start=0, hours=1)
    run_due(climate)
    clock.forward(hours=1)
    run_due(climate)
    key = str(lease.reservations[0].id), 1
    cloud.made_volumes[key] = replace(cloud.made_volumes[key], size_gb=99)
    del cloud.made_volumes[key[0], 2]
    assert kept_volumes.release(climate) == 0, "never more than was promised, however large a volume has become"
    del cloud.made_volumes[key]
    assert kept_volumes.release(climate) == 1
    assert kinds(climate, lease)[-1] == "KeptAmountsReleased"
    assert amounts(get(climate, lease)) == {}
