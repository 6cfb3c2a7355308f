"""The types of searches, holds and series beside what the server declares."""

from typing import Any

import pytest
from marshmallow import Schema

from api.reservation.leases import availability_schema, series_schema
from climate.cli.response_types import availability
from tests.cli.response_types.answer_types import differences


@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        (availability.Offered, availability_schema.OfferedOut),
        (availability.Offer, availability_schema.OfferOut),
        (availability.Point, availability_schema.PointOut),
        (availability.Binding, availability_schema.BindingOut),
        (availability.Alternative, availability_schema.AlternativeOut),
        (availability.Availability, availability_schema.AvailabilityAnswer),
        (availability.Hold, availability_schema.HoldOut),
        (availability.Occurrence, series_schema.OccurrenceOut),
        (availability.CreatedSeries, series_schema.CreatedAnswer),
    ],
)
def test_a_type_has_the_keys_of_its_schema(kind: Any, declared: type[Schema]) -> None:
    said = differences(kind, declared)
    assert said == (["series may be absent"] if kind is availability.CreatedSeries else [])


def test_lists_of_series_have_no_occurrences() -> None:
    assert differences(availability.Series, series_schema.SeriesOut) == ["occurrences is never absent"]
    assert differences(availability.Series, series_schema.ListedSeriesOut) == ["occurrences is not in the schema"]
