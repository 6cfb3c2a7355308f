"""Series that were deleted long ago move to files behind their leases, wherever a run is killed."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import NotFound
from climate.service.journal import archives, consistency_check
from climate.service.journal.archives import Outcome, Sizes
from climate.service.leases import leases
from climate.service.series import change
from climate.store.journal import archives as stored
from tests.conftest import MEMBER, Clock
from tests.service.lease_actions import run_due
from tests.service.series.series_actions import leases_of, repeat

YEAR = timedelta(days=365)
LEFT = text("""
    SELECT (SELECT count(*) FROM lease_series), (SELECT count(*) FROM leases),
        (SELECT count(*) FROM journal WHERE kind LIKE 'Series%')
""")
STEPS = ("begun", "a block written", "written", "known", "rows deleted", "done")


class Killed(BaseException):
    """Nothing is tidied up behind it, as behind a process that is killed."""


@pytest.fixture
def kept(climate: Climate, tmp_path: Path) -> Climate:
    return replace(climate, settings=replace(climate.settings, archive_dir=str(tmp_path / "archives")))


def archived(climate: Climate, step: Callable[[str], None] = lambda done: None) -> Outcome:
    return archives.archive(climate, YEAR, Sizes(file=2, block=1, deleted=1), step)


def left(engine: Engine) -> tuple[int, ...]:
    """Series, leases, and facts of series in the tables."""
    with reading(engine) as conn:
        return tuple(conn.execute(LEFT).one())


def test_a_deleted_series_is_archived_behind_its_leases(kept: Climate, clock: Clock, engine: Engine) -> None:
    gone, stays = repeat(kept, clock), repeat(kept, clock)
    change.delete(kept, MEMBER, gone.series.id)
    run_due(kept)
    clock.forward(days=400)
    outcome = archived(kept)
    assert (outcome.leases, outcome.series, outcome.files, outcome.kept) == (3, 1, 3, 0)
    assert left(engine) == (1, 3, 1)
    assert change.get(kept, MEMBER, stays.series.id).series == stays.series
    assert leases.history(kept, MEMBER, leases_of(gone)[0].id)[0].version == 1
    assert consistency_check.differences(kept) == []
    assert archived(kept).series == 0


def test_a_series_stays_while_one_of_its_leases_does(kept: Climate, clock: Clock, engine: Engine) -> None:
    outcome = repeat(kept, clock, count=2)
    clock.forward(hours=1)
    run_due(kept)
    change.delete(kept, MEMBER, outcome.series.id)
    clock.forward(days=400)
    run_due(kept)
    done = archived(kept)
    assert (done.leases, done.series, done.kept) == (1, 0, 1)
    assert left(engine) == (1, 1, 2)
    leases.delete(kept, MEMBER, leases_of(outcome)[0].id)
    run_due(kept)
    clock.forward(days=400)
    assert archived(kept).series == 1
    assert left(engine) == (0, 0, 0)
    with pytest.raises(NotFound):
        change.get(kept, MEMBER, outcome.series.id)


@pytest.mark.parametrize("kind", STEPS)
def test_a_run_that_is_killed_is_continued(kept: Climate, clock: Clock, engine: Engine, kind: str) -> None:
    for _ in range(2):
        change.delete(kept, MEMBER, repeat(kept, clock, count=1).series.id)
    clock.forward(days=400)
    made = Counter[str]()

    def kill(done: str) -> None:
        made[done] += 1
        if done == kind and made["begun"] == 2:  # the second file is that of the series
            raise Killed

    with pytest.raises(Killed):
        archived(kept, kill)
    assert consistency_check.differences(kept) == []
    archived(kept)
    assert left(engine) == (0, 0, 0)
    assert consistency_check.differences(kept) == []
    with reading(engine) as conn:
        assert sum(one.leases for one in stored.complete(conn)) == 4
        assert {one.state for one in stored.complete(conn)} == {"done"}


def test_a_series_that_only_its_row_calls_gone_stays(kept: Climate, clock: Clock, engine: Engine) -> None:
    outcome = repeat(kept, clock, count=1)
    leases.delete(kept, MEMBER, leases_of(outcome)[0].id)
    with engine.begin() as conn:
        conn.execute(text("UPDATE lease_series SET gone = true, updated_at = created_at"))
    clock.forward(days=400)
    done = archived(kept)
    assert (done.leases, done.series, done.kept) == (1, 0, 1)
    assert left(engine) == (1, 0, 1)
