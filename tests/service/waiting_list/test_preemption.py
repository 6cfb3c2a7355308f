"""Leases of the waiting list get hosts of preemptible leases as new leases do."""

from dataclasses import replace
from datetime import timedelta

from climate.context import Climate
from climate.service.leases import leases
from climate.service.waiting_list import round as waiting_round
from tests.conftest import MEMBER, STRANGER, Clock
from tests.scenarios.test_races import at_once, nothing_is_promised_twice
from tests.service.lease_actions import get, held, hosts_wanted, make
from tests.service.preemption.steps import ALL, ordinary, spare, told
from tests.service.waiting_list.test_entries import queue, story_is_whole


def test_a_grant_takes_hosts_of_preemptible_leases(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(5), hours=20)
    lease = spare(climate, clock, 3, hours=20)
    waits = queue(climate, clock, hosts_wanted(6), caller=STRANGER)
    assert waits.waits
    leases.delete(climate, MEMBER, blocker.id)
    assert waiting_round.run_round(climate) == [waits.id]
    assert len(held(get(climate, waits))) == 6
    assert len(get(climate, lease).reservations[0].preemptions) == 1
    assert told(climate, lease) == ["lease.preemption_planned"]
    assert nothing_is_promised_twice(climate)
    story_is_whole(climate)


def test_what_a_preemptible_lease_took_meanwhile_is_no_reason_to_wait(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL), hours=20)
    waits = queue(climate, clock, hosts_wanted(ALL), caller=STRANGER)
    leases.delete(climate, MEMBER, blocker.id)
    lease = spare(climate, clock, ALL, start=0.5, hours=20)
    assert waiting_round.run_round(climate) == [waits.id]
    assert get(climate, lease).reservations[0].preemptions
    story_is_whole(climate)


def test_a_grant_of_enough_free_hosts_takes_none(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(5), hours=20)
    lease = spare(climate, clock, 3, hours=20)
    before = get(climate, lease)
    waits = queue(climate, clock, hosts_wanted(4), caller=STRANGER)
    leases.delete(climate, MEMBER, blocker.id)
    assert waiting_round.run_round(climate) == [waits.id]
    assert get(climate, lease) == before
    story_is_whole(climate)


def test_a_preemptible_lease_that_waits_takes_none(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(3), hours=20)
    lease = spare(climate, clock, 5, hours=20)
    before = get(climate, lease)
    waits = queue(climate, clock, hosts_wanted(4, preemptible=True), caller=STRANGER)
    assert waits.waits
    leases.delete(climate, MEMBER, blocker.id)
    assert waiting_round.run_round(climate) == []
    assert get(climate, lease) == before
    leases.delete(climate, MEMBER, lease.id)
    assert waiting_round.run_round(climate) == [waits.id]
    story_is_whole(climate)


def test_a_promise_of_a_later_period_takes_them_too(climate: Climate, clock: Clock) -> None:
    patient = replace(climate, settings=replace(climate.settings, waiting_patience=0))
    make(climate, clock, hosts_wanted(ALL), hours=4)
    waits = queue(climate, clock, hosts_wanted(ALL), start=None, until=30, caller=STRANGER)
    lease = spare(climate, clock, 1, start=6, hours=20)
    clock.forward(minutes=2)
    assert waiting_round.run_round(patient) == [waits.id]
    got = get(climate, waits)
    assert got.period.start - clock.time < timedelta(hours=6)
    assert len(held(got)) == ALL
    assert get(climate, lease).status == "TERMINATED"
    assert nothing_is_promised_twice(climate)
    story_is_whole(climate)


def test_grants_and_preemptible_leases_at_once(climate: Climate, clock: Clock) -> None:
    blocker = make(climate, clock, hosts_wanted(ALL), hours=20)
    waits = [queue(climate, clock, hosts_wanted(2), caller=STRANGER) for _ in range(3)]
    leases.delete(climate, MEMBER, blocker.id)
    at_once(
        *[lambda: waiting_round.run_round(climate)] * 4,
        *[lambda: spare(climate, clock, 1, 3, hours=20)] * 4,
        *[lambda: ordinary(climate, clock, start=1)] * 2,
    )
    waiting_round.run_round(climate)
    assert all(len(held(get(climate, one))) == 2 for one in waits)
    assert nothing_is_promised_twice(climate)
    story_is_whole(climate)
