"""Creation of series: what it costs, who has the last word, rivals, and rows that the journal says."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import pytest
from sqlalchemy import Engine, text

from climate.context import Climate
from climate.domain.errors import ClimateError, Forbidden, InvalidInput, KeyReused, OccurrencesClash
from climate.domain.planning.series import Make
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from climate.service.leases import leases
from climate.service.series import change, create
from climate.service.series.create import Outcome
from climate.store.idempotency import Key
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.scenarios.test_races import at_once, nothing_is_promised_twice
from tests.scenarios.test_statement_counts import cost
from tests.service.lease_actions import hosts_wanted, make, rows
from tests.service.series.series_actions import leases_of, repeat, wanted
from tests.webhook_receiver import Exchange, Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as one:
        yield one


def asking(climate: Climate, receiver: Receiver) -> Climate:
    url = f"{receiver.url}/v1/"
    return replace(climate, settings=replace(climate.settings, enforcement_url=url, enforcement_seconds=20.0))


ALL_HOSTS = 8


def on_the_second(exchange: Exchange) -> bool:
    return bool(exchange.got.body["lease"]["start_date"].startswith("2030-01-02"))


def test_an_occurrence_costs_at_most_five_statements(climate: Climate, clock: Clock, engine: Engine) -> None:
    few = cost(engine, lambda: repeat(climate, clock, count=2))
    many = cost(engine, lambda: repeat(climate, clock, count=42))
    assert (many - few) / 40 <= 5
    assert few <= 20


def test_a_refused_occurrence_costs_no_more_in_a_long_series(climate: Climate, clock: Clock, engine: Engine) -> None:
    make(climate, clock, hosts_wanted(ALL_HOSTS), start=25, hours=1)

    def asked(count: int) -> int:
        return cost(engine, lambda: repeat(climate, clock, count=count, make=Make.FITTING))

    few = asked(2)
    assert (asked(22) - few) / 20 <= 8


def test_the_approval_service_is_asked_about_each_occurrence(
    climate: Climate, clock: Clock, receiver: Receiver
) -> None:
    outcome = repeat(asking(climate, receiver), clock)
    assert [got.path for got in receiver.got] == ["/v1/check-create"] * 3
    starts = [got.body["lease"]["start_date"][:10] for got in receiver.got]
    assert starts == ["2030-01-01", "2030-01-02", "2030-01-03"]
    assert len(leases_of(outcome)) == 3
    assert consistency_check.differences(climate) == []


def test_what_the_approval_service_refuses_does_not_fit(climate: Climate, clock: Clock, receiver: Receiver) -> None:
    asked = asking(climate, receiver)
    receiver.answer = lambda exchange: exchange.say(403 if on_the_second(exchange) else 204)
    with pytest.raises(OccurrencesClash, match="1 of 3 occurrences"):
        repeat(asked, clock)
    assert leases.listed(climate, ADMIN, Listing()) == []
    outcome = repeat(asked, clock, make=Make.FITTING)
    assert [one.lease is not None for one in outcome.occurrences] == [True, False, True]


def test_a_dry_run_asks_nobody_and_changes_nothing(
    climate: Climate, clock: Clock, receiver: Receiver, engine: Engine
) -> None:
    before = rows(engine)
    create.create(asking(climate, receiver), MEMBER, wanted(clock), dry_run=True)
    assert receiver.got == []
    assert rows(engine) == before


def test_series_that_are_asked_for_at_once_share_the_hosts(climate: Climate, clock: Clock) -> None:
    every = hosts_wanted(ALL_HOSTS)

    def ask() -> Outcome:
        return repeat(climate, clock, every, count=5, make=Make.ALL)

    results = at_once(*[ask] * 4)
    made = [one for one in results if isinstance(one, Outcome)]
    assert len(made) == 1
    assert all(isinstance(one, Outcome | ClimateError) for one in results)
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []


def test_fitting_series_that_are_asked_for_at_once_get_each_day_once(climate: Climate, clock: Clock) -> None:
    every = hosts_wanted(ALL_HOSTS)
    make(climate, clock, every, start=25, hours=1)
    at_once(*[lambda: repeat(climate, clock, every, count=6, make=Make.FITTING)] * 3)
    found = sorted(leases.listed(climate, ADMIN, Listing()), key=lambda lease: lease.period.start)
    per_day = [len(list(same)) for _, same in groupby(found, key=lambda lease: lease.period.start.date())]
    assert per_day == [1] * 6
    assert consistency_check.differences(climate) == []


def test_a_key_is_of_one_series(climate: Climate, clock: Clock) -> None:
    key = Key("k", "one")
    results = at_once(*[lambda: repeat(climate, clock, key=key)] * 3)
    made = {one.series.id for one in results if isinstance(one, Outcome)}
    assert len(made) == 1
    assert len(leases.listed(climate, ADMIN, Listing())) == 3
    assert repeat(climate, clock, key=key).series.id in made
    with pytest.raises(KeyReused):
        repeat(climate, clock, key=Key("k", "other"))
    clock.forward(days=1)
    assert repeat(climate, clock, key=key).series.id in made, "although its first date is past"


def test_rows_of_series_are_rebuilt_from_the_journal(climate: Climate, clock: Clock, engine: Engine) -> None:
    make(climate, clock, hosts_wanted(ALL_HOSTS), start=25, hours=1)
    outcome = repeat(climate, clock, make=Make.FITTING)
    for damage in (
        "UPDATE lease_series SET name = 'x', rule = 'y', skipped = '[]'",
        "DELETE FROM lease_series",
        "UPDATE leases SET series_id = NULL",
    ):
        with engine.begin() as conn:
            conn.execute(text(damage))
        assert consistency_check.differences(climate) != []
        assert rebuild(climate).left == ()
        assert consistency_check.differences(climate) == []
    again = change.get(climate, MEMBER, outcome.series.id)
    assert again.series == outcome.series
    assert [one.reason for one in again.occurrences] == [one.reason for one in outcome.occurrences]


def test_a_row_that_no_fact_knows_is_found(climate: Climate, clock: Clock, engine: Engine) -> None:
    repeat(climate, clock)
    with engine.begin() as conn:
        conn.execute(text("UPDATE lease_series SET id = gen_random_uuid()"))
    assert len(consistency_check.differences(climate)) == 2


def test_a_tampered_series_is_not_changed(climate: Climate, clock: Clock, engine: Engine) -> None:
    outcome = repeat(climate, clock)
    with engine.begin() as conn:
        conn.execute(text("UPDATE lease_series SET zone = 'Asia/Tokyo'"))
    with pytest.raises(ClimateError, match="zone"):
        change.delete(climate, MEMBER, outcome.series.id)


def test_who_may_create_a_series(climate: Climate, clock: Clock) -> None:
    with pytest.raises(Forbidden):
        repeat(climate, clock, caller=replace(STRANGER, roles=frozenset({"reader"})))
    with pytest.raises(InvalidInput, match="zone"):
        repeat(climate, clock, hosts_wanted(zone="north"))
