"""Schemas of searches, offers and holds."""

import re
from datetime import time, timedelta
from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields, validate

from api.reservation.dates import Moment, out_date, out_stamp
from api.reservation.leases.schema import MOST_PARTS, AskedReservation, ReservationOut, name_field
from api.reservation.view_decorator import Strict
from climate.domain.availability.daily_windows import DAYS
from climate.domain.availability.search import Mode
from climate.service.availability.offers import LONGEST_ID

MOST_OFFERS = 20
MOST_POINTS = 500
MOST_WINDOWS = 50
LONGEST_DURATION = 36500 * 86400
LONGEST_STEP = 86400 * 7

ISO = r"^P(?=.)([0-9]{1,5}W)?([0-9]{1,5}D)?(T(?=.)([0-9]{1,6}H)?([0-9]{1,8}M)?([0-9]{1,10}S)?)?$"
CLOCK = r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"


class Length(fields.Field[timedelta]):
    """A duration: whole seconds, or ISO 8601 of weeks, days, hours, minutes and seconds."""

    def __init__(self, **more: Any) -> None:
        described = {"oneOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": ISO}]}
        super().__init__(metadata={"description": "Seconds, or ISO 8601 such as PT6H.", **described}, **more)

    def _deserialize(self, value: object, *args: object, **more: object) -> timedelta:
        seconds = seconds_of(value)
        if seconds is None or not 0 < seconds <= LONGEST_DURATION:
            raise ValidationError(f"must be 1 to {LONGEST_DURATION} seconds, or ISO 8601 such as PT6H or P1DT12H")
        return timedelta(seconds=seconds)


def seconds_of(value: object) -> int | None:
    """Return the seconds of a duration, a whole number or ISO 8601; None for any other value."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    parts = re.match(ISO, value, re.ASCII) if isinstance(value, str) and not value.endswith("\n") else None
    if parts is None:
        return None
    units = {1: 604800, 2: 86400, 4: 3600, 5: 60, 6: 1}
    return sum(int(parts[group][:-1]) * unit for group, unit in units.items() if parts[group])


def _clock(says: str) -> fields.String:
    return fields.String(
        required=True,
        validate=validate.Regexp(CLOCK, error="Must be a local time such as 08:00, up to 24:00."),
        metadata={"description": says},
    )


class AskedWindow(Strict):
    """Local times on days of the week. One that ends at or before its begin ends on the next day."""

    days = fields.List(
        fields.String(validate=validate.OneOf(DAYS)), load_default=list(DAYS), validate=validate.Length(1, len(DAYS))
    )
    begin = _clock("First local time, such as 08:00.")
    end = _clock("Local time of the end, such as 18:00.")
    zone = fields.String(
        load_default="UTC", validate=validate.Length(1, 60), metadata={"description": "IANA name: Europe/Berlin."}
    )


class AvailabilityQuestion(Strict):
    """A search for times at which a lease fits."""

    reservations = fields.List(AskedReservation(), required=True, validate=validate.Length(1, MOST_PARTS))
    duration = Length(required=True)
    earliest = Moment(now=True, load_default="now")
    latest = Moment(allow_none=True, load_default=None)
    between = fields.List(fields.Nested(AskedWindow), load_default=list, validate=validate.Length(max=MOST_WINDOWS))
    step = fields.Integer(
        strict=True,
        load_default=60,
        validate=validate.Range(1, LONGEST_STEP),
        metadata={"description": "Seconds: a start is a multiple of it since 1970 UTC, such as 3600 for full hours."},
    )
    mode = fields.String(load_default=str(Mode.FIRST), validate=validate.OneOf([str(mode) for mode in Mode]))
    offers = fields.Integer(strict=True, load_default=5, validate=validate.Range(1, MOST_OFFERS))
    points = fields.Integer(
        strict=True,
        load_default=100,
        validate=validate.Range(0, MOST_POINTS),
        metadata={"description": "Maximum number of points of the free count; 0: none."},
    )


class OfferedOut(Schema):
    class Meta:
        unknown = RAISE

    resource_type = fields.String(required=True)
    count = fields.Integer(required=True, allow_none=True, metadata={"description": "Hosts, slots or pieces."})
    free = fields.Integer(
        required=True, allow_none=True, metadata={"description": "Number free for the whole time, these included."}
    )


class OfferOut(Schema):
    """A time at which everything fits."""

    class Meta:
        unknown = RAISE

    id = fields.String(required=True)
    start_date = out_date()
    end_date = out_date()
    expires_at = out_date()
    cost = fields.Float(required=True, metadata={"description": "Greatest share of a limit of the project in use."})
    reservations = fields.List(fields.Nested(OfferedOut), required=True)


class PointOut(Schema):
    class Meta:
        unknown = RAISE

    time = out_date()
    free = fields.Integer(required=True)


class BindingOut(Schema):
    """The limit that binds."""

    class Meta:
        unknown = RAISE

    name = fields.String(required=True)
    message = fields.String(required=True)
    reservation = fields.Integer(required=True, allow_none=True, metadata={"description": "Index of the reservation."})


class AlternativeOut(Schema):
    class Meta:
        unknown = RAISE

    kind = fields.String(required=True, validate=validate.OneOf(["later", "shorter", "fewer", "without"]))
    message = fields.String(required=True)
    offer = fields.Nested(OfferOut, required=True)


class AvailabilityAnswer(Schema):
    """Offers, best first; without any, the reason and what would fit."""

    offers = fields.List(fields.Nested(OfferOut), required=True)
    free = fields.List(
        fields.List(fields.Nested(PointOut), allow_none=True),
        required=True,
        metadata={"description": "Free count along time for each reservation; null where nothing is counted."},
    )
    binding = fields.Nested(BindingOut, required=True, allow_none=True)
    alternatives = fields.List(fields.Nested(AlternativeOut), required=True)


class HoldOrder(Strict):
    """An offer to keep."""

    offer = fields.String(required=True, validate=validate.Length(1, LONGEST_ID))
    name = name_field(load_default="hold")


class HoldOut(Schema):
    """A hold of resources, which is released at `expires_at` unless a lease is made of it."""

    class Meta:
        unknown = RAISE

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    project_id = fields.String(required=True)
    user_id = fields.String(required=True)
    start_date = out_date()
    end_date = out_date()
    expires_at = out_date()
    renewable = fields.Boolean(required=True)
    created_at = out_stamp()
    reservations = fields.List(fields.Nested(ReservationOut), required=True)


class HoldAnswer(Schema):
    hold = fields.Nested(HoldOut, required=True)


class HoldsAnswer(Schema):
    holds = fields.List(fields.Nested(HoldOut), required=True)


def local_time(text: str) -> time:
    """Return the time of the day; 24:00 is midnight."""
    hour, minute = text.split(":")
    return time(int(hour) % 24, int(minute))


EXAMPLE = {
    "reservations": [{"resource_type": "physical:host", "min": 4, "max": 4}],
    "duration": "PT6H",
    "earliest": "now",
    "latest": "2030-01-31 18:00",
    "between": [{"days": ["mon", "tue"], "begin": "08:00", "end": "18:00", "zone": "Europe/Berlin"}],
    "mode": "first",
}
"""Example request."""
