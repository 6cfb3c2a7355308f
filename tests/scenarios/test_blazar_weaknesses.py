"""What the peer gets wrong with whole hosts (reservation.md 6.1), and how it is here."""

from datetime import timedelta

import pytest

from climate.cloud import Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict, NotEnoughHosts
from climate.domain.status import ERROR, LeaseStatus, ReservationStatus
from climate.service.journal import consistency_check
from climate.service.leases import update
from climate.service.leases.update import Changes
from tests.conftest import MEMBER, Clock
from tests.service.conftest import CLEANING
from tests.service.host_operations.test_recycling import following, in_cloud, pool_of
from tests.service.lease_actions import START, event, get, held, hosts_wanted, make, run_due


@pytest.mark.parametrize("grace", [0, 300])
def test_w10_prolonging_leaves_as_much_time_for_cleaning_as_creating(
    cleaned: Climate, clock: Clock, grace: int
) -> None:
    """There a gap of nothing is accepted where a new lease must leave an hour."""
    gap = CLEANING + timedelta(seconds=grace)
    lease = make(cleaned, clock, hosts_wanted(1, grace_period=grace), start=0, hours=1)
    (number,) = held(lease)
    after = following(cleaned, clock, number, minutes=180)
    run_due(cleaned)
    latest = after.period.start - gap
    with pytest.raises(Conflict, match=f"can last until {latest:%Y-%m-%d %H:%M:%S} UTC at most"):
        update.update(cleaned, MEMBER, lease.id, Changes(end=latest + timedelta(seconds=1)))
    longer = update.update(cleaned, MEMBER, lease.id, Changes(end=latest))
    assert {hold.during.end for hold in longer.reservations[0].holds} == {after.period.start}
    with pytest.raises(NotEnoughHosts):
        following(cleaned, clock, number, minutes=240 + 9)


def test_w12_a_lease_whose_start_failed_is_terminated_at_its_end(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    """There its reservation goes from deleted to error, and the lease is never over."""
    lease = make(climate, clock, start=0, hours=1)
    cloud.failures["lend"] = Refused("no such project")
    run_due(climate)
    failed = get(climate, lease)
    assert (failed.status, failed.reservation_status) == (LeaseStatus.ERROR, ReservationStatus.ERROR)
    cloud.failures.clear()
    clock.forward(hours=1)
    run_due(climate)
    over = get(climate, lease)
    assert (over.status, over.reservation_status) == (LeaseStatus.TERMINATED, ReservationStatus.DELETED)
    assert event(climate, lease, START).status is ERROR, "what went wrong is still to be read"
    (number,) = held(lease)
    assert (pool_of(climate, number), in_cloud(cloud, number)) == ("reservation", "freepool")
    assert consistency_check.differences(climate) == []


def test_w15_as_many_hosts_as_are_free_up_to_max(climate: Climate, clock: Clock) -> None:
    """There hosts that have a lease at any other time are left out: min 1, max 4 on 4 free hosts gave 2."""
    make(climate, clock, hosts_wanted(2), start=48, hours=2)
    lease = make(climate, clock, hosts_wanted(1, 8), start=1, hours=2)
    assert len(held(lease)) == 8
    longer = update.update(climate, MEMBER, lease.id, Changes(end=lease.period.end + timedelta(hours=1)))
    assert held(longer) == held(lease)
