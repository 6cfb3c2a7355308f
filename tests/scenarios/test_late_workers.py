"""A worker that stood still, and was taken for dead, can spoil nothing when it goes on."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from climate.cloud import RESERVED
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import NotFound
from climate.domain.lease import Lease
from climate.domain.status import IN_PROGRESS, UNDONE, LeaseStatus
from climate.service.host_operations import cleaning
from climate.service.leases import lease_servers, leases
from climate.store.leases.event_claims import Message
from tests.conftest import MEMBER, Clock
from tests.service import lease_actions
from tests.service.lease_actions import START, claim, get, hosts_wanted, lost, make, reservation, run, run_due


@pytest.fixture
def lease(climate: Climate, clock: Clock) -> Lease:
    """A lease of two hosts whose start is due."""
    made = make(climate, clock, hosts_wanted(2))
    clock.forward(hours=1)
    return made


def stand_still(cloud: FakeCloud, verb: str, turn: int, meanwhile: Callable[[], object]) -> None:
    """Let something happen when the cloud is asked for a verb the `turn`th time, before it hears of it."""
    watch, asked = cloud.watch, iter(range(1, 1000))
    assert watch

    def look(name: str) -> None:
        watch(name)
        if name == verb and next(asked) == turn:
            meanwhile()

    cloud.watch = look


def taken_over(climate: Climate, clock: Clock) -> Message:
    """The event is given to another worker, which has not begun yet."""
    lost(climate, clock)
    (message,) = claim(climate)
    return message


def test_what_the_late_worker_says_is_not_recorded(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    def work_for_it() -> None:
        lost(climate, clock)
        run_due(climate)

    stand_still(cloud, "lend", 1, work_for_it)
    (old,) = claim(climate)
    run(climate, old)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert lease_actions.kinds(climate, lease).count("EventFinished") == 1
    assert cloud.effects["lend", reservation(lease), old.token] == 0, "the cloud refuses the lower token"


def test_a_late_worker_cannot_lend_what_was_given_up(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    def give_up() -> None:
        lost(climate, clock)
        leases.delete(climate, MEMBER, lease.id)
        run_due(climate)

    stand_still(cloud, "lend", 1, give_up)
    (old,) = claim(climate)
    run(climate, old)
    assert set(cloud.pools()) == {"freepool"}
    with pytest.raises(NotFound):
        get(climate, lease)


def test_what_the_late_worker_says_while_another_is_at_it_is_not_recorded(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    params = {"end": (clock.time + timedelta(hours=1)).isoformat()}

    def asleep(server_id: str) -> None:
        cloud.boot("project", status=RESERVED, server_id=server_id)

    made = lease_servers.reserve(climate, MEMBER, params, asleep)
    other: list[Message] = []
    stand_still(cloud, "server", 2, lambda: other.append(taken_over(climate, clock)))
    (old,) = claim(climate)
    run(climate, old)
    start = lease_actions.event(climate, made, START)
    assert (start.status, start.token) == (IN_PROGRESS, other[0].token)
    run(climate, other[0])
    assert get(climate, made).status is LeaseStatus.ACTIVE


def test_a_worker_that_lost_its_event_asks_for_nothing_more(
    climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease
) -> None:
    run_due(climate)
    cloud.boot("project", min(cloud.pools()[reservation(lease)]))
    clock.time = lease.period.end
    other: list[Message] = []
    stand_still(cloud, "servers_in", 1, lambda: other.append(taken_over(climate, clock)))
    (old,) = claim(climate)
    run(climate, old)
    assert ("close", reservation(lease)) not in cloud.calls
    run(climate, other[0])
    assert get(climate, lease).status is LeaseStatus.TERMINATED


def test_a_round_that_moves_a_host_after_the_claim_delays_its_start_for_a_moment_only(
    cleaned: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    """The cloud knows the host under a later token than the start's then, though nobody took the start away."""
    make(cleaned, clock, hosts_wanted(8), start=0, hours=1)
    run_due(cleaned)
    following = make(cleaned, clock, hosts_wanted(8), start=1 + 1 / 6)
    clock.forward(hours=1)
    run_due(cleaned)
    clock.forward(minutes=10)
    (message,) = claim(cleaned)
    assert cleaning.run_round(cleaned) == 8
    run(cleaned, message)
    start = lease_actions.event(cleaned, following, START)
    assert (start.status, start.attempts, start.reason) == (UNDONE, 0, "a later claim changed one of its resources")
    clock.forward(seconds=1)
    run_due(cleaned)
    assert get(cleaned, following).status is LeaseStatus.ACTIVE
