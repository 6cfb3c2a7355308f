"""Series as the fold of their facts, and which occurrences a change of a series reaches."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from climate.domain import facts
from climate.domain.lease import Lease
from climate.domain.lease import fold as fold_lease
from climate.domain.period import Period
from climate.domain.planning.series import (
    Series,
    SeriesChanged,
    SeriesCreated,
    SeriesDeleted,
    SeriesReduced,
    fold,
    is_unbegun,
)
from climate.domain.status import EventKind
from tests.domain.lease_factory import created

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
MADE = SeriesCreated(
    uuid4(), NOW, "training", "p", "u", "FREQ=DAILY;COUNT=2", "UTC", Period(NOW, NOW + timedelta(hours=1)), "all"
)


def after(*happened: SeriesChanged | SeriesReduced | SeriesDeleted) -> Series:
    return fold([MADE, *happened])


def test_only_a_new_name_of_all_is_the_name_of_the_series() -> None:
    later = NOW + timedelta(hours=1)
    whole = after(SeriesChanged(later, "course", 3600))
    assert (whole.name, whole.version, whole.updated_at) == ("course", 2, later)
    assert after(SeriesChanged(later, "course", since=uuid4())).name == "training"
    assert after(SeriesChanged(later, extend_by=60)).name == "training"


def test_a_series_is_gone_once_it_is_deleted() -> None:
    assert not after(SeriesReduced(NOW, uuid4())).gone
    assert after(SeriesDeleted(NOW)).gone


def test_a_series_begins_with_its_creation() -> None:
    for wrong in ([], [SeriesDeleted(NOW)]):
        with pytest.raises(ValueError, match=r"series|SeriesCreated"):
            fold(wrong)


def lease() -> Lease:
    return fold_lease([created()])


def test_an_occurrence_has_begun_once_the_cloud_may_have_been_asked() -> None:
    one = lease()
    start = one.event(EventKind.START).id
    assert is_unbegun(one)
    assert not is_unbegun(fold_lease([facts.EventClaimed(start, NOW, 1)], one))
    assert not is_unbegun(replace(one, deleting=True))
    assert not is_unbegun(replace(one, gone=True))


def test_a_lease_knows_its_series() -> None:
    assert fold_lease([replace(created(), series_id=MADE.series_id)]).series_id == MADE.series_id
    assert lease().series_id is None
