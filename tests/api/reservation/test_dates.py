"""Dates in requests and answers of the reservation API."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from marshmallow import Schema

from api.reservation.dates import NOW, Moment, date, maybe, stamp
from climate.domain.errors import InvalidInput

NINE = datetime(2030, 1, 31, 9, 0, 0, 5, tzinfo=UTC)


class Body(Schema):
    """A body with both kinds of dates."""

    start_date = Moment(now=True)
    end_date = Moment()


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=-5)), ZoneInfo("Europe/Berlin"), ZoneInfo("UTC")])
def test_answers_are_in_utc_without_a_zone(zone: timezone | ZoneInfo) -> None:
    moment = NINE.astimezone(zone)
    assert (date(moment), stamp(moment)) == ("2030-01-31T09:00:00.000005", "2030-01-31 09:00:00.000005")


def test_whole_seconds_have_six_digits() -> None:
    assert maybe(date, NINE.replace(microsecond=0)) == "2030-01-31T09:00:00.000000"
    assert maybe(date, None) is None


@pytest.mark.parametrize(
    "text", ["2030-01-31 09:00", "2030-1-31 9:00", "2030-01-31T10:00:00+01:00", "2030-01-31T09:00:00Z"]
)
def test_blazars_form_and_iso_8601_are_read(text: str) -> None:
    assert Body().load({"end_date": text})["end_date"] == NINE.replace(microsecond=0)


def test_now_is_read_where_it_is_allowed() -> None:
    assert Body().load({"start_date": "now"}) == {"start_date": NOW}
    with pytest.raises(InvalidInput, match=r"now is an invalid date.*end_date"):
        Body().load({"end_date": "now"})


@pytest.mark.parametrize(
    "text", ["2030-02-30 09:00", "2030-01-31 24:00", "tomorrow", "", "2030-01-31 9am", "２０３０-01-31 09:00"]
)
def test_other_texts_are_refused_with_the_field(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"(?s)invalid date.*end_date"):
        Body().load({"end_date": text})


def test_null_is_refused_as_by_blazar() -> None:
    with pytest.raises(InvalidInput, match="null is an invalid date"):
        Body().load({"end_date": None})
