"""Schemas of series of leases."""

from datetime import timedelta
from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields, validate, validates_schema

from api.reservation.dates import Moment, out_date, out_stamp
from api.reservation.leases.availability_schema import AlternativeOut, BindingOut, seconds_of
from api.reservation.leases.repeat_schema import LONGEST_NAME, AskedRepeat
from api.reservation.leases.schema import (
    MOST_PARTS,
    AskedEvent,
    AskedReservation,
    LeaseAnswer,
    LeaseOut,
    LinkOut,
    name_field,
)
from api.reservation.pages import Paged
from api.reservation.unchanged_fields import Update
from api.reservation.view_decorator import Strict
from climate.domain.events.event_transitions import MOST_EVENTS
from climate.domain.status import LeaseStatus

LONGEST_SHIFT = 366 * 86400
SIGNED_ISO = r"^-?P(?=.)([0-9]{1,5}W)?([0-9]{1,5}D)?(T(?=.)([0-9]{1,6}H)?([0-9]{1,8}M)?([0-9]{1,10}S)?)?$"


class Shift(fields.Field[timedelta]):
    """A difference of times: whole seconds, or ISO 8601, both with a minus for earlier or shorter."""

    def __init__(self, says: str, **more: Any) -> None:
        described = {"oneOf": [{"type": "integer"}, {"type": "string", "pattern": SIGNED_ISO}]}
        text = f"{says} Seconds, or ISO 8601 such as PT1H or -PT30M."
        super().__init__(metadata={"description": text, **described}, **more)

    def _deserialize(self, value: object, *args: object, **more: object) -> timedelta:
        sign, text = (-1, value[1:]) if isinstance(value, str) and value.startswith("-") else (1, value)
        seconds = seconds_of(text)
        if seconds is None or not 0 < abs(seconds) <= LONGEST_SHIFT:
            raise ValidationError(
                f"must be 1 to {LONGEST_SHIFT} seconds, or ISO 8601 such as PT1H, with - for earlier or shorter"
            )
        return timedelta(seconds=sign * seconds)


class SeriesOrder(Strict):
    """A new series: a lease, and the rule by which it is repeated."""

    name = name_field(LONGEST_NAME, required=True)
    start_date = Moment(now=True, required=True)
    end_date = Moment(required=True)
    before_end_date = Moment(allow_none=True, load_default=None)
    reservations = fields.List(AskedReservation(), load_default=list, validate=validate.Length(max=MOST_PARTS))
    events = fields.List(fields.Nested(AskedEvent), load_default=list, validate=validate.Length(max=MOST_EVENTS))
    repeat = fields.Nested(AskedRepeat, required=True)


class SeriesQuery(Paged):
    """Conditions for series to list."""

    name = fields.String()


class OccurrenceOut(Schema):
    """An occurrence: its lease, or the reason why there is none."""

    class Meta:
        unknown = RAISE

    lease_id = fields.UUID(required=True, allow_none=True)
    name = fields.String(required=True)
    start_date = out_date()
    end_date = out_date()
    fits = fields.Boolean(required=True)
    status = fields.String(
        required=True, allow_none=True, validate=validate.OneOf([str(status) for status in LeaseStatus])
    )
    reason = fields.String(required=True, allow_none=True)
    binding = fields.Nested(BindingOut, required=True, allow_none=True)
    alternatives = fields.List(fields.Nested(AlternativeOut), required=True)


class ListedSeriesOut(Schema):
    """A series; its rule and dates are those from which its occurrences were created."""

    class Meta:
        unknown = RAISE

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    project_id = fields.String(required=True)
    user_id = fields.String(required=True)
    rule = fields.String(required=True)
    zone = fields.String(required=True)
    make = fields.String(required=True)
    start_date = out_date()
    end_date = out_date()
    leases = fields.Integer(required=True, metadata={"description": "Number of leases that are not deleted."})
    created_at = out_stamp()
    updated_at = out_stamp(allow_none=True)


class SeriesOut(ListedSeriesOut):
    """A series with its occurrences, by their start."""

    occurrences = fields.List(fields.Nested(OccurrenceOut), required=True)


class SeriesPatch(Update, Strict):
    """Changes of the occurrences that have not begun; absent keys keep their values."""

    answer_key = "series"
    answer_schema = SeriesOut
    may_be_empty = True

    name = name_field(LONGEST_NAME)
    move_by = Shift("Difference of local times by which each occurrence moves.")
    extend_by = Shift("Time by which each occurrence ends later.")
    since = fields.UUID(
        data_key="from", metadata={"description": "Lease of the series from which on occurrences are changed."}
    )

    @validates_schema(pass_original=True)
    def _any(self, data: dict[str, object], original: dict[str, object], **_: object) -> None:
        if not data.keys() - {"since"} and not original.keys() - {"from"}:
            raise ValidationError("nothing to change was given: name, move_by or extend_by")


class SeriesAnswer(Schema):
    series = fields.Nested(SeriesOut, required=True)


class CreatedAnswer(LeaseAnswer):
    """A new lease; with `repeat` the first one of its series, and null if a dry run finds none that fits."""

    lease = fields.Nested(LeaseOut, required=True, allow_none=True)
    series = fields.Nested(SeriesOut, metadata={"description": "Series of a request with `repeat`; otherwise absent."})


class SeriesListAnswer(Schema):
    series = fields.List(fields.Nested(ListedSeriesOut), required=True)
    series_links = fields.List(
        fields.Nested(LinkOut), metadata={"description": "Link to the next page, if there is one."}
    )


EXAMPLE = {
    "name": "training",
    "start_date": "2030-01-29T09:00:00+01:00",
    "end_date": "2030-01-29T17:00:00+01:00",
    "reservations": [{"resource_type": "physical:host", "min": 1, "max": 2}],
    "repeat": {"rule": "FREQ=WEEKLY;BYDAY=TU;COUNT=10", "zone": "Europe/Berlin", "make": "all"},
}
"""Example request."""
