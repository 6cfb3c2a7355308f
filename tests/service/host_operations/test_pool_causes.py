"""The engine acts on the typed cause of a host's pool, never on the words of its reason."""

from pathlib import Path

import pytest
from sqlalchemy import text

from climate.context import Climate
from climate.domain.facts import HostMoved, PoolCause
from climate.domain.hosts.pools import Pool
from climate.power import OFF, ON
from climate.service import housekeeping
from climate.service.host_operations import evacuation, failures
from climate.service.host_operations.pool_moves import RequestedMove, move
from climate.service.hosts import reconcile
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from climate.store.hosts import pool_membership
from climate.store.journal import fact_codec
from tests.conftest import ADMIN, Clock
from tests.service.fake_power import machines
from tests.service.host_rounds import cloud as fake
from tests.service.host_rounds import pass_time, place, recover, told
from tests.service.hosts.test_reconcile import put

WORDS = ("declared well", "not cleaned: by hand", "worked on: fans")


@pytest.mark.parametrize("words", WORDS)
def test_a_host_that_an_admin_takes_out_stays_out_whatever_the_reason_says(
    climate: Climate, clock: Clock, words: str
) -> None:
    failures.fail(climate, ADMIN, "1", words)
    pass_time(climate, clock, hours=1)
    assert (place(climate, 1).pool, place(climate, 1).reason) == (Pool.FAILED, words)
    move(climate, ADMIN, RequestedMove(["2"], Pool.FAILED, words))
    pass_time(climate, clock, hours=1)
    assert place(climate, 2).pool is Pool.FAILED
    assert failures.heal(climate, ADMIN, "1").pool is Pool.RESERVATION
    assert consistency_check.differences(climate) == []


@pytest.mark.parametrize("words", WORDS)
def test_a_host_that_is_well_again_comes_back_whatever_the_cloud_had_said(
    climate: Climate, clock: Clock, words: str
) -> None:
    """A cloud hands on what its operators wrote, such as the reason why a service is disabled."""
    fake(climate).unwell["h1"] = words
    pass_time(climate, clock, seconds=climate.settings.failed_after)
    assert (place(climate, 1).pool, place(climate, 1).reason) == (Pool.FAILED, words)
    recover(climate, clock, 1)
    assert place(climate, 1).pool is Pool.RESERVATION
    assert len(told(climate, "host.recovered")) == 1


def test_a_host_taken_out_by_the_same_words_and_switched_off_stays_out(climate: Climate, clock: Clock) -> None:
    failures.fail(climate, ADMIN, "1", "declared well")
    fake(climate).unwell["h1"] = "it is off"
    pass_time(climate, clock, hours=1)
    assert place(climate, 1).pool is Pool.FAILED


@pytest.mark.parametrize(
    ("pool", "reason", "cause"),
    [
        ("failed", "declared well", "declared_well"),
        ("failed", "not cleaned: exit code 3", "not_cleaned"),
        ("maintenance", "worked on: fans", "maintenance_window"),
        ("failed", "its service is down", ""),
        ("reservation", "declared well", ""),
        ("maintenance", "not cleaned: x", ""),
    ],
)
def test_a_fact_of_an_older_release_takes_its_cause_from_its_words(pool: str, reason: str, cause: str) -> None:
    body = {"at": "2030-01-31T09:00:00+00:00", "pool": pool, "reason": reason, "token": 7}
    fact = fact_codec.decode("HostMoved", body)
    assert isinstance(fact, HostMoved)
    assert fact.cause == cause
    again = fact_codec.decode("HostMoved", {**body, "cause": ""})
    assert isinstance(again, HostMoved)
    assert again.cause == ""


def test_the_cause_is_kept_in_the_fact_and_the_row(climate: Climate, clock: Clock) -> None:
    failures.fail(climate, ADMIN, "1", "smells of smoke")
    with climate.engine.begin() as conn:
        there = pool_membership.get(conn, 1, lock=True)
        fact = HostMoved(clock.time, Pool.FAILED, "other words", there.token, cause="declared_well")
        pool_membership.record(conn, ADMIN, [(there, [fact])])
    assert place(climate, 1).cause == "declared_well"
    assert consistency_check.differences(climate) == []
    with climate.engine.begin() as conn:
        conn.exec_driver_sql("UPDATE hosts SET pool_cause = 'not_cleaned' WHERE id = 1")
    assert ["cause" in one.what for one in consistency_check.differences(climate)] == [True]
    assert rebuild(climate).left == ()
    assert place(climate, 1).cause == "declared_well"
    pass_time(climate, clock, seconds=climate.settings.failed_after)
    assert place(climate, 1).pool is Pool.RESERVATION
    assert place(climate, 1).cause == ""


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("cause", [PoolCause.OTHER, PoolCause.DECLARED_WELL, PoolCause.NOT_CLEANED])
def test_a_host_is_fenced_by_the_cause_of_its_failure_whatever_the_reason_says(
    climate: Climate, clock: Clock, tmp_path: Path, words: str, cause: PoolCause
) -> None:
    room = machines(climate, clock, tmp_path, evacuate_failed_hosts=True, evacuate_after=300)
    room.wire(1)
    put(climate, 1, Pool.MULTI_TENANT)
    reconcile.correct(climate)
    room.cloud.boot("p", "h1")
    with climate.engine.begin() as conn:
        there = pool_membership.get(conn, 1, lock=True)
        fact = HostMoved(clock.time, Pool.FAILED, words, there.token, cause=cause)
        pool_membership.record(conn, ADMIN, [(there, [fact])])
    room.cloud.unwell["h1"] = "its service is down"
    clock.forward(seconds=300)
    evacuation.run_round(room.climate)
    assert room.state(1) == (OFF if cause is PoolCause.OTHER else ON)


MOVED_BY_AN_OLDER_RELEASE = """
    WITH moved AS (
        UPDATE hosts SET pool = :pool, pool_reason = :reason, pool_since = now(), version = version + 1
        WHERE id = 1 RETURNING *)
    INSERT INTO journal (stream, version, kind, body, actor, request_id)
    SELECT stream, version, 'HostMoved', jsonb_build_object('at', pool_since, 'pool', pool, 'reason', pool_reason,
        'token', pool_token), '{}'::jsonb, '' FROM moved
"""


def _move_as_before(climate: Climate, pool: str, reason: str) -> None:
    with climate.engine.begin() as conn:
        statement = MOVED_BY_AN_OLDER_RELEASE.replace("::", "\\:\\:")
        conn.execute(text(statement), {"pool": pool, "reason": reason})


def test_upkeep_corrects_the_cause_of_a_host_that_an_older_release_moved(climate: Climate) -> None:
    for pool, reason, cause in (
        ("maintenance", "worked on: fans", "maintenance_window"),
        ("failed", "not cleaned: exit code 3", "not_cleaned"),
        ("failed", "declared well", "declared_well"),
        ("failed", "its service is down", ""),
    ):
        _move_as_before(climate, pool, reason)
        assert len(consistency_check.differences(climate)) == 1, reason  # the row keeps the cause that was there
        housekeeping.tidy(climate)
        assert (place(climate, 1).cause, consistency_check.differences(climate)) == (cause, [])


@pytest.mark.parametrize("words", WORDS)
def test_upkeep_leaves_a_cause_of_this_release_as_it_is(climate: Climate, words: str) -> None:
    failures.fail(climate, ADMIN, "1", words)
    housekeeping.tidy(climate)
    assert place(climate, 1).cause == ""
    assert consistency_check.differences(climate) == []
