"""Series take hosts of preemptible leases as single leases do, and no more than they need."""

from datetime import timedelta

import pytest

from climate.context import Climate
from climate.domain.errors import OccurrencesClash
from climate.domain.planning.series import Make
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from climate.service.series import change, create
from climate.service.series.change import SeriesChanges
from climate.store.idempotency import Key
from tests.conftest import MEMBER, STRANGER, Clock
from tests.scenarios.test_races import at_once, nothing_is_promised_twice
from tests.service.lease_actions import get, held, hosts_wanted, rows
from tests.service.preemption.steps import ALL, ends, ordinary, spare, told
from tests.service.series.series_actions import leases_of, repeat, wanted

DAY = timedelta(days=1)


def is_whole(climate: Climate) -> None:
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []
    assert rebuild(climate).left == ()


def test_each_occurrence_takes_what_it_lacks(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, 1, ALL, hours=100)
    outcome = repeat(climate, clock, hosts_wanted(2), caller=STRANGER)
    assert [len(held(one)) for one in leases_of(outcome)] == [2, 2, 2]
    assert len(ends(get(climate, lease))) == ALL
    assert told(climate, lease)[0] == "lease.preemption_planned"
    is_whole(climate)


def test_free_hosts_are_taken_first(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, 6, hours=100)
    before = get(climate, lease)
    assert len(leases_of(repeat(climate, clock, hosts_wanted(2), caller=STRANGER))) == 3
    assert get(climate, lease) == before
    assert len(leases_of(repeat(climate, clock, hosts_wanted(1), caller=STRANGER, count=1))) == 1
    assert len(get(climate, lease).reservations[0].preemptions) == 1
    is_whole(climate)


def test_an_occurrence_may_end_the_whole_preemptible_lease_and_the_next_finds_it_gone(
    climate: Climate, clock: Clock
) -> None:
    lease = spare(climate, clock, ALL, start=1, hours=100)
    outcome = repeat(climate, clock, hosts_wanted(3), caller=STRANGER, count=5)
    assert len(leases_of(outcome)) == 5
    assert get(climate, lease).status == "TERMINATED"
    is_whole(climate)


def test_what_an_ordinary_lease_holds_is_still_a_clash(climate: Climate, clock: Clock) -> None:
    ordinary(climate, clock, hosts_wanted(1), start=25)
    lease = spare(climate, clock, 7, hours=100)
    before = get(climate, lease)
    with pytest.raises(OccurrencesClash, match="1 of 3 occurrences"):
        repeat(climate, clock, hosts_wanted(ALL), caller=STRANGER)
    assert get(climate, lease) == before
    outcome = repeat(climate, clock, hosts_wanted(ALL), caller=STRANGER, make=Make.FITTING)
    assert [one.lease is not None for one in outcome.occurrences] == [True, False, True]
    is_whole(climate)


def test_a_preemptible_series_takes_nothing(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, ALL, hours=30)
    before = get(climate, lease)
    with pytest.raises(OccurrencesClash, match="2 of 3 occurrences"):
        repeat(climate, clock, hosts_wanted(1, preemptible=True), caller=STRANGER)
    outcome = repeat(climate, clock, hosts_wanted(1, preemptible=True), caller=STRANGER, make=Make.FITTING)
    moved = change.change(climate, STRANGER, outcome.series.id, SeriesChanges(move_by=-timedelta(minutes=1)))
    assert len(leases_of(moved)) == 1
    assert get(climate, lease) == before
    is_whole(climate)


def test_a_dry_run_counts_their_hosts_and_takes_none(climate: Climate, clock: Clock) -> None:
    spare(climate, clock, ALL, hours=100)
    before = rows(climate.engine)
    order = wanted(clock, hosts_wanted(ALL))
    outcome = create.create(climate, STRANGER, order, dry_run=True)
    assert all(one.lease for one in outcome.occurrences)
    assert rows(climate.engine) == before


def test_a_range_gets_as_many_as_without_preemptible_leases(climate: Climate, clock: Clock) -> None:
    spare(climate, clock, 1, 5, hours=100)
    outcome = repeat(climate, clock, hosts_wanted(1, 6), caller=STRANGER)
    assert [len(held(one)) for one in leases_of(outcome)] == [6, 6, 6]
    is_whole(climate)


def test_occurrences_that_move_take_them_too(climate: Climate, clock: Clock) -> None:
    outcome = repeat(climate, clock, hosts_wanted(2), caller=STRANGER)
    lease = spare(climate, clock, ALL, start=96, hours=100)
    ordinary(climate, clock, hosts_wanted(1), start=200)
    after = change.change(climate, STRANGER, outcome.series.id, SeriesChanges(move_by=4 * DAY))
    assert [len(held(one)) for one in leases_of(after)] == [2, 2, 2]
    assert len(get(climate, lease).reservations[0].preemptions) >= 2
    is_whole(climate)


def test_occurrences_that_get_longer_take_them_too(climate: Climate, clock: Clock) -> None:
    outcome = repeat(climate, clock, hosts_wanted(ALL - 1), caller=STRANGER)
    leases = [spare(climate, clock, 2, start=3 + 24 * day, hours=20) for day in range(3)]
    after = change.change(climate, STRANGER, outcome.series.id, SeriesChanges(extend_by=timedelta(hours=2)))
    assert [len(held(one)) for one in leases_of(after)] == [ALL - 1] * 3
    assert {get(climate, one).status for one in leases} == {"TERMINATED"}
    is_whole(climate)


def test_series_and_preemptible_leases_at_once(climate: Climate, clock: Clock) -> None:
    spare(climate, clock, 1, 6, hours=60)
    acts = [lambda: repeat(climate, clock, hosts_wanted(2), caller=STRANGER) for _ in range(3)]
    acts += [lambda: repeat(climate, clock, hosts_wanted(1), caller=MEMBER, make=Make.FITTING) for _ in range(2)]
    acts += [lambda: spare(climate, clock, start=20, hours=20) for _ in range(3)]
    at_once(*acts)
    is_whole(climate)


def test_a_repeated_request_takes_nothing_again(climate: Climate, clock: Clock) -> None:
    spare(climate, clock, ALL, hours=100)
    key = Key("k", "f")
    first = repeat(climate, clock, hosts_wanted(2), caller=STRANGER, key=key)
    before = rows(climate.engine)
    assert repeat(climate, clock, hosts_wanted(2), caller=STRANGER, key=key) == first
    assert rows(climate.engine) == before
