"""The comparison of rows with the journal goes on from run to run, within bounds."""

from datetime import timedelta

from sqlalchemy import Engine, text

from climate.context import Climate
from climate.service.journal import background_check
from climate.service.journal.background_check import Bounds
from climate.service.journal.rebuild import rebuild
from tests.conftest import Clock
from tests.service.lease_actions import make

ONE_FACT = Bounds(facts=1)


def forge(engine: Engine, statement: str = "UPDATE leases SET degraded = true") -> None:
    with engine.begin() as conn:
        assert conn.execute(text(statement)).rowcount


def test_a_pass_goes_on_where_the_last_run_stopped(climate: Climate, clock: Clock) -> None:
    for _ in range(4):
        make(climate, clock)
    began, streams = clock.time, []
    for _ in range(6):  # eight hosts and four leases, two at a time
        clock.forward(minutes=1)
        streams.append(background_check.check_portion(climate, ONE_FACT, size=2).progress.streams)
    assert streams == [2, 4, 6, 8, 10, 12]
    clock.forward(minutes=1)
    done = background_check.check_portion(climate, ONE_FACT, size=2).progress
    assert (done.streams, done.whole_since, done.began_at) == (0, began + timedelta(minutes=1), clock.time)


def test_a_run_without_much_to_do_is_a_whole_pass(climate: Climate, clock: Clock) -> None:
    make(climate, clock)
    checked = background_check.check_portion(climate)
    assert (checked.differing, checked.progress.whole_since) == (0, clock.time)


def test_a_run_reads_no_more_than_its_bounds(climate: Climate, clock: Clock) -> None:
    for _ in range(6):
        make(climate, clock)
    assert background_check.check_portion(climate, ONE_FACT, size=2).progress.streams == 2
    assert background_check.check_portion(climate, Bounds(time=timedelta(0)), size=2).progress.streams == 4
    assert background_check.check_portion(climate, Bounds(facts=3), size=2).progress.streams == 8


def test_what_was_found_is_reported_until_it_is_mended(climate: Climate, clock: Clock, engine: Engine) -> None:
    lease = make(climate, clock)
    forge(engine)
    found = background_check.check_portion(climate)
    assert (found.differing, str(lease.id) in found.first) == (1, True)
    assert "leases id=" in found.first
    assert "degraded: rows say True, facts say False" in found.first
    assert background_check.check_portion(climate, ONE_FACT, size=1).differing == 1, (
        "told also while others are looked at"
    )
    rebuild(climate)
    assert background_check.check_portion(climate, ONE_FACT, size=1).differing == 0


def test_a_row_without_journal_is_reported_until_it_is_gone(climate: Climate, engine: Engine) -> None:
    forge(engine, "INSERT INTO limits VALUES ('third', 'leases', 1, now())")
    assert background_check.check_portion(climate).differing == 1
    assert background_check.check_portion(climate, ONE_FACT, size=1).differing == 1
    rebuild(climate)
    assert background_check.check_portion(climate).differing == 0
