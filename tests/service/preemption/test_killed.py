"""A worker that is killed while it takes a host of a preemptible lease: the next one takes it, once."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, text

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.lease import Lease
from climate.domain.status import LeaseStatus
from climate.service.events import event_dispatch
from climate.service.hosts import reconcile
from climate.service.journal import consistency_check
from climate.service.leases import leases
from climate.service.preemption import round as preemption
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, Clock
from tests.scenarios.test_races import nothing_is_promised_twice
from tests.service.lease_actions import get, held, hosts_wanted, reservation, run_due
from tests.service.preemption.steps import ALL, LEAD, NOTICE, ordinary, spare, tick, told

SPARED = 100
"""More commits or verbs than a round has."""


class Killed(BaseException):
    """Nothing is tidied up behind it, as behind a process that is killed."""


@contextmanager
def killed(climate: Climate, cloud: FakeCloud, where: str, number: int) -> Iterator[list[str]]:
    """Kill whoever works at its so-many-th commit, or when the cloud is asked so many times."""
    left, reached = [number], list[str]()

    def count(*happened: Any) -> None:
        reached.append(where)
        left[0] -= 1
        if left[0] < 0:
            if where == "commit":
                happened[0].invalidate()  # the database hears no more of it
            raise Killed

    if where == "verb":
        before, cloud.watch = cloud.watch, count
    else:
        event.listen(climate.engine, "commit", count)
    try:
        yield reached
    except Killed:
        pass
    finally:
        if where == "verb":
            cloud.watch = before
        else:
            event.remove(climate.engine, "commit", count)


def about_to_lose(climate: Climate, clock: Clock, least: int) -> tuple[Lease, Lease]:
    """A preemptible lease that runs on all hosts, of which one is taken now, and the lease that needs it."""
    lease = spare(climate, clock, least, ALL)
    run_due(climate)
    other = ordinary(climate, clock, start=1)
    tick(climate, clock, other.period.start - LEAD - NOTICE)
    clock.time = other.period.start - LEAD
    return lease, other


def recovered(climate: Climate, clock: Clock, cloud: FakeCloud, lease: Lease, other: Lease) -> None:
    """Rounds and workers as they should be: the host is with the one that needs it, and with nobody else."""
    reconcile.correct(climate)
    tick(climate, clock, other.period.start + timedelta(minutes=2))
    after, needs = get(climate, lease), get(climate, other)
    assert needs.status is LeaseStatus.ACTIVE
    assert after.status is LeaseStatus.TERMINATED or not held(after) & held(needs)
    (host,) = held(needs)
    in_pools = [pool for pool, hosts in cloud.pools().items() if f"h{host}" in hosts]
    assert in_pools == [reservation(needs)]
    assert told(climate, lease).count("lease.preempted") == 1, "taken once, and told once"
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []
    with climate.engine.connect() as conn:
        assert conn.scalar(text("SELECT count(*) FROM claims")) == 0
        held_by_gone = """
            SELECT count(*) FROM allocations a JOIN reservations r ON r.id = a.reservation_id
            JOIN leases l ON l.id = r.lease_id WHERE a.state <> 'released' AND l.status = 'TERMINATED'
        """
        assert conn.scalar(text(held_by_gone)) == 0


@pytest.mark.parametrize("least", [1, ALL], ids=["loses one", "ends"])
@pytest.mark.parametrize(("where", "number"), [("commit", 0), ("commit", 1), ("verb", 0), ("verb", 1)])
def test_the_next_round_goes_on(
    climate: Climate, clock: Clock, cloud: FakeCloud, least: int, where: str, number: int
) -> None:
    lease, other = about_to_lose(climate, clock, least)
    with killed(climate, cloud, where, number) as reached:
        preemption.run_round(climate)
    assert reached or (where == "verb" and least == ALL), "nothing was to be done"
    recovered(climate, clock, cloud, lease, other)


@pytest.mark.parametrize(("where", "number"), [("commit", 0), ("commit", 1), ("commit", 2), ("verb", 0), ("verb", 1)])
def test_so_does_the_next_worker_that_ends_the_lease(
    climate: Climate, clock: Clock, cloud: FakeCloud, where: str, number: int
) -> None:
    lease, other = about_to_lose(climate, clock, ALL)
    preemption.run_round(climate)
    with killed(climate, cloud, where, number) as reached:
        run_due(climate)
    assert reached
    clock.forward(seconds=climate.settings.claim_seconds + 1)
    event_dispatch.rescue(climate, "poller")
    clock.forward(minutes=3)
    recovered(climate, clock, cloud, lease, other)


@pytest.mark.parametrize("number", range(3))
def test_who_is_killed_while_it_decides_has_taken_all_or_nothing(
    climate: Climate, clock: Clock, cloud: FakeCloud, number: int
) -> None:
    lease = spare(climate, clock, 1, ALL)
    run_due(climate)
    before = get(climate, lease)
    with killed(climate, cloud, "commit", number):
        ordinary(climate, clock, hosts_wanted(2), start=1)
    is_there = any(one.name == "ordinary" for one in leases.listed(climate, ADMIN, Listing()))
    assert is_there is (number > 0)
    assert len(get(climate, lease).reservations[0].preemptions) == (2 if is_there else 0)
    assert is_there or get(climate, lease) == before
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []


@pytest.mark.parametrize("least", [1, ALL])
def test_rounds_without_a_kill_end_the_same(climate: Climate, clock: Clock, cloud: FakeCloud, least: int) -> None:
    lease, other = about_to_lose(climate, clock, least)
    with killed(climate, cloud, "commit", SPARED):
        preemption.run_round(climate)
    recovered(climate, clock, cloud, lease, other)
