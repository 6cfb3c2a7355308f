"""Idle leases: two notices, and the end where the terms of the pool say so."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.domain.status import LeaseStatus
from climate.service import housekeeping
from climate.service.host_operations import pools
from climate.service.leases import leases
from climate.service.notifications import delivery
from climate.service.notifications.delivery import Listing
from climate.service.usage import round as usage
from climate.store.usage import idle_leases
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service.capacity_factory import servers
from tests.service.lease_actions import get, hosts_wanted, make, run_due
from tests.service.leases.test_broken_leases import OF_A_NEWER_RELEASE
from tests.service.subleases.steps import give, tick

MINUTES = 10
"""CLIMATE_IDLE_WARNING in these tests."""


@pytest.fixture
def watchful(climate: Climate) -> Climate:
    return replace(climate, settings=replace(climate.settings, idle_warning=MINUTES * 60))


def watch(climate: Climate, clock: Clock, minutes: int) -> None:
    """Let time pass with a round each minute."""
    for _ in range(minutes):
        clock.forward(minutes=1)
        usage.run_round(climate)
        run_due(climate)


def started(climate: Climate, clock: Clock, count: int = 2) -> Lease:
    lease = make(climate, clock, hosts_wanted(count), start=0, hours=8)
    run_due(climate)
    usage.run_round(climate)
    return lease


def notices(climate: Climate) -> Sequence[str]:
    """Return the kinds of notices about idle leases, oldest first."""
    known = [kept.notice for kept in delivery.listed(climate, MEMBER, Listing())]
    return [notice.kind for notice in known if notice.kind.startswith("lease.idle")]


def test_an_idle_lease_gets_two_notices_and_stays(watchful: Climate, clock: Clock) -> None:
    lease = started(watchful, clock)
    watch(watchful, clock, MINUTES - 1)
    assert notices(watchful) == []
    watch(watchful, clock, 2)
    assert notices(watchful) == ["lease.idle"]
    watch(watchful, clock, 5 * MINUTES)
    assert notices(watchful) == ["lease.idle", "lease.idle"]
    assert get(watchful, lease).status is LeaseStatus.ACTIVE


def test_a_pool_may_end_it_after_the_second_notice(watchful: Climate, clock: Clock) -> None:
    pools.change(watchful, ADMIN, Pool.RESERVATION, {"idle": "release"})
    lease = started(watchful, clock)
    watch(watchful, clock, 2 * MINUTES + 2)
    assert notices(watchful) == ["lease.idle", "lease.idle"]
    assert get(watchful, lease).status is LeaseStatus.ACTIVE
    watch(watchful, clock, MINUTES)
    assert notices(watchful) == ["lease.idle", "lease.idle", "lease.idle_ended"]
    assert get(watchful, lease).status is LeaseStatus.TERMINATED
    watch(watchful, clock, 2 * MINUTES)
    assert len(notices(watchful)) == 3


def test_the_count_of_a_lease_that_is_over_is_forgotten(watchful: Climate, clock: Clock, engine: Engine) -> None:
    over, runs = started(watchful, clock), started(watchful, clock)
    watch(watchful, clock, MINUTES + 1)
    leases.delete(watchful, MEMBER, over.id)
    run_due(watchful)
    housekeeping.tidy(watchful)
    with engine.connect() as conn:
        assert list(conn.scalars(text("SELECT lease_id FROM idle_leases"))) == [runs.id]


def test_a_server_on_any_host_resets_the_count(watchful: Climate, clock: Clock) -> None:
    pools.change(watchful, ADMIN, Pool.RESERVATION, {"idle": "release"})
    lease = started(watchful, clock)
    watch(watchful, clock, 2 * MINUTES + 2)
    cloud = watchful.cloud
    assert isinstance(cloud, FakeCloud)
    server = cloud.boot(MEMBER.project_id, max(cloud.pools()[str(lease.reservations[0].id)]))
    watch(watchful, clock, 5 * MINUTES)
    assert notices(watchful) == ["lease.idle", "lease.idle"]
    cloud.change(server, "SHUTOFF")
    watch(watchful, clock, MINUTES + 1)
    assert notices(watchful) == ["lease.idle", "lease.idle", "lease.idle"], "the count began anew"
    assert get(watchful, lease).status is LeaseStatus.ACTIVE


def test_time_in_which_nobody_looked_does_not_count(watchful: Climate, clock: Clock) -> None:
    started(watchful, clock)
    clock.forward(hours=2)
    watch(watchful, clock, MINUTES - 1)
    assert notices(watchful) == []
    watch(watchful, clock, 3)
    assert notices(watchful) == ["lease.idle"]


def test_shared_capacity_and_planned_leases_are_not_idle(watchful: Climate, clock: Clock) -> None:
    make(watchful, clock, servers(1), start=0, hours=8)
    make(watchful, clock, start=6, hours=8)
    run_due(watchful)
    watch(watchful, clock, 3 * MINUTES)
    assert notices(watchful) == []


def test_without_the_setting_nobody_is_warned(climate: Climate, clock: Clock) -> None:
    started(climate, clock)
    watch(climate, clock, 3 * MINUTES)
    assert notices(climate) == []


def test_a_broken_lease_keeps_no_other_from_its_notices(watchful: Climate, clock: Clock, engine: Engine) -> None:
    pools.change(watchful, ADMIN, Pool.RESERVATION, {"idle": "release"})
    bad, good = started(watchful, clock), started(watchful, clock)
    with engine.begin() as conn:
        conn.execute(text(OF_A_NEWER_RELEASE), {"lease_id": bad.id})
    watch(watchful, clock, 3 * MINUTES + 2)
    assert notices(watchful) == ["lease.idle", "lease.idle", "lease.idle_ended"]
    assert get(watchful, good).status is LeaseStatus.TERMINATED


def test_a_lease_with_open_sub_leases_is_not_idle(watchful: Climate, clock: Clock) -> None:
    pools.change(watchful, ADMIN, Pool.RESERVATION, {"idle": "release"})
    lease = started(watchful, clock)
    inner = give(watchful, clock, lease, start=4, hosts=1)
    watch(watchful, clock, 4 * MINUTES)
    assert (notices(watchful), get(watchful, lease).status) == ([], LeaseStatus.ACTIVE)
    leases.delete(watchful, STRANGER, inner.id)
    tick(watchful, clock)
    watch(watchful, clock, 3 * MINUTES)
    assert get(watchful, lease).status is LeaseStatus.TERMINATED


def test_a_lease_that_cannot_be_ended_is_put_off(watchful: Climate, clock: Clock, engine: Engine) -> None:
    pools.change(watchful, ADMIN, Pool.RESERVATION, {"idle": "release"})
    lease = started(watchful, clock)
    watch(watchful, clock, 2 * MINUTES + 2)
    with engine.begin() as conn:
        conn.execute(text("UPDATE leases SET name = 'forged' WHERE id = :id"), {"id": lease.id})
    watch(watchful, clock, MINUTES)
    with engine.connect() as conn:
        assert idle_leases.due(conn, timedelta(minutes=MINUTES), clock.time, 9, 3) == []
    watch(watchful, clock, MINUTES)
    assert (notices(watchful), get(watchful, lease).status) == (["lease.idle", "lease.idle"], LeaseStatus.ACTIVE)
