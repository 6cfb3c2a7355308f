"""Changes and deletion of series: what has begun stays, rivals take turns, and refusals change nothing."""

from datetime import timedelta

import pytest
from sqlalchemy import Engine

from climate.context import Climate
from climate.domain.errors import ClimateError, Conflict, InvalidInput, NotFound, OccurrencesClash, PreconditionFailed
from climate.domain.status import LeaseStatus
from climate.service.journal import consistency_check
from climate.service.leases import leases
from climate.service.series import change
from climate.service.series.change import SeriesChanges
from climate.service.series.create import Outcome
from climate.store.leases.leases import Listing
from climate.store.leases.series import SeriesListing
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.scenarios.test_races import at_once, nothing_is_promised_twice
from tests.scenarios.test_statement_counts import cost
from tests.service.lease_actions import hosts_wanted, make, rows, run_due
from tests.service.series.series_actions import leases_of, repeat

HOUR = timedelta(hours=1)


def starts(outcome: Outcome) -> list[str]:
    return [f"{one.period.start:%d %H:%M}" for one in outcome.occurrences]


def test_occurrences_that_have_begun_stay_as_they_are(climate: Climate, clock: Clock) -> None:
    outcome = repeat(climate, clock)
    clock.forward(hours=1)
    run_due(climate)
    after = change.change(climate, MEMBER, outcome.series.id, SeriesChanges(move_by=HOUR, extend_by=HOUR))
    assert starts(after) == ["01 13:00", "02 14:00", "03 14:00"]
    change.delete(climate, MEMBER, outcome.series.id)
    (left,) = leases.listed(climate, MEMBER, Listing())
    assert left.status is LeaseStatus.ACTIVE
    assert left.series_id == outcome.series.id
    with pytest.raises(NotFound):
        change.get(climate, MEMBER, outcome.series.id)
    assert consistency_check.differences(climate) == []


def test_nothing_that_could_change_is_a_conflict(climate: Climate, clock: Clock) -> None:
    outcome = repeat(climate, clock, count=1)
    clock.forward(hours=1)
    run_due(climate)
    with pytest.raises(Conflict, match="has begun"):
        change.change(climate, MEMBER, outcome.series.id, SeriesChanges(move_by=HOUR))
    with pytest.raises(Conflict, match="has begun"):
        change.delete(climate, MEMBER, outcome.series.id, leases_of(outcome)[0].id)


def test_a_series_whose_occurrences_have_all_begun_is_deleted(climate: Climate, clock: Clock) -> None:
    outcome = repeat(climate, clock, count=1)
    clock.forward(hours=1)
    run_due(climate)
    change.delete(climate, MEMBER, outcome.series.id)
    assert change.listed(climate, MEMBER, SeriesListing()) == []
    (left,) = leases.listed(climate, MEMBER, Listing())
    assert left.status is LeaseStatus.ACTIVE
    assert consistency_check.differences(climate) == []


def test_changes_that_come_at_once_take_turns(climate: Climate, clock: Clock) -> None:
    outcome = repeat(climate, clock, count=4)
    series = outcome.series.id
    results = at_once(
        *[lambda: change.change(climate, MEMBER, series, SeriesChanges(move_by=HOUR))] * 3,
        *[lambda: change.change(climate, MEMBER, series, SeriesChanges(extend_by=HOUR))] * 2,
    )
    assert all(isinstance(one, Outcome) for one in results), results
    after = change.get(climate, MEMBER, series)
    assert starts(after) == ["01 16:00", "02 16:00", "03 16:00", "04 16:00"]
    assert {one.period.end - one.period.start for one in after.occurrences} == {4 * HOUR}
    assert after.series.version == 6
    assert consistency_check.differences(climate) == []


def test_changes_for_one_version_are_made_once(climate: Climate, clock: Clock) -> None:
    series = repeat(climate, clock, count=4).series
    results = at_once(
        *[lambda: change.change(climate, MEMBER, series.id, SeriesChanges(move_by=HOUR), series.version)] * 3
    )
    assert sum(isinstance(one, Outcome) for one in results) == 1
    assert sum(isinstance(one, PreconditionFailed) for one in results) == 2
    assert starts(change.get(climate, MEMBER, series.id))[0] == "01 14:00"


def test_a_change_and_a_deletion_that_come_at_once(climate: Climate, clock: Clock) -> None:
    outcome = repeat(climate, clock, count=4)
    series, second = outcome.series.id, leases_of(outcome)[1].id
    at_once(
        lambda: change.change(climate, MEMBER, series, SeriesChanges(move_by=HOUR)),
        lambda: change.delete(climate, MEMBER, series, second),
        lambda: leases.delete(climate, MEMBER, leases_of(outcome)[3].id),
    )
    left = change.get(climate, MEMBER, series).occurrences
    assert len(left) == 1
    assert consistency_check.differences(climate) == []


def test_rivals_for_the_same_hosts(climate: Climate, clock: Clock) -> None:
    one, other = repeat(climate, clock, hosts_wanted(2)), repeat(climate, clock, hosts_wanted(2), caller=STRANGER)
    results = at_once(
        lambda: change.change(climate, MEMBER, one.series.id, SeriesChanges(move_by=HOUR)),
        lambda: change.change(climate, STRANGER, other.series.id, SeriesChanges(extend_by=2 * HOUR)),
        lambda: repeat(climate, clock, hosts_wanted(1), count=5),
    )
    assert all(isinstance(result, Outcome | ClimateError) for result in results), results
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []


def test_a_refused_change_leaves_rows_and_journal_as_they_were(climate: Climate, clock: Clock, engine: Engine) -> None:
    outcome = repeat(climate, clock, hosts_wanted(4))
    make(climate, clock, hosts_wanted(5), start=28, hours=1)
    before = rows(engine)
    with pytest.raises(OccurrencesClash) as refused:
        change.change(climate, MEMBER, outcome.series.id, SeriesChanges(extend_by=5 * HOUR))
    assert rows(engine) == before
    (named,) = refused.value.details["occurrences"]  # type: ignore[misc]
    assert named["lease_id"] == str(leases_of(outcome)[1].id)


def test_a_change_costs_a_constant_number_of_statements_for_each_occurrence(
    climate: Climate, clock: Clock, engine: Engine
) -> None:
    few, many = repeat(climate, clock, count=2).series.id, repeat(climate, clock, count=22).series.id

    def of(series: object) -> int:
        return cost(engine, lambda: change.change(climate, MEMBER, series, SeriesChanges(move_by=HOUR)))  # type: ignore[arg-type]

    assert (of(many) - of(few)) / 20 <= 10
    assert cost(engine, lambda: change.get(climate, MEMBER, many)) == 3
    gone = [cost(engine, lambda: change.delete(climate, MEMBER, one)) for one in (few, many)]  # noqa: B023
    assert (gone[1] - gone[0]) / 20 <= 6


def test_lists_are_of_the_project_and_paged(climate: Climate, clock: Clock) -> None:
    made = [repeat(climate, clock, count=2).series for _ in range(3)]
    other = repeat(climate, clock, count=1, caller=STRANGER).series
    assert change.listed(climate, MEMBER, SeriesListing()) == [(one, 2) for one in made]
    assert change.listed(climate, STRANGER, SeriesListing()) == [(other, 1)]
    assert len(change.listed(climate, ADMIN, SeriesListing())) == 4
    page = change.listed(climate, MEMBER, SeriesListing(marker=made[0].id, limit=1))
    assert [one.id for one, _ in page] == [made[1].id]
    with pytest.raises(InvalidInput, match="marker"):
        change.listed(climate, MEMBER, SeriesListing(marker=other.id))
    assert change.listed(climate, MEMBER, SeriesListing(name="other")) == []
