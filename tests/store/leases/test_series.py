"""Rows of series: written with their facts, read back whole, and not found where they are not."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import Engine, text

from climate.domain.errors import NotFound, Tampered
from climate.domain.period import Period
from climate.domain.planning.series import SeriesChanged, SeriesCreated, SeriesDeleted, Skipped, fold
from climate.store.journal import journal
from climate.store.leases import series as stored
from tests.conftest import MEMBER

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
PERIOD = Period(NOW, NOW + timedelta(hours=1))


def made() -> SeriesCreated:
    skipped = (Skipped(PERIOD, "none is free"),)
    return SeriesCreated(
        uuid4(), NOW, "s", MEMBER.project_id, MEMBER.user_id, "FREQ=DAILY;COUNT=2", "UTC", PERIOD, "fitting", skipped
    )


def test_rows_are_the_fold_of_the_facts(engine: Engine) -> None:
    fact, changed = made(), SeriesChanged(NOW + timedelta(hours=1), "t", 60)
    with engine.begin() as conn:
        series = stored.create(conn, MEMBER, fact)
        assert stored.get(conn, series.id) == series == fold([fact])
        after = stored.record(conn, MEMBER, series, changed)
        assert stored.get(conn, series.id, lock=True) == after == fold([fact, changed])
        assert journal.of_series(journal.read(conn, series.id)) == [fact, changed]


def test_a_series_of_others_or_a_deleted_one_is_not_found(engine: Engine) -> None:
    with engine.begin() as conn:
        series = stored.create(conn, MEMBER, made())
        assert stored.get(conn, series.id, project_id=MEMBER.project_id) == series
        with pytest.raises(NotFound, match=str(series.id)):
            stored.get(conn, series.id, project_id="another")
        stored.record(conn, MEMBER, series, SeriesDeleted(NOW))
        with pytest.raises(NotFound):
            stored.get(conn, series.id)
        assert stored.listed(conn, stored.SeriesListing()) == []


def test_a_row_that_differs_from_its_facts_is_not_changed(engine: Engine) -> None:
    with engine.begin() as conn:
        series = stored.create(conn, MEMBER, made())
        conn.execute(text("UPDATE lease_series SET name = 'x'"))
        with pytest.raises(Tampered, match="name"):
            stored.record(conn, MEMBER, stored.get(conn, series.id), SeriesDeleted(NOW))


def test_a_series_without_leases_has_no_occurrences(engine: Engine) -> None:
    with engine.begin() as conn:
        series = stored.create(conn, MEMBER, made())
        assert stored.occurrences(conn, series.id) == []
        assert stored.counts(conn, [series.id]) == {}
